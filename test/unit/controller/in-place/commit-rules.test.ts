import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { commitStep } from "../../../../src/controller/in-place/commit-rules.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { ContainerView, PodView } from "../../../../src/controller/observe/pod-view.ts";
import { HOLD } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { formatSize, type Size, sizeOfCores } from "../../../../src/domain/size.ts";
import type { StatefulSet } from "../../../../src/kube/workloads.ts";
import { assessmentsIn } from "../../../support/fixtures/decisions.ts";
import type { StatefulSetOptions } from "../../../support/fixtures/pipe.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import { managedBy } from "../../../support/fixtures/resized-deployment.ts";
import {
  aLabelledPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aWrite, failed, someWrites, type Write, withoutResponse } from "../../../support/fixtures/writes.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);
const EIGHT = sizeOfCores(8);
const SECOND = 1000;

/** A Deployment that the controller paused so long ago. */
function paused(agoMs: number, changes: Partial<PipeView> = {}): PipeView {
  const lastRollout = aRollout(FOUR, { isCommitting: true, inPlaceStartedAtMs: NOW_MS - 60 * SECOND });
  const pause = { isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: NOW_MS - agoMs };
  return aLabelledPipe("a", { size: FOUR, lastRollout, ...pause, ...changes });
}

const UNSEEN = { rollout: { ...COMPLETE, isSeen: false, isUpdated: false, isComplete: false } };
const BEHIND = { rollout: { ...COMPLETE, isUpdated: false, isComplete: false } };

function stepOf(pipe: PipeView, writes: readonly Write[] = []) {
  const about = { nowMs: NOW_MS, timeouts: TIMEOUTS, scaling: aScaling(4), strategy: "Rollout" } as const;
  const context = { ...about, writes: someWrites(writes) };
  const { actions, recheckAtMs } = commitStep(pipe, context);
  const [action] = actions;
  return { type: action?.type, recheckAtMs, action };
}

describe("a Deployment that the controller has paused", () => {
  it("waits until the Deployment controller has seen the pause", () => {
    expect(stepOf(paused(SECOND, UNSEEN))).toMatchObject({
      type: undefined,
      recheckAtMs: NOW_MS + 29 * SECOND,
    });
  });

  it("writes nothing while any other write of the commit is on its way, also of a size that its owner changed", () => {
    const pending = (purpose: "resume" | "continue-commit", size: Size) =>
      aWrite("uid-a", purpose, { subject: formatSize(size), outcome: { type: "pending" } });
    for (const pipe of [paused(SECOND), paused(SECOND, BEHIND), paused(60 * SECOND, BEHIND)]) {
      expect(stepOf(pipe, [pending("resume", FOUR)]).type).toBeUndefined();
      expect(stepOf(pipe, [pending("continue-commit", ONE)]).type).toBeUndefined();
    }
  });

  it("is read before it is resumed if its owner changed the size after the write to its ReplicaSet", () => {
    const done = (size: Size, lastAtMs: number) =>
      aWrite("uid-a", "continue-commit", { subject: formatSize(size), lastAtMs, outcome: { type: "done" } });
    expect(stepOf(paused(10 * SECOND), [done(FOUR, NOW_MS - SECOND)]).type).toBe("resume");
    expect(stepOf(paused(10 * SECOND), [done(ONE, NOW_MS - SECOND)]).type).toBe("continue-commit");
    // A write of an earlier commit.
    expect(stepOf(paused(10 * SECOND), [done(ONE, NOW_MS - 60 * SECOND)]).type).toBe("resume");
  });

  it("has its ReplicaSet updated once, when the Deployment controller has seen the pause", () => {
    expect(stepOf(paused(SECOND, BEHIND))).toMatchObject({
      type: "continue-commit",
      action: { isOverdue: false },
    });
    const done = (generation: number) =>
      aWrite("uid-a", "continue-commit", { outcome: { type: "done", generation } });
    expect(stepOf(paused(SECOND, BEHIND), [done(1)]).type).toBeUndefined();
    // The owner changed the Deployment meanwhile.
    const before = done(0);
    expect(stepOf(paused(SECOND, BEHIND), [before]).type).toBe("continue-commit");
  });

  it.each<[string, Partial<PipeView>]>([
    ["all of its pods count as updated", {}],
    ["its owner removed the size", { ...BEHIND, size: undefined }],
    ["it is unclear which container has the size", { ...BEHIND, container: { problem: "two" } }],
  ])("is resumed if %s", (_, changes) => {
    expect(stepOf(paused(SECOND, changes)).type).toBe("resume");
  });

  it("has its ReplicaSet updated also if its only pod was just deleted, because a rollout would follow", () => {
    const withoutPods = { rollout: { ...BEHIND.rollout, replicas: 0 } };
    expect(stepOf(paused(SECOND, withoutPods)).type).toBe("continue-commit");
  });

  it.each([
    ["has not seen the pause", UNSEEN],
    ["has not counted the pods", BEHIND],
  ])("gets its old template again after 30 s if the Deployment controller %s", (_, changes) => {
    expect(stepOf(paused(30 * SECOND - 1, UNSEEN)).type).toBeUndefined();
    expect(stepOf(paused(30 * SECOND, changes)).action).toMatchObject({
      isOverdue: true,
      fallback: undefined,
    });
  });

  it("has the whole time if the clock was ahead", () => {
    expect(stepOf(paused(-3600 * SECOND, UNSEEN)).recheckAtMs).toBe(NOW_MS + 30 * SECOND);
  });

  it("has a failed write repeated with a delay that doubles", () => {
    const failing = (attempts: number, lastAtMs: number) =>
      aWrite("uid-a", "continue-commit", { subject: "4000m/16Gi", attempts, lastAtMs, outcome: failed() });
    expect(stepOf(paused(9 * SECOND, BEHIND), [failing(3, NOW_MS - 3999)])).toMatchObject({
      type: undefined,
      recheckAtMs: NOW_MS + 1,
    });
    expect(stepOf(paused(9 * SECOND, BEHIND), [failing(3, NOW_MS - 4000)]).type).toBe("continue-commit");
  });

  it.each(["Refused", "Forbidden"] as const)(
    "gets its old template again at once, with the reason, after %s",
    (reason) => {
      const refusal = aWrite("uid-a", "continue-commit", {
        subject: "4000m/16Gi",
        outcome: failed({ reason, message: "never" }),
      });
      expect(stepOf(paused(SECOND, BEHIND), [refusal]).action).toMatchObject({
        isOverdue: true,
        fallback: { reason, message: "never" },
      });
    },
  );

  it("gets no other write while one is open", () => {
    for (const outcome of [{ type: "pending" } as const, withoutResponse()]) {
      const open = aWrite("uid-a", "resume", { subject: "4000m/16Gi", outcome });
      expect(stepOf(paused(SECOND), [open])).toMatchObject({
        type: undefined,
        recheckAtMs: Number.POSITIVE_INFINITY,
      });
    }
  });
});

