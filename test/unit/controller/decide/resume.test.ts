import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { recheckAtMs } from "../../../../src/controller/decide/recheck.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import { aPipe, aScaling, aSnapshot, DECIDE_OPTIONS, NOW_MS } from "../../../support/fixtures/snapshot.ts";

const MINUTE_MS = 60_000;

function pausedAgo(agoMs: number, changes: Partial<DeploymentView> = {}) {
  return aPipe("a", { isPaused: true, isPausedByUs: true, pausedByUsAtMs: NOW_MS - agoMs, ...changes });
}

describe("a Deployment that the controller paused", () => {
  describe.each([
    ["is suspended", { scaling: aScaling(4, { spec: { suspend: true } }) }],
    ["has no PipeScaling", { scaling: undefined }],
    ["has a PipeScaling that is being deleted", { scaling: aScaling(4, { isBeingDeleted: true }) }],
  ])("and whose service %s", (_, changes) => {
    it("stays paused until its commit has ended, even if a webhook removed the annotation of the rollout", () => {
      const pipe = pausedAgo(0);
      const { actions } = decide(aSnapshot([pipe], changes), DECIDE_OPTIONS);
      expect(actions).toContainEqual({ type: "begin-in-place", pipe, container: "pipe", size: pipe.size });
    });

    it("is resumed immediately if it has no size, because then no commit can end", () => {
      const pipe = pausedAgo(0, { size: undefined });
      const { actions } = decide(aSnapshot([pipe], changes), DECIDE_OPTIONS);
      expect(actions).toContainEqual({ type: "resume", pipe });
    });
  });
});

describe("a paused Deployment outside the namespace of its service", () => {
  it("is resumed only when the pause is a minute old, because another release may be committing a resize", () => {
    const pipe = pausedAgo(MINUTE_MS);
    const { actions } = decide(aSnapshot([], { orphans: [pipe] }), DECIDE_OPTIONS);
    expect(actions).toEqual([{ type: "resume", pipe }]);
  });

  it.each([
    ["younger than a minute", MINUTE_MS - 1, 1],
    ["from a clock that is an hour ahead", -60 * MINUTE_MS, MINUTE_MS],
  ])("stays paused while the pause is %s, and is rechecked", (_, agoMs, inMs) => {
    const snapshot = aSnapshot([], { orphans: [pausedAgo(agoMs)] });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(recheckAtMs(snapshot, decision, DECIDE_OPTIONS)).toBe(NOW_MS + inMs);
  });

  it("stays paused if its owner paused it", () => {
    const snapshot = aSnapshot([], { orphans: [aPipe("a", { isPaused: true })] });
    expect(decide(snapshot, DECIDE_OPTIONS).actions).toEqual([]);
  });
});
