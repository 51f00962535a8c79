import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { failuresIn, statesFor, summaries } from "../../../support/fixtures/decisions.ts";
import { rolling } from "../../../support/fixtures/in-turn.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { annotated, aWrite, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

describe("a pipe that got its size without replicas, and whose pods are not seen", () => {
  const MINUTE_MS = 60_000;
  const timeoutMs = POLICY.rolloutTimeoutMs;
  const unavailableFor = (ms: number | undefined, startedAgoMs = 10 * timeoutMs) => {
    const lastRollout = aRollout(FOUR, { startedAtMs: NOW_MS - startedAgoMs, replicas: 0 });
    const unavailableSinceMs = ms === undefined ? undefined : NOW_MS - ms;
    const rollout = { ...UNDER_WAY, isAvailable: false, isAnyAvailable: false, unavailableSinceMs };
    const snapshot = aSnapshot([rollingTo("a", FOUR, { lastRollout, rollout })]);
    const decision = decide(snapshot, DECIDE_OPTIONS);
    return { ...decision, atMs: recheckAtMs(snapshot, decision) };
  };

  it("is rolled back when none has been available for the time of a rollout", () => {
    const decision = unavailableFor(timeoutMs);
    expect(summaries(decision.actions)).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresIn(decision)).toMatchObject([{ reason: "RolloutTimeout" }]);
  });

  it.each([
    ["before that", timeoutMs - MINUTE_MS, undefined],
    ["if one is available, or that is not known", undefined, undefined],
    ["if the controller wrote the size later", 10 * timeoutMs, MINUTE_MS],
  ])("is not rolled back %s", (_, ms, startedAgoMs) => {
    expect(failuresIn(unavailableFor(ms, startedAgoMs))).toEqual([]);
  });

  it("is looked at again at that time", () => {
    expect(unavailableFor(timeoutMs - MINUTE_MS).atMs).toBe(NOW_MS + MINUTE_MS);
  });
});

