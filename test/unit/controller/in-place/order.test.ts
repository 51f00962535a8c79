import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
const names = ["a", "b", "c", "d", "e", "f", "g", "h"];

/** A service whose pipes are resized in place, each with one pod. */
function decided(
  pods: readonly PodView[],
  changes: Partial<Snapshot> = {},
  options: Partial<typeof DECIDE_OPTIONS> = {},
) {
  const used = names.slice(0, pods.length);
  const pipes = used.map((name) => aLabelledPipe(name));
  const snapshot = aSnapshot(pipes, {
    strategy: "InPlaceOrRollout",
    pods: new Map(used.map((name, at) => [name, pods.slice(at, at + 1)])),
    ...changes,
  });
  const decision = decide(snapshot, { ...DECIDE_OPTIONS, ...options });
  const atMs = recheckAtMs(snapshot, decision);
  return { decision, atMs, summary: summaries(decision.actions), waitReason: decision.sizing?.waitReason };
}

const resized = (name: string, changes: Partial<PodView> = {}) =>
  aResizedPod(name, { resizedAtMs: NOW_MS - 1000, ...changes });
const four = ["a-1", "b-1", "c-1", "d-1"].map((name) => aPod(name));

describe("the pipes of a service that is resized in place", () => {
  it("begin with one canary, without a place in the limit of rollouts", () => {
    expect(decided(four, {}, { overallFree: 0, commitsFree: 0 })).toMatchObject({
      summary: ["resize-pod a-1"],
      waitReason: "canary",
    });
  });

  it("do not wait for one of their service that must restart and waits for other services", () => {
    const pipes = [aPipe("a"), aLabelledPipe("b")];
    expect(decided([aPod("a-1"), aPod("b-1")], { pipes }, { overallFree: 0 })).toMatchObject({
      summary: ["resize-pod b-1"],
      waitReason: "overall-limit",
    });
  });

  it("follow when the pods of the canary run the size and are available, before its template has it", () => {
    const [, ...others] = four;
    expect(decided([resized("a-1"), ...others], {}, { commitsFree: 0 })).toMatchObject({
      summary: ["resize-pod b-1", "resize-pod c-1", "resize-pod d-1"],
      decision: { waitsForCommit: true },
    });
  });

  it("wait for a canary that is not available, for as long as a rollout may take", () => {
    const unavailable = (agoMs: number) =>
      decided([resized("a-1", { resizedAtMs: NOW_MS - agoMs }), aPod("b-1")], {
        pipes: [aLabelledPipe("a", { rollout: { ...COMPLETE, isAvailable: false } }), aLabelledPipe("b")],
      });
    expect(unavailable(POLICY.rolloutTimeoutMs - 1)).toMatchObject({
      summary: ["commit a"],
      waitReason: "canary",
      atMs: NOW_MS + 1,
    });
    expect(unavailable(POLICY.rolloutTimeoutMs).summary).toEqual(["resize-pod b-1", "commit a"]);
  });

  it("wait for 30 s after a smaller memory of the canary", () => {
    const sizes = { size: sizeOfCores(8) };
    const heldFor = (agoMs: number) =>
      decided([resized("a-1", { resizedAtMs: NOW_MS - agoMs }), aPod("b-1")], {
        pipes: [aLabelledPipe("a", sizes), aLabelledPipe("b", sizes)],
      });
    expect(heldFor(29_999)).toMatchObject({ summary: ["commit a"], atMs: NOW_MS + 1 });
    expect(heldFor(30_000).summary).toEqual(["resize-pod b-1", "commit a"]);
  });

  it("wait no longer because a clock was ahead when the canary got the size", () => {
    const aheadMs = 3_600_000;
    const [eight, times] = [sizeOfCores(8), { startedAtMs: NOW_MS + aheadMs, inPlaceStartedAtMs: NOW_MS }];
    const committed = { size: FOUR, lastRollout: aRollout(FOUR, { ...times, lastGoodSize: eight }) };
    const held = (resizedAtMs: number, pipe: Partial<PipeView> = { size: eight }) =>
      decided([resized("a-1", { resizedAtMs }), aPod("b-1")], {
        pipes: [aLabelledPipe("a", pipe), aLabelledPipe("b", { size: eight })],
      }).summary;
    expect(held(NOW_MS + aheadMs)).toContain("resize-pod b-1");
    expect(held(NOW_MS - aheadMs, committed)).toContain("resize-pod b-1");
    const rollout = { ...COMPLETE, isAvailable: false };
    expect(held(NOW_MS + aheadMs, { size: eight, rollout })).toContain("resize-pod b-1");
    // The clocks of a cluster differ a little.
    expect(held(NOW_MS + 60_000)).toEqual(["commit a"]);
  });

  it("have as many commits as there are places, in the order of their names", () => {
    const pods = names.map((name) => resized(`${name}-1`));
    const { summary, decision } = decided(pods, {}, { commitsFree: 2 });
    expect(summary).toEqual(["commit a", "commit b"]);
    expect(decision.waitsForCommit).toBe(true);
    expect(decided(pods, {}, { commitsFree: 8 })).toMatchObject({
      summary: names.map((name) => `commit ${name}`),
      decision: { waitsForCommit: false },
    });
  });

  it("do not begin with another size while one is in its commit, and that commit ends with its own size", () => {
    const pause = { isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: NOW_MS - 1000 };
    const lastRollout = aRollout(FOUR, { isCommitting: true });
    const [committing, other] = [
      aLabelledPipe("a", { size: FOUR, lastRollout, ...pause }),
      aLabelledPipe("b"),
    ];
    const rollout = { ...COMPLETE, isUpdated: false, isComplete: false };
    const { summary, waitReason } = decided([resized("a-1"), aPod("b-1")], {
      pipes: [{ ...committing, rollout }, other],
      scaling: aScaling(6),
    });
    expect(summary).toEqual(["continue-commit a"]);
    expect(waitReason).toBe("canary");
  });

  it("are tried first, all of them, because each one has its own template", () => {
    expect(decided(four, {}, { makesDryRuns: true })).toMatchObject({
      summary: ["dry run of a", "dry run of b", "dry run of c", "dry run of d"],
      waitReason: "dry-runs",
    });
  });

  it("begin with the one whose template has the size, because only its pods lack it", () => {
    const pipes = [aLabelledPipe("a"), aLabelledPipe("b", { size: FOUR })];
    expect(decided([aPod("a-1"), aPod("b-1")], { pipes })).toMatchObject({
      summary: ["resize-pod b-1"],
      waitReason: "canary",
    });
  });

  it("begin with the one that could not be resized in place, which stays the first one", () => {
    const inPlaceFailure = {
      size: FOUR,
      reason: "Infeasible",
      message: "large",
      atMs: NOW_MS - 1000,
    } as const;
    const lastRollout = aRollout(sizeOfCores(1), { inPlaceFailure, cameUp: true });
    const pipes = [aLabelledPipe("a"), aLabelledPipe("b", { lastRollout })];
    expect(decided([aPod("a-1"), aPod("b-1")], { pipes })).toMatchObject({
      summary: ["b 4000m/16Gi"],
      waitReason: "canary",
    });
  });

  it("continue with the one that has begun", () => {
    const begun = decided([aPod("a-1"), aResizedPod("b-1", { observedGeneration: 1 }), aPod("c-1")]);
    expect(begun).toMatchObject({
      summary: [],
      waitReason: "canary",
      decision: { sizing: { blockedBy: ["b"] } },
    });
  });
});
