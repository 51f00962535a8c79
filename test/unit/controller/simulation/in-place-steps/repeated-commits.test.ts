import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../../src/kube/errors.ts";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";
import { Scenario } from "../../../../support/simulation/in-place-scenario.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const BROKEN = {
  error: new KubeApiError("PATCH", 500, JSON.stringify({ message: "failed calling webhook" })),
};

describe("a pipe whose pods run the size and whose commits fail", () => {
  it("counts as resized in the status", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt("pause", BROKEN);
    await pipe.request(2, MINUTE);
    const { desired, effective, pipes, propagation } = pipe.simulation.status(1);
    expect(pipes).toMatchObject({ updated: 1, summary: "1/1" });
    expect(effective).toEqual(expect.objectContaining({ summary: desired?.summary }));
    expect(propagation?.completedAt).toBeDefined();
    expect(pipe.simulation.condition(1)?.message).toContain("The one pipe runs 2 cpu / 8 Gi");
  });

  it("proves the size, so that the next ones are resized together", async () => {
    const names = ["pipe-0", "pipe-1", "pipe-2", "pipe-3"];
    const scenario = new Scenario(1, {}, names);
    await scenario.start();
    const { simulation, workloads } = scenario;
    simulation.cluster.fault = ({ path, body, query }) => {
      const isPause = query?.["dryRun"] === undefined && JSON.stringify(body ?? {}).includes('"paused":true');
      return isPause && path.endsWith("/pipe-0") ? BROKEN : undefined;
    };
    workloads.outcome = ({ metadata }) => (metadata.name.startsWith("pipe-0-") ? "Done" : "NotObserved");
    simulation.requestSize(1, 4);
    await simulation.run(20 * SECOND);
    const wanted = names
      .flatMap((name) => scenario.pods(name))
      .map(({ spec }) => spec.containers[0]?.resources?.requests?.["cpu"]);
    expect(wanted).toEqual(["4000m", "4000m", "4000m", "4000m"]);
  });

  it("replaces no pod if a container crashes meanwhile", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt("pause", BROKEN);
    await pipe.request(2, MINUTE);
    pipe.workloads.crash(pipe.podNames()[0] ?? "");
    await pipe.run(MINUTE);
    await pipe.run(MINUTE);
    pipe.heal();
    await pipe.run(6 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectInPlace();
  });

  it("gets another size as soon as it is requested", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt("pause", BROKEN);
    await pipe.request(2, 10 * MINUTE);
    pipe.heal();
    await pipe.request(3, 10 * SECOND);
    pipe.expectSettled(3);
    pipe.expectNoRestart();
  });

  it("gets its first size again as soon as it is requested, without a change of its template", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt("pause", BROKEN);
    await pipe.request(2, 10 * MINUTE);
    pipe.heal();
    const { generation } = pipe.deployment.metadata;
    await pipe.request(1, 10 * SECOND);
    pipe.expectSettled(1);
    pipe.expectNoRestart();
    // Only the annotation is written.
    expect(pipe.deployment.metadata.generation).toBe(generation);
  });

  it("is committed at once when a retry is requested", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt("pause", BROKEN);
    await pipe.request(2, 10 * MINUTE);
    pipe.heal();
    pipe.simulation.askToRetry(1);
    await pipe.run(5 * SECOND);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it("gets the next size in place after a commit that was undone", async () => {
    const pipe = await HeldPipe.start();
    pipe.failAlwaysAt("write to the ReplicaSet", BROKEN);
    await pipe.request(2, 5 * MINUTE);
    pipe.heal();
    await pipe.request(3, 40 * SECOND);
    pipe.expectSettled(3);
    pipe.expectNoRestart();
  });

  it.each(["pause", "write to the ReplicaSet"] as const)(
    "at the %s is suspended, and the template follows when it is resumed",
    async (step) => {
      const pipe = await HeldPipe.start();
      const requests = pipe.failAlwaysAt(step, BROKEN);
      await pipe.request(2, 5 * MINUTE);
      pipe.simulation.suspend(1, true);
      await pipe.run(MINUTE);
      const { failed } = requests;
      expect(pipe.isPaused).toBe(false);
      await pipe.run(30 * MINUTE);
      expect(requests.failed).toBe(failed);
      pipe.heal();
      pipe.simulation.suspend(1, false);
      await pipe.run(6 * MINUTE);
      pipe.expectSettled(2);
      pipe.expectNoRestart();
    },
  );
});