describe("a pipe in a commit", () => {
  const decisionOf = (pipe: PipeView, pods: readonly PodView[], changes: Partial<Snapshot> = {}) => {
    const strategy = "InPlaceOrRollout";
    const snapshot = aSnapshot([pipe], { strategy, pods: new Map([["a", pods]]), ...changes });
    const [assessment] = assessmentsIn(decide(snapshot, DECIDE_OPTIONS));
    return assessment;
  };

  it("is resized if its pods run the desired size, and rolling otherwise", () => {
    const pods = [aResizedPod("a-1")];
    expect(decisionOf(paused(SECOND), pods)).toMatchObject({ state: "resized", phase: "settled" });
    expect(decisionOf(paused(SECOND), [aPod("a-1")])).toMatchObject({ state: "rolling" });
    expect(decisionOf(paused(SECOND), pods, { scaling: aScaling(6) })).toMatchObject({ state: "rolling" });
  });

  it("keeps no other pipe waiting after two minutes", () => {
    const pods = [aPod("a-1")];
    expect(decisionOf(paused(120 * SECOND - 1, UNSEEN), pods)?.phase).toBe("resizing");
    expect(decisionOf(paused(120 * SECOND, UNSEEN), pods)?.phase).toBe("overdue");
  });

  it("reports the write that fails", () => {
    const writes = someWrites([
      aWrite("uid-a", "resume", { subject: "4000m/16Gi", outcome: failed({ message: "down" }) }),
    ]);
    expect(decisionOf(paused(SECOND), [aResizedPod("a-1")], { writes })).toMatchObject({
      state: "resized",
      failure: { reason: "WriteFailed", message: "down", retryAtMs: NOW_MS + SECOND },
    });
  });
});

