import { describe, expect, it } from "vitest";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { expectTruth } from "../../../support/simulation/truth.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

describe.each(WINDOWS)("a pipe that moves to another service $when of a resize in place", ({ reach }) => {
  it("gets the size if that service desires the same one", async () => {
    const pipe = await HeldPipe.start();
    const { simulation, cluster } = pipe;
    simulation.addService(2);
    cluster.createScaling(idOf(2), { replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
    await pipe.run(5 * SECOND);
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      simulation.move("pipe", 2);
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
