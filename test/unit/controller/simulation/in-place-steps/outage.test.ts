import { describe, expect, it } from "vitest";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";
import { MOMENTS } from "../../../../support/simulation/moments.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const [ONE, TWO] = ["1000m/4Gi", "2000m/8Gi"];
const COMMIT_MS = 30 * SECOND;

describe.each(MOMENTS)("a controller manager that is killed $when of a resize in place", (moment) => {
  it.each([15, 50])("and away for %i s causes no restart, and no pause of more than 30 s", async (awayS) => {
    const pipe = await HeldPipe.start();
    const { workloads } = pipe;
    await pipe.resize(2, moment, () => {
      workloads.killControllerManager();
      pipe.cluster.clock.after(awayS * SECOND, () => workloads.startControllerManager());
    });
    pipe.expectSettled(2);
    pipe.expectNoRestart();
    expect(pipe.longestPauseMs).toBeLessThan(COMMIT_MS + moment.delayMs + SECOND);
  });
});

it("a controller manager that is away for 20 min gets no more than one pause, is reported, and causes no restart", async () => {
  const pipe = await HeldPipe.start();
  const writesBefore = pipe.writesToDeployment();
  pipe.workloads.killControllerManager();
  await pipe.request(2, 20 * MINUTE);
  expect(pipe.simulation.condition(1)).toMatchObject({ reason: "WriteFailed" });
  expect(pipe.simulation.condition(1)?.message).toContain("the Deployment controller did not respond");
  expect(pipe.podSizes()).toEqual([TWO, TWO]);
  // The template has its old size again, so that nothing happens when the controller manager starts.
  expect({ template: pipe.templateSize(), isPaused: pipe.isPaused }).toEqual({
    template: ONE,
    isPaused: false,
  });
  // A pause, and its end. The next attempt waits for the Deployment controller.
  expect(pipe.writesToDeployment() - writesBefore).toBe(2);
  pipe.workloads.startControllerManager();
  await pipe.run(MINUTE);
  pipe.expectSettled(2);
  pipe.expectNoRestart();
});

it("a controller manager that observes the ReplicaSet a second late causes no restart", async () => {
  const pipe = await HeldPipe.start();
  pipe.workloads.replicaSetWatchMs = SECOND;
  await pipe.request(2);
  pipe.expectSettled(2);
  pipe.expectNoRestart();
  expect(pipe.longestPauseMs).toBeGreaterThan(SECOND);
});