describe("a pipe whose pods all have the size", () => {
  const pods = [
    aResizedPod("a-1", { resizedAtMs: NOW_MS - 5000 }, { restartCount: 2 }),
    aResizedPod("a-2", { resizedAtMs: NOW_MS - 2000 }, { restartCount: 1 }),
  ];
  const decided = (
    pipe: Partial<PipeView> = {},
    writes: readonly Write[] = [],
    changes: Partial<Snapshot> = {},
    ofPipe: readonly PodView[] = pods,
  ) => {
    const snapshot = aSnapshot([aLabelledPipe("a", { replicas: 2, ...pipe })], {
      strategy: "InPlaceOrRollout",
      pods: new Map([["a", ofPipe]]),
      writes: someWrites(writes),
      ...changes,
    });
    const { actions, sizing } = decide(snapshot, DECIDE_OPTIONS);
    return { actions, assessment: sizing?.assessments[0] };
  };

  it("has its template follow, with the time of the first resize, the restarts and no new revision", () => {
    expect(decided().actions).toMatchObject([
      {
        type: "commit",
        rollout: {
          size: FOUR,
          isCommitting: true,
          inPlaceStartedAtMs: NOW_MS - 5000,
          lastGoodSize: ONE,
          revision: 1,
          restarts: 3,
        },
      },
    ]);
  });

  it.each<[string, Partial<Snapshot>]>([
    ["the strategy is Rollout by now", { strategy: "Rollout" }],
    ["no rollout may begin", { rolloutWindow: aWindow() }],
  ])("has its template follow although %s", (_, changes) => {
    expect(decided({}, [], changes).actions).toMatchObject([{ type: "commit" }]);
  });

  it("gets its size back without a write to its template if the earlier size is desired", () => {
    const { actions } = decided({}, [], { scaling: aScaling(1) });
    expect(actions).toMatchObject([{ type: "resize-pod", pod: { metadata: { name: "a-1" } } }]);
  });

  it("waits until its owner resumes it, and its pods keep the size", () => {
    const { actions, assessment } = decided({ isPaused: true });
    expect(actions).toEqual([]);
    expect(assessment).toMatchObject({
      state: "resized",
      activity: "its owner paused the Deployment: resume it",
    });
  });

  it("waits until the Deployment is settled", () => {
    expect(decided(UNSEEN)).toMatchObject({ actions: [], assessment: { state: "resized" } });
    expect(decided(BEHIND)).toMatchObject({ actions: [], assessment: { state: "resized" } });
  });

  it("has the pause repeated for as long as it fails, and its pods are not replaced", () => {
    const at = (agoMs: number) =>
      decided({}, [aWrite("uid-a", "commit", { attempts: 40, lastAtMs: NOW_MS - agoMs, outcome: failed() })]);
    expect(at(300_000 - 1)).toMatchObject({
      actions: [],
      assessment: {
        state: "resized",
        failure: { attempts: 40, retryAtMs: NOW_MS + 1 },
        recheckAtMs: NOW_MS + 1,
      },
    });
    expect(at(300_000).actions).toMatchObject([{ type: "commit" }]);
  });

  it("records the reason for a rollout if the values are refused", () => {
    const outcome = failed({ reason: "Refused", message: "policy", fallback: "Refused" });
    expect(decided({}, [aWrite("uid-a", "commit", { outcome })]).actions).toMatchObject([
      { type: "adopt", rollout: { inPlaceFailure: { size: FOUR, reason: "Refused", message: "policy" } } },
    ]);
  });

  describe("that is less memory than before, and whose container is OOM-killed an hour later,", () => {
    const resizedAtMs = NOW_MS - 3_600_000;
    const killed = { restartCount: 1, restartedAtMs: NOW_MS - 60_000, isOomKilled: true };
    const shrunk = [aResizedPod("a-1", { resizedAtMs }, killed), aResizedPod("a-2", { resizedAtMs })];
    const decidedAfter = (
      writes: readonly Write[],
      pipe: Partial<PipeView> = {},
      strategy: Snapshot["strategy"] = "InPlaceOrRollout",
      pods: readonly PodView[] = shrunk,
    ) => decided({ size: EIGHT, ...pipe }, writes, { strategy }, pods).actions;
    const commit = (changes: Partial<Write["record"]>) => aWrite("uid-a", "commit", changes);
    const refused = failed({ reason: "Refused", fallback: "Refused" });
    /** The annotation after a commit that was undone. */
    const undone = (changes: Partial<LastRollout> = {}): Partial<PipeView> => ({
      lastRollout: aRollout(EIGHT, {
        attempts: 0,
        inPlaceStartedAtMs: resizedAtMs,
        startedAtMs: resizedAtMs + SECOND,
        cameUp: true,
        ...changes,
      }),
    });
    const RESTARTED = [
      { type: "adopt", rollout: { inPlaceFailure: { size: FOUR, reason: "Restarted" } } },
    ] as const;

    it.each<[string, readonly Write[], Partial<PipeView>, Snapshot["strategy"]]>([
      ["no commit was tried", [], {}, "InPlaceOrRollout"],
      ["the first write of the commit failed", [commit({ outcome: failed() })], {}, "InPlaceOrRollout"],
      ["the write failed, and no pod may be replaced", [commit({ outcome: failed() })], {}, "InPlace"],
      ["the write is refused, and no pod may be replaced", [commit({ outcome: refused })], {}, "InPlace"],
      [
        "the pipe lost a label meanwhile, and no pod may be replaced",
        [],
        { templateProblem: { reason: "PodsNotLabeled", message: "no label" } },
        "InPlace",
      ],
      [
        "the commit of an earlier size was undone",
        [],
        undone({ startedAtMs: resizedAtMs - SECOND }),
        "InPlace",
      ],
      ["the commit for an earlier service was undone", [], undone({ serviceId: "other" }), "InPlace"],
      ["its present resources were only recorded", [], undone({ inPlaceStartedAtMs: undefined }), "InPlace"],
    ])("records the reason for a rollout if %s", (_, writes, pipe, strategy) => {
      expect(decidedAfter(writes, pipe, strategy)).toMatchObject(RESTARTED);
    });

    it.each<[string, readonly Write[], Partial<PipeView>]>([
      ["the first write has no response yet", [commit({ outcome: { type: "pending" } })], {}],
      ["it is not known whether the first write succeeded", [commit({ outcome: withoutResponse() })], {}],
      ["the commit was undone", [commit({ outcome: failed({ isUndone: true }) })], undone()],
      ["another controller undid the commit", [], undone()],
      ["the commit was undone before its last write failed", [commit({ outcome: failed() })], undone()],
    ])("records none if %s", (_, writes, pipe) => {
      expect(decidedAfter(writes, pipe)).not.toMatchObject(RESTARTED);
    });

    it.each<[string, Partial<ContainerView>, Size]>([
      ["a container ended for another reason", { isOomKilled: false }, EIGHT],
      ["it was killed before the resize", { restartedAtMs: resizedAtMs - SECOND, isRunning: false }, EIGHT],
      ["the size is more memory than before", {}, ONE],
    ])("records none after the first write failed if %s", (_, changes, size) => {
      const pods = [aResizedPod("a-1", { resizedAtMs: NOW_MS - 70_000 }, { ...killed, ...changes })];
      const [pipe, writes] = [{ size, replicas: 1 }, [commit({ outcome: failed() })]];
      expect(decidedAfter(writes, pipe, "InPlaceOrRollout", pods)).not.toMatchObject(RESTARTED);
      expect(decidedAfter([], pipe, "InPlaceOrRollout", pods)).toMatchObject(RESTARTED);
    });
  });
});

