import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { expectTruth } from "../../../support/simulation/truth.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The pipe belongs to service 1. Both services get the same size. */
async function ofTwoServices(): Promise<HeldPipe> {
  const pipe = await HeldPipe.start();
  pipe.simulation.addService(2);
  pipe.cluster.createScaling(idOf(2), { replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
  await pipe.run(5 * SECOND);
  return pipe;
}

describe.each(WINDOWS)("a pipe that moves to another service $when of a resize in place", ({ reach }) => {
  it("gets the size if that service desires the same one", async () => {
    const pipe = await ofTwoServices();
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      pipe.simulation.move("pipe", 2);
    });
    await pipe.request(2, 5 * MINUTE);
    expect(isReached).toBe(true);
    expectTruth(pipe, 2, 2);
  });

  it("does not restart for a service that has no size yet, although its template cannot follow its pods", async () => {
    const pipe = await HeldPipe.start();
    const { simulation, cluster, workloads } = pipe;
    simulation.addService(2);
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      cluster.webhooks.down("replicasets", MINUTE);
      simulation.move("pipe", 2);
    });
    await pipe.request(2, 2 * MINUTE);
    expect(isReached).toBe(true);
    expect(pipe.isPaused).toBe(false);
    await pipe.run(5 * MINUTE);
    expect(pipe.uids()).toEqual(pipe.before);
    expect(workloads.replaced).toEqual([]);
    expect(cluster.adoptionJudge.violations).toEqual([]);
    expect(simulation.condition(2)).toMatchObject({ type: "Ready", status: "True" });
  });
});

describe("a pipe that moves to another service while a slow write of its commit is on its way", () => {
  const expectEnded = (pipe: HeldPipe) => {
    expect(pipe.isPaused).toBe(false);
    expect(pipe.uids()).toEqual(pipe.before);
    expect(pipe.simulation.condition(2)).toMatchObject({ type: "Ready", status: "True" });
  };

  it.each([3 * SECOND, 7 * SECOND])(
    "does not stay paused if that write fails after %d ms",
    async (delayMs) => {
      const pipe = await ofTwoServices();
      const failures = pipe.failAt("write to the ReplicaSet", [
        { error: new KubeApiError("PATCH", 500, "{}") },
      ]);
      pipe.at({ step: "write to the ReplicaSet", delayMs }, () => pipe.simulation.move("pipe", 2));
      await pipe.request(2, HOUR);
      expect(failures.failed).toBe(1);
      expectEnded(pipe);
    },
  );

  it.each([5, 3 * SECOND, 7 * SECOND])(
    "does not stay paused if that write is the resumption, which conflicts with the move after %d ms",
    async (delayMs) => {
      const pipe = await ofTwoServices();
      let isReached = false;
      pipe.at({ step: "resumption", delayMs }, () => {
        isReached = true;
        pipe.simulation.move("pipe", 2);
      });
      await pipe.request(2, HOUR);
      expect(isReached).toBe(true);
      expectEnded(pipe);
    },
  );
});
