import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor, summaries } from "../../../support/fixtures/decisions.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites, withoutResponse } from "../../../support/fixtures/writes.ts";

const MINUTE_MS = 60_000;

function pausedAgo(agoMs: number, changes: Partial<PipeView> = {}) {
  const pause = { isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: NOW_MS - agoMs };
  const lastRollout = aRollout(sizeOfCores(1), { isCommitting: true });
  const rollout = { ...COMPLETE, isUpdated: false, isComplete: false };
  return aPipe("a", { ...pause, lastRollout, rollout, ...changes });
}

describe("a Deployment that the controller paused", () => {
  const { spec } = aScaling(4);
  describe.each<[string, Partial<Snapshot>, Partial<typeof DECIDE_OPTIONS>]>([
    ["and whose service is suspended", { scaling: aScaling(4, { spec: { ...spec, suspend: true } }) }, {}],
    ["and whose service has no PipeScaling", { scaling: undefined }, {}],
    ["and whose PipeScaling is being deleted", { scaling: aScaling(4, { isBeingDeleted: true }) }, {}],
    [
      "and whose tier is unknown",
      { tier: { ok: false, obstacle: { reason: "UnknownTier", message: "" } } },
      {},
    ],
    ["while the process ends", {}, { isEnding: true }],
  ])("%s", (_, changes, options) => {
    const actionsOf = (pipe: PipeView) =>
      actionsFor(aSnapshot([pipe], changes), { ...DECIDE_OPTIONS, ...options });

    it("stays paused until its commit has ended, even if something removed the annotation", () => {
      expect(actionsOf(pausedAgo(0))).toContain("continue-commit a");
      expect(actionsOf(pausedAgo(0, { lastRollout: undefined }))).toContain("continue-commit a");
    });

    it("is resumed when its pods count as updated, or if it has no size any more", () => {
      expect(actionsOf(pausedAgo(0, { rollout: COMPLETE }))).toContain("resume a");
      expect(actionsOf(pausedAgo(0, { size: undefined }))).toContain("resume a");
    });
  });

  it("gets nothing but the end of its commit, like the rest of the service, while the process ends", () => {
    const options = { ...DECIDE_OPTIONS, isEnding: true };
    expect(actionsFor(aSnapshot([pausedAgo(0), aPipe("b")]), options)).toEqual(["continue-commit a"]);
    expect(actionsFor(aSnapshot([aPipe("b")], { scaling: undefined }), options)).toEqual([]);
  });

  it("is finished if it is no pipe of the service any more", () => {
    expect(actionsFor(aSnapshot([], { departed: [pausedAgo(0)] }))).toEqual(["continue-commit a"]);
  });

  it("is finished with the strategy InPlace too, which protects the pods of pipes only", () => {
    const departed = [pausedAgo(0)];
    const mayReplace = (strategy: Snapshot["strategy"]) =>
      decide(aSnapshot([], { departed, strategy }), DECIDE_OPTIONS).actions;
    expect(mayReplace("InPlace")).toMatchObject([{ type: "continue-commit", mayReplacePods: true }]);
    expect(decide(aSnapshot(departed, { strategy: "InPlace" }), DECIDE_OPTIONS).actions).toMatchObject([
      { type: "continue-commit", mayReplacePods: false },
    ]);
  });

  it("is read twice a second until its commit is over, and then when the next attempt is due", () => {
    const unseen = { ...UNDER_WAY, isSeen: false, isUpdated: false };
    const recheckMs = (agoMs: number) => {
      const outcome = failed({ reason: "Refused" });
      const writes = someWrites([
        aWrite("uid-a", "resume", { subject: "1000m/4Gi", outcome, lastAtMs: NOW_MS, attempts: 1 }),
      ]);
      const snapshot = aSnapshot([], { departed: [pausedAgo(agoMs, { rollout: unseen })], writes });
      return recheckAtMs(snapshot, decide(snapshot, DECIDE_OPTIONS)) - NOW_MS;
    };
    expect(recheckMs(29_000)).toBe(500);
    expect(recheckMs(31_000)).toBe(1000);
  });

  it("is read while it is no pipe of the service any more and nothing is to be written, because no watch shows it", () => {
    const departed = [pausedAgo(0, { rollout: { ...UNDER_WAY, isSeen: false, isUpdated: false } })];
    const snapshot = aSnapshot([], { departed });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual(["read a"]);
    expect(recheckAtMs(snapshot, decision)).toBe(NOW_MS + 500);
  });
});

describe("a paused Deployment that is no pipe any more, outside the namespace of its service", () => {
  it("is resumed only when the pause is a minute old, because another release may be committing a resize", () => {
    const departed = [pausedAgo(MINUTE_MS - 1, { rollout: COMPLETE })];
    const snapshot = aSnapshot([], { departed, namespace: undefined });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(recheckAtMs(snapshot, decision)).toBe(NOW_MS + 1);
    expect(actionsFor({ ...snapshot, nowMs: NOW_MS + 1 })).toEqual(["resume a"]);
  });

  it("is resumed at once by the process that paused it", () => {
    const departed = [pausedAgo(0, { rollout: COMPLETE })];
    const writes = someWrites([aWrite("uid-a", "commit")]);
    expect(actionsFor(aSnapshot([], { departed, namespace: "elsewhere", writes }))).toEqual(["resume a"]);
  });
});

describe("a paused Deployment outside the namespace of its service", () => {
  it("is resumed only when the pause is a minute old, because another release may be committing a resize", () => {
    const pipe = pausedAgo(MINUTE_MS, { rollout: COMPLETE });
    expect(actionsFor(aSnapshot([], { orphans: [pipe] }))).toEqual(["resume a"]);
  });

  it("is tried again after a failed write, without an event", () => {
    const pipe = pausedAgo(MINUTE_MS, { rollout: COMPLETE });
    const writes = someWrites([aWrite("uid-a", "resume", { subject: "1000m/4Gi", outcome: failed() })]);
    const snapshot = aSnapshot([], { orphans: [pipe], writes });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    const atMs = recheckAtMs(snapshot, decision);
    expect(atMs).toBeGreaterThan(NOW_MS);
    expect(atMs).toBeLessThanOrEqual(NOW_MS + MINUTE_MS);
  });

  it.each([
    ["younger than a minute", MINUTE_MS - 1, 1],
    ["from a clock that is an hour ahead", -60 * MINUTE_MS, MINUTE_MS],
  ])("stays paused while the pause is %s, and is rechecked", (_, agoMs, inMs) => {
    const snapshot = aSnapshot([], { orphans: [pausedAgo(agoMs)] });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(recheckAtMs(snapshot, decision)).toBe(NOW_MS + inMs);
  });

  it("is resumed at once by the process that paused it", () => {
    const snapshot = aSnapshot([], {
      orphans: [pausedAgo(0, { rollout: COMPLETE })],
      writes: someWrites([aWrite("uid-a", "commit")]),
    });
    expect(actionsFor(snapshot)).toEqual(["resume a"]);
  });

  it("is read if a write to it got no response, because nothing else shows whether it is paused", () => {
    const unknown = aWrite("uid-a", "commit", { outcome: withoutResponse() });
    const snapshot = aSnapshot([], { orphans: [aPipe("a")], writes: someWrites([unknown]) });
    expect(actionsFor(snapshot)).toEqual(["read a"]);
  });

  it("stays paused if its owner paused it", () => {
    const snapshot = aSnapshot([], { orphans: [aPipe("a", { isPaused: true })] });
    expect(decide(snapshot, DECIDE_OPTIONS).actions).toEqual([]);
  });
});
