import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import type { PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeFields } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
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
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aPodWrite, aWrite, failed, someWrites, type Write } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);
const WAITS = "its next step waits while the service is suspended";
const FOLLOWS = "its template follows its pods";
const MOVES = "its pods are being resized in place";

/** The status of a service with one pipe, before and after the service is suspended. */
function statusesOf(pipe: PipeView, pods: readonly PodView[] = [], writes: readonly Write[] = []) {
  const statusWith = (suspend: boolean, status: PipeScalingStatus = {}) => {
    const scaling = aScaling(4, { spec: { ...sizeFields(FOUR), suspend }, status });
    const snapshot = aSnapshot([pipe], {
      scaling,
      pods: new Map([["a", pods]]),
      writes: someWrites(writes),
      strategy: "InPlaceOrRollout",
    });
    return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
  };
  const before = statusWith(false);
  return [before, statusWith(true, before)];
}

function messagesOf(...given: Parameters<typeof statusesOf>) {
  return statusesOf(...given).map(({ pipes }) => pipes?.pending?.[0]?.message);
}

function retriesOf(...given: Parameters<typeof statusesOf>) {
  return statusesOf(...given).map(({ failures }) => failures?.map(({ nextRetryAt }) => nextRetryAt));
}

/** A pipe with this number of pods of one core. */
function ofPods(replicas: number, changes: Partial<PipeView> = {}): PipeView {
  return aLabelledPipe("a", { replicas, rollout: { ...COMPLETE, replicas }, ...changes });
}

const inCommit = {
  size: FOUR,
  lastRollout: aRollout(FOUR, { isCommitting: true, inPlaceStartedAtMs: NOW_MS - 60_000 }),
  isPaused: true,
  isPausedForCommit: true,
  pausedForCommitAtMs: NOW_MS - 1000,
};

describe("a pipe whose service is suspended in the middle of its resize in place", () => {
  it("waits if other pods are left to resize", () => {
    const pods = [aResizedPod("a-1"), aPod("a-2"), aPod("a-3")];
    expect(messagesOf(ofPods(3), pods)).toEqual([MOVES, WAITS]);
  });

  it("waits if its template has not followed", () => {
    expect(messagesOf(ofPods(1), [aResizedPod("a-1")])).toEqual([FOLLOWS, WAITS]);
  });

  it("waits if its pods have to return to their size", () => {
    const inPlaceFailure = { size: FOUR, reason: "Deferred", message: "no room", atMs: NOW_MS } as const;
    const lastRollout = aRollout(sizeOfCores(1), { inPlaceFailure });
    expect(messagesOf(ofPods(2, { lastRollout }), [aResizedPod("a-1"), aPod("a-2")])).toEqual([
      "its pods get their old size again before they are replaced",
      WAITS,
    ]);
  });

  it.each<[string, PodView, readonly Write[]]>([
    ["a kubelet resizes a pod", aResizedPod("a-1", { observedGeneration: 1 }), [aPodWrite("a-1")]],
    ["a write to a pod has not ended", aPod("a-1"), [aPodWrite("a-1", { outcome: { type: "pending" } })]],
  ])("goes on while %s", (_, pod, writes) => {
    expect(messagesOf(ofPods(2), [pod, aPod("a-2")], writes)).toEqual([MOVES, MOVES]);
  });

  it("goes on during a commit, and while the write that begins the commit has not ended", () => {
    const begun = aWrite("uid-a", "commit", { outcome: { type: "pending" } });
    const pods = [aResizedPod("a-1")];
    expect(messagesOf(ofPods(1, inCommit), pods)).toEqual([FOLLOWS, FOLLOWS]);
    expect(messagesOf(ofPods(1), pods, [begun])).toEqual([FOLLOWS, FOLLOWS]);
  });

  it("is not searched for room", () => {
    const resize = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
    const write = aPodWrite("a-1", { lastAtMs: NOW_MS - 60_000 });
    const pods = [aResizedPod("a-1", { resize })];
    expect(messagesOf(ofPods(1, { stopsOldPodsFirst: true }), pods, [write])).toEqual([
      "pod a-1 waits for room on its node (no room); other nodes are being searched for room",
      "pod a-1 waits for room on its node (no room); other nodes are not searched for room",
    ]);
  });
});

describe("the failure of a pipe whose service is suspended", () => {
  const outcome = failed();

  it.each<[string, PipeView, readonly PodView[], Write]>([
    ["a write to a pod", ofPods(2), [aResizedPod("a-1"), aPod("a-2")], aPodWrite("a-2", { outcome })],
    ["a rollout", aPipe("a"), [], aWrite("uid-a", "resize", { outcome })],
    ["the first write of a commit", ofPods(1), [aResizedPod("a-1")], aWrite("uid-a", "commit", { outcome })],
  ])("has no time of a retry, because none is made: %s", (_, pipe, pods, write) => {
    expect(retriesOf(pipe, pods, [write])).toEqual([[expect.any(String)], [undefined]]);
  });

  it("has none either if the retry is due, and the pipe waits for its turn", () => {
    const due = aWrite("uid-a", "resize", { outcome, lastAtMs: NOW_MS - 60_000 });
    expect(retriesOf(aPipe("a"), [], [due])).toEqual([[expect.any(String)], [undefined]]);
  });

  it("has it during a commit, which goes on", () => {
    const write = aWrite("uid-a", "continue-commit", { outcome });
    const pipe = ofPods(1, { ...inCommit, rollout: { ...COMPLETE, isUpdated: false } });
    const [before, after] = retriesOf(pipe, [aResizedPod("a-1")], [write]);
    expect(before).toEqual([expect.any(String)]);
    expect(after).toEqual(before);
  });

  it("announces no attempt of a rollback", () => {
    const stuck = rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, { startedAtMs: 0 }) });
    const write = aWrite("uid-a", "roll-back", { outcome, attempts: 2 });
    const [before, after] = messagesOf(stuck, [], [write]);
    expect(before).toMatch(/the rollback failed: no \(attempt 2, next at 2026-/);
    expect(after).toMatch(/the rollback failed: no \(attempt 2\)$/);
  });
});