describe("a StatefulSet whose pods all have the size", () => {
  const size = { templateHash: "a-1" };
  const ENDING = aPod("a-1", { ...size, isTerminating: true, isActive: false });
  const decided = (
    status: StatefulSet["status"],
    second: PodView = aResizedPod("a-1", size),
    options: Partial<StatefulSetOptions> = {},
  ) => {
    const counts = { replicas: 2, updatedReplicas: 2, availableReplicas: 2, ...status };
    const metadata = { managedFields: managedBy("kubectl") };
    const made = aStatefulPipe({ options: { replicas: 2, ...options }, status: counts, metadata });
    const pipe = { ...made, hasLabelledPods: true, templateProblem: undefined };
    const pods = new Map([["statefulset/a", [aResizedPod("a-0", size), second]]]);
    const snapshot = aSnapshot([pipe], { strategy: "InPlaceOrRollout", pods });
    const { actions, sizing } = decide(snapshot, DECIDE_OPTIONS);
    return { types: actions.map(({ type }) => type), activity: sizing?.assessments[0]?.activity };
  };
  const UNREADY = { availableReplicas: 1, currentRevision: "a-0" };

  it("has its template follow, although a pod is not ready", () => {
    expect(decided({}).types).toEqual(["commit"]);
    expect(decided({ availableReplicas: 1 }).types).toEqual(["commit"]);
  });

  it("waits for a pod that is terminating, and names it", () => {
    expect(decided({ updatedReplicas: 1 }, ENDING)).toEqual({
      types: [],
      activity: "its template follows when its pod a-1 has ended",
    });
  });

  it("waits for its pods to be ready if a pod that is created during the hold would get a template of before", () => {
    expect(decided(UNREADY)).toEqual({
      types: [],
      activity: "its template follows when all of its pods are ready",
    });
  });

  it.each([{ type: "OnDelete" }, { type: "RollingUpdate", rollingUpdate: { partition: HOLD } }] as const)(
    "does not wait for its pods to be ready if the commit holds nothing: %o",
    (updateStrategy) => {
      expect(decided(UNREADY, undefined, { updateStrategy }).types).toEqual(["commit"]);
    },
  );
});
