import { describe, expect, it } from "vitest";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";
import { MOMENTS } from "../../../../support/simulation/moments.ts";

const SECOND = 1000;
const COMMIT_MS = 30 * SECOND;

describe.each(MOMENTS)("a controller manager that is killed $when of a resize in place", (moment) => {
  /** @param awayMs time until it is started again */
  async function killFor(awayMs: number): Promise<HeldPipe> {
    const pipe = await HeldPipe.start();
    const { workloads } = pipe;
    await pipe.resize(2, moment, () => {
      workloads.killControllerManager();
      pipe.cluster.clock.after(awayMs, () => workloads.startControllerManager());
    });
    pipe.expectSettled(2);
    return pipe;
  }

  it("causes no restart if it comes back within 15 s", async () => {
    const pipe = await killFor(15 * SECOND);
    pipe.expectNoRestart();
  });

  it("leaves the Deployment paused for 30 s at most, and replaces the pods only if their ReplicaSet has the old size", async () => {
    const pipe = await killFor(50 * SECOND);
    expect(pipe.longestPauseMs).toBeLessThan(COMMIT_MS + moment.delayMs + SECOND);
    // After the pause was observed, the ReplicaSet gets the size without the controller manager.
    const hasSize = moment.step === "write to the ReplicaSet" || moment.step === "resumption";
    if (hasSize) pipe.expectNoRestart();
    else pipe.expectFallback("CommitTimeout", "the Deployment controller has not responded within 30 s");
  });
});

it("a controller manager that observes the ReplicaSet a second late causes no restart", async () => {
  const pipe = await HeldPipe.start();
  pipe.workloads.replicaSetWatchMs = SECOND;
  await pipe.request(2);
  pipe.expectSettled(2);
  pipe.expectNoRestart();
  expect(pipe.longestPauseMs).toBeGreaterThan(SECOND);
});
