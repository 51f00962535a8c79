import { describe, expect, it } from "vitest";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";
import { MOMENTS } from "../../../../support/simulation/moments.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const [ONE, TWO] = ["1000m/4Gi", "2000m/8Gi"];
const [FIRST_IMAGE, IMAGE] = ["registry.example/pipe:1", "registry.example/pipe:2"];

describe.each(MOMENTS)("$when of a resize in place, the owner of a pipe can", (moment) => {
  const isDuringCommit = moment.step === "write to the ReplicaSet" || moment.step === "resumption";
  // The write to the second pod is on its way, so both pods get the size.
  const isBegun = isDuringCommit || moment.step === "resize of the second pod" || moment.step === "pause";

  it.each([
    ["up", 3],
    ["down", 1],
  ])("scale it %s without a restart of the other pods", async (_, replicas) => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.change({ replicas }));
    pipe.expectSettled(2, replicas);
    expect(pipe.kept()).toHaveLength(Math.min(replicas, 2));
    expect(pipe.replicaSets()).toHaveLength(1);
    expect(pipe.simulation.fallbacks).toEqual([]);
  });

  it("scale it to zero and back", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.change({ replicas: 0 }));
    pipe.expectSettled(2, 0);
    pipe.change({ replicas: 2 });
    await pipe.run(MINUTE);
    pipe.expectSettled(2);
  });

  it("change its image, which is an ordinary rollout", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.setImage(IMAGE));
    pipe.expectSettled(2);
    expect(pipe.deployment.spec.template.spec.containers).toMatchObject([{ image: IMAGE }]);
    expect(pipe.kept()).toEqual([]);
    expect(pipe.replicaSets()).toHaveLength(2);
    // The pause does not last until the end of the commit.
    expect(pipe.longestPauseMs).toBeLessThan(moment.delayMs + moment.watchMs + SECOND);
    // Before the commit, the pods of the new image are resized in place.
    if (isDuringCommit) pipe.expectFallback("NotSettled", "its owner changed the pod template meanwhile");
    else expect(pipe.simulation.fallbacks).toEqual([]);
  });

  it("undo its last rollout", async () => {
    const pipe = await HeldPipe.start();
    pipe.setImage(IMAGE);
    await pipe.run(MINUTE);
    pipe.expectSettled(1);
    let isUndone = false;
    await pipe.resize(2, moment, () => {
      isUndone = pipe.undo();
    });
    // kubectl rejects the undo of a paused Deployment.
    expect(isUndone).toBe(!isDuringCommit);
    pipe.expectSettled(2);
    const image = isUndone ? FIRST_IMAGE : IMAGE;
    expect(pipe.deployment.spec.template.spec.containers).toMatchObject([{ image }]);
    expect(pipe.simulation.fallbacks).toEqual([]);
  });

  it("pause it, and it stays paused until the owner resumes it", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.applyPause());
    expect(pipe.isPaused).toBe(true);
    const { pending, summary } = pipe.simulation.status(1).pipes ?? {};
    const ready = pipe.simulation.status(1).conditions?.find(({ type }) => type === "Ready");
    // If no pod had the size before, they have their old size again.
    expect(pipe.podSizes()).toEqual(Array(2).fill(isBegun ? TWO : ONE));
    expect(pipe.templateSize()).toBe(isBegun && !isDuringCommit ? ONE : TWO);
    expect(summary).toBe(isBegun ? "1/1" : "0/1");
    expect(ready?.status).toBe(isDuringCommit ? "True" : "False");
    if (isDuringCommit) expect(pending).toBeUndefined();
    else {
      const state = isBegun ? "Resized" : "Paused";
      expect(pending).toMatchObject([{ state, message: "its owner paused the Deployment: resume it" }]);
    }
    expect(pipe.uids()).toEqual(pipe.before);
    pipe.change({ paused: null });
    await pipe.run(MINUTE);
    pipe.expectSettled(2);
    if (isBegun) pipe.expectNoRestart();
    else pipe.expectFallback("NotSettled", "the Deployment is paused by its owner");
  });

  it("resume it", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.change({ paused: null }));
    pipe.expectSettled(2);
    const isEarly = moment.step === "write to the ReplicaSet" && moment.delayMs > SECOND;
    // The Deployment controller replaces the pods if their ReplicaSet does not have the size yet.
    if (isEarly) {
      expect(pipe.kept()).toEqual([]);
      expect(pipe.replicaSets()).toHaveLength(2);
      expect(pipe.simulation.status(1).pipes?.resizedBy).toEqual({ pipe: "Rollout" });
    } else pipe.expectNoRestart();
  });
});