describe("a pipe that cannot run the size", () => {
  const late = aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs });
  const condition = (type: string, reason: string, at: number) => {
    const time = new Date(at).toISOString();
    return { type, status: "True", reason, message: reason, lastUpdateTime: time, lastTransitionTime: time };
  };

  it.each<[string, Partial<PipeView>]>([
    ["RolloutTimeout", { lastRollout: late }],
    [
      "ProgressDeadlineExceeded",
      {
        rollout: { ...UNDER_WAY, progressing: condition("Progressing", "ProgressDeadlineExceeded", NOW_MS) },
      },
    ],
    [
      "FailedCreate",
      {
        rollout: {
          ...UNDER_WAY,
          replicaFailure: condition("ReplicaFailure", "FailedCreate", NOW_MS - 30_000),
        },
      },
    ],
  ])("is rolled back because of %s, and the others are not resized", (reason, changes) => {
    const decision = decide(aSnapshot([rollingTo("a", FOUR, changes), aPipe("b")]), DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresIn(decision)).toMatchObject([
      { pipe: "a", size: { summary: "4 cpu / 16 Gi" }, reason, attempts: 1 },
    ]);
  });

  it.each<[string, boolean, Partial<PipeView>]>([
    ["of its owner, who scaled it up", false, { lastRollout: { ...late, replicas: 0 } }],
    [
      "of its owner, who resumed it during a commit",
      false,
      { lastRollout: { ...late, inPlaceStartedAtMs: 1 } },
    ],
    ["that its owner changed", false, { revision: late.revision + 1 }],
    ["that the controller began with another strategy", true, {}],
  ])(
    "with the strategy InPlace, is rolled back only from a rollout of the controller: %s",
    (_, is, changes) => {
      const rollout = {
        ...UNDER_WAY,
        progressing: condition("Progressing", "ProgressDeadlineExceeded", NOW_MS),
      };
      const pipe = rollingTo("a", FOUR, { lastRollout: late, rollout, ...changes });
      const { actions, sizing } = decide(aSnapshot([pipe], { strategy: "InPlace" }), DECIDE_OPTIONS);
      expect(summaries(actions)).toEqual(is ? ["a back to 1000m/4Gi"] : []);
      expect(sizing?.assessments[0]?.state).toBe("failed");
    },
  );

  it("is not resized again although another writer removed the annotation of the rollback", () => {
    const lastRollout = aRollout(FOUR, {
      isRollback: true,
      failure: { reason: "FailedCreate", message: "no pod" },
      attempts: 3,
    });
    const writes = someWrites([aWrite("uid-a", "roll-back", { outcome: annotated(lastRollout) })]);
    const snapshot = aSnapshot([aPipe("a", { size: sizeOfCores(2) })], { writes });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual([]);
    expect(failuresIn(decision)).toMatchObject([{ reason: "FailedCreate", attempts: 3 }]);
  });

  it("has failed while the rollback has no response yet, and is not rolled back again", () => {
    const writes = someWrites([aWrite("uid-a", "roll-back", { outcome: { type: "pending" } })]);
    const decision = decide(
      aSnapshot([rollingTo("a", FOUR, { lastRollout: late }), aPipe("b")], { writes }),
      DECIDE_OPTIONS,
    );
    expect(summaries(decision.actions)).toEqual([]);
    expect(failuresIn(decision)).toMatchObject([{ pipe: "a", reason: "RolloutTimeout" }]);
    expect(decision.sizing?.assessments[0]).toMatchObject({ state: "failed" });
  });

  const words = "0/3 nodes are available: 3 Insufficient cpu.";
  const pods = new Map([["a", [aPod("a-1", { unschedulable: words }, { resources: amounts(FOUR) })]]]);

  it("is rolled back soon if its new pod fits on no node and the old pod no longer exists", () => {
    const decision = decide(
      aSnapshot([rollingTo("a", FOUR, { stopsOldPodsFirst: true })], { pods }),
      DECIDE_OPTIONS,
    );
    expect(summaries(decision.actions)).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresIn(decision)).toMatchObject([{ reason: "Unschedulable", message: words }]);
  });

  it("waits for a node if it still has its old pods, and the reason is reported", () => {
    const waiting = decide(aSnapshot([rollingTo("a", FOUR)], { pods }), DECIDE_OPTIONS);
    expect(summaries(waiting.actions)).toEqual([]);
    expect(waiting.sizing?.assessments).toMatchObject([{ state: "rolling", obstacle: words }]);
    const tooLong = decide(
      aSnapshot([rollingTo("a", FOUR, { lastRollout: late })], { pods }),
      DECIDE_OPTIONS,
    );
    expect(failuresIn(tooLong)).toMatchObject([
      { reason: "RolloutTimeout", message: `the rollout has not completed in 15 min: ${words}` },
    ]);
  });

  it("waits for the room of pods that terminate, and then until the scheduler has tried again", () => {
    const ending = aPod("a-0", { isTerminating: true, isActive: false });
    const [pod] = pods.get("a") ?? [];
    const pipe = rollingTo("a", FOUR, { stopsOldPodsFirst: true });
    const decided = (changes: Partial<Snapshot>) => {
      const snapshot = aSnapshot([pipe], { pods, ...changes });
      const decision = decide(snapshot, DECIDE_OPTIONS);
      return { actions: summaries(decision.actions), atMs: recheckAtMs(snapshot, decision) };
    };
    const both = new Map([["a", pod ? [ending, pod] : []]]);
    expect(decided({ pods: both }).actions).toEqual([]);
    const endedAt = (agoMs: number) =>
      decided({ endedPods: new Map([["a", { atMs: NOW_MS - agoMs, containers: [] }]]) });
    expect(endedAt(14_999)).toEqual({ actions: [], atMs: NOW_MS + 1 });
    expect(endedAt(15_000).actions).toEqual(["a back to 1000m/4Gi"]);
  });

  it("has not failed because of the condition of an earlier rollout", () => {
    const progressing = condition("Progressing", "ProgressDeadlineExceeded", NOW_MS);
    const rollout = { ...UNDER_WAY, progressing, progressedAtS: aRollout(FOUR).progressedAtS };
    expect(statesFor(aSnapshot([rollingTo("a", FOUR, { rollout })]))).toEqual(["rolling"]);
  });

  describe("by a clock that went back behind the start of the rollout", () => {
    const lastRollout = aRollout(FOUR, { startedAtMs: NOW_MS + 1 });
    const { progressedAtS } = lastRollout;
    const assessed = (rollout: Partial<PipeView["rollout"]>, changes: Partial<PipeView> = {}) => {
      const given = { lastRollout, rollout: { ...UNDER_WAY, ...rollout }, ...changes };
      return decide(aSnapshot([rollingTo("a", FOUR, given)]), DECIDE_OPTIONS).sizing?.assessments;
    };
    const end = NOW_MS + POLICY.rolloutTimeoutMs;
    const complete = condition("Progressing", "NewReplicaSetAvailable", progressedAtS * 1000);

    it.each<[string, Partial<PipeView["rollout"]>, Partial<PipeView>]>([
      ["a Deployment", { progressedAtS }, {}],
      ["a Recreate Deployment", { progressedAtS, progressing: complete }, { stopsOldPodsFirst: true }],
      ["a Deployment without conditions", { progressedAtS: 0 }, {}],
      ["a Deployment that its owner changed", { progressedAtS }, { revision: lastRollout.revision + 1 }],
    ])("%s has the whole timeout although the last progress was in the previous rollout", (_, ...given) => {
      expect(assessed(...given)).toMatchObject([{ state: "rolling", recheckAtMs: end }]);
    });

    it("a StatefulSet has the whole timeout for each step", () => {
      const { inTurn } = rolling();
      const atMs = NOW_MS + 3 * POLICY.rolloutTimeoutMs;
      expect(assessed({ progressedAtS }, { inTurn })).toMatchObject([
        { state: "rolling", recheckAtMs: atMs },
      ]);
    });

    it("its timeout begins with the last progress of this rollout", () => {
      const ago = (ms: number) => assessed({ progressedAtS: (NOW_MS - ms) / 1000 });
      expect(ago(60_000)).toMatchObject([{ state: "rolling", recheckAtMs: end - 60_000 }]);
      expect(ago(POLICY.rolloutTimeoutMs)).toMatchObject([{ state: "failed" }]);
    });

    it("its timeout begins when its owner resumes it", () => {
      const progressing = condition("Progressing", "DeploymentResumed", NOW_MS - 60_000);
      const rollout = { progressedAtS: NOW_MS / 1000 - 60, progressing };
      expect(assessed(rollout)).toMatchObject([{ state: "rolling", recheckAtMs: end - 60_000 }]);
    });

    it("a ReplicaFailure of the previous rollout is no failure of this one", () => {
      const replicaFailure = condition("ReplicaFailure", "FailedCreate", progressedAtS * 1000);
      const atMs = NOW_MS + 30_000;
      const rollout = { progressedAtS, isWithoutPods: true, replicaFailure };
      expect(assessed(rollout)).toMatchObject([{ state: "rolling", recheckAtMs: atMs }]);
    });
  });

  it("has not failed in the first half minute of a ReplicaFailure, and is rechecked then", () => {
    const replicaFailure = condition("ReplicaFailure", "FailedCreate", NOW_MS - 10_000);
    const { sizing } = decide(
      aSnapshot([rollingTo("a", FOUR, { rollout: { ...UNDER_WAY, replicaFailure } })]),
      DECIDE_OPTIONS,
    );
    expect(sizing?.assessments[0]).toMatchObject({ state: "rolling", recheckAtMs: NOW_MS + 20_000 });
  });

  it.each([
    ["has failed immediately after a ReplicaFailure of this rollout if it has no pods", 999, "failed"],
    ["has not failed because of a ReplicaFailure of an earlier rollout", 1000, "rolling"],
  ])("%s", (_, earlierMs, state) => {
    const lastRollout = aRollout(FOUR, { startedAtMs: NOW_MS - 5000 });
    const replicaFailure = condition("ReplicaFailure", "FailedCreate", lastRollout.startedAtMs - earlierMs);
    const rollout = { ...UNDER_WAY, isWithoutPods: true, replicaFailure };
    expect(
      decide(aSnapshot([rollingTo("a", FOUR, { rollout, lastRollout })]), DECIDE_OPTIONS).sizing?.assessments,
    ).toMatchObject([{ state }]);
  });

  describe("that it got without replicas", () => {
    const TIMEOUT_MS = POLICY.rolloutTimeoutMs;
    const pod = (name: string, unreadyMs: number, changes: Partial<PodView> = {}) => {
      const own = { resources: amounts(FOUR), actual: amounts(FOUR) };
      return aPod(name, { isReady: false, readyChangedAtMs: NOW_MS - unreadyMs, ...changes }, own);
    };
    const assessed = (pods: readonly PodView[], changes: Partial<PipeView> = {}) => {
      const lastRollout = aRollout(FOUR, { startedAtMs: 0, replicas: 0 });
      const pipe = rollingTo("a", FOUR, { lastRollout, hasLabelledPods: true, ...changes });
      const decision = decide(aSnapshot([pipe], { pods: new Map([["a", pods]]) }), DECIDE_OPTIONS);
      return { actions: summaries(decision.actions), ...decision.sizing?.assessments[0] };
    };
    const late = pod("a-1", TIMEOUT_MS);

    it("has failed when no pod has been ready for the timeout", () => {
      expect(assessed([late]).actions).toEqual(["a back to 1000m/4Gi"]);
      expect(assessed([late, pod("a-2", TIMEOUT_MS)]).state).toBe("failed");
      const early = assessed([late, pod("a-2", TIMEOUT_MS - 1)]);
      expect(early).toMatchObject({ state: "rolling", recheckAtMs: NOW_MS + 1 });
    });

    it.each<[string, readonly PodView[], Partial<PipeView>?]>([
      ["it has no pod", []],
      ["its pods are not seen", [late], { hasLabelledPods: false }],
      ["one of its pods is ready", [late, pod("a-2", 0, { isReady: true })]],
      ["one of its pods has another size", [late, aPod("a-2", { isReady: false })]],
    ])("has not failed if %s", (_, pods, changes) => {
      expect(assessed(pods, changes)).toMatchObject({ state: "rolling", actions: [] });
    });
  });

  describe("whose new pods are refused while an old one counts in the quota, too,", () => {
    const replicaFailure = condition("ReplicaFailure", "FailedCreate", NOW_MS - 100_000);
    const lastRollout = aRollout(FOUR, { startedAtMs: NOW_MS - 100_500 });
    const assessed = (given: Partial<Snapshot>, progress: Partial<PipeView["rollout"]> = {}) => {
      const rollout = { ...UNDER_WAY, isWithoutPods: true, replicaFailure, ...progress };
      const pipe = rollingTo("a", FOUR, { rollout, lastRollout });
      return decide(aSnapshot([pipe], given), DECIDE_OPTIONS).sizing?.assessments;
    };
    const timeout = lastRollout.startedAtMs + POLICY.rolloutTimeoutMs;
    const ended = (agoMs: number) =>
      assessed({ endedPods: new Map([["a", { atMs: NOW_MS - agoMs, containers: [] }]]) });

    it("has not failed while that pod is terminating", () => {
      const ending = aPod("a-1", { isActive: false, isTerminating: true });
      const rolling = [{ state: "rolling", recheckAtMs: timeout }];
      expect(assessed({ pods: new Map([["a", [ending]]]) })).toMatchObject(rolling);
      expect(assessed({}, { terminatingReplicas: 1, isWithoutPods: false })).toMatchObject(rolling);
    });

    it("has not failed before its ReplicaSet has tried again, at the latest after twice the time", () => {
      expect(ended(57_501)).toMatchObject([{ state: "failed" }]);
      expect(ended(57_499)).toMatchObject([{ state: "rolling", recheckAtMs: NOW_MS + 2 }]);
    });

    it("has failed at once if that pod ended before them", () => {
      expect(ended(100_000)).toMatchObject([{ state: "failed" }]);
    });
  });

  const before = new Date(late.startedAtMs).toISOString();
  const now = new Date(NOW_MS - 1000).toISOString();
  it.each([
    ["its latest progress", "ReplicaSetUpdated", "True", now, now, NOW_MS - 1000],
    [
      "its resumption, even if the transition time does not change",
      "DeploymentResumed",
      "Unknown",
      before,
      now,
      NOW_MS - 1000,
    ],
    ["the current time while it is still paused", "DeploymentPaused", "Unknown", before, before, NOW_MS],
  ])("has the timeout of its rollout, if that was paused, from %s", (...row) => {
    const [, reason, status, lastTransitionTime, lastUpdateTime, sinceMs] = row;
    const progressing = { type: "Progressing", status, reason, lastTransitionTime, lastUpdateTime };
    const pipe = rollingTo("a", FOUR, { lastRollout: late, rollout: { ...UNDER_WAY, progressing } });
    expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).sizing?.assessments).toMatchObject([
      { state: "rolling", recheckAtMs: sinceMs + POLICY.rolloutTimeoutMs },
    ]);
  });
});
