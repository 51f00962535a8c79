import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import { TYPE_LABEL } from "../../../../src/controller/names.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { ContainerView, PodView } from "../../../../src/controller/observe/pod-view.ts";
import {
  formatAllotment,
  type Resources,
  resourcesFor,
} from "../../../../src/controller/observe/resources.ts";
import type { WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { formatSize, sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aPodWrite, aWrite, failed, someWrites, type Write } from "../../../support/fixtures/writes.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);

/** The decision about one pipe with these pods. */
function decided(
  pods: readonly PodView[],
  pipe: Partial<PipeView> = {},
  writes: readonly Write[] = [],
  changes: Partial<Snapshot> = {},
) {
  const snapshot = aSnapshot([aLabelledPipe("a", { replicas: pods.length, ...pipe })], {
    strategy: "InPlaceOrRollout",
    pods: new Map([["a", pods]]),
    writes: someWrites(writes),
    ...changes,
  });
  const decision = decide(snapshot, DECIDE_OPTIONS);
  const { actions, sizing } = decision;
  const atMs = recheckAtMs(snapshot, decision);
  return { actions, summary: summaries(actions), assessment: sizing?.assessments[0], atMs };
}

const failedInPlace = { size: FOUR, reason: "Deferred", message: "no room", atMs: NOW_MS - 60_000 } as const;
const failedLater = { ...failedInPlace, atMs: NOW_MS - 30_000 };
/** All pods have the template, and one is not available. */
const CRASHED = { ...COMPLETE, isComplete: false, isAvailable: false };
const noted = { lastRollout: aRollout(ONE, { inPlaceFailure: failedInPlace, cameUp: true }) };

describe("a pipe whose template has the size", () => {
  const sized = { size: FOUR, lastRollout: aRollout(FOUR, { cameUp: true }) };

  it("is done only when each of its pods has the size", () => {
    expect(decided([aResizedPod("a-1"), aResizedPod("a-2")], sized).assessment?.state).toBe("done");
    expect(decided([aResizedPod("a-1"), aPod("a-2")], sized).assessment?.state).not.toBe("done");
  });

  it("has a pod resized that the controller gave another size, although the pod crashes and is not available", () => {
    const crashed = { isReady: false, resizedAtMs: NOW_MS - 60_000 };
    const resized = (pod: Partial<PodView>, changes: Partial<PipeView> = {}) =>
      decided([aResizedPod("a-1"), aPod("a-2", pod)], { ...sized, rollout: CRASHED, ...changes }).summary;
    expect(resized(crashed)).toEqual(["resize-pod a-2"]);
    const created = { ...crashed, resizedAtMs: undefined };
    expect(resized(created)).toEqual(["resize-pod a-2"]);
    // The rollout of that pipe may still fail.
    expect(resized(created, { lastRollout: aRollout(FOUR, {}) })).toEqual([]);
    expect(resized(crashed, { rollout: { ...CRASHED, isUpdated: false } })).toEqual([]);
  });

  it("is not done while it has more replicas than pods that the controller sees", () => {
    const { assessment } = decided([aResizedPod("a-1")], { ...sized, rollout: { ...COMPLETE, replicas: 2 } });
    expect(assessment).toMatchObject({
      state: "rolling",
      activity: `1 of its 2 pods are not seen yet, or lack the label ${TYPE_LABEL}=database: add it if it is missing`,
    });
  });

  it("is not done while a write of another size to one of its pods has no response", () => {
    const subject = formatAllotment(resourcesFor(sizeOfCores(2), false));
    const open = aPodWrite("a-1", { subject, outcome: { type: "pending" } });
    expect(decided([aResizedPod("a-1")], sized, [open]).assessment).toMatchObject({
      state: "rolling",
      activity: "a write to a pod has not ended",
    });
  });

  it("has pods of another size resized, whatever strategy is chosen", () => {
    const pods = [aResizedPod("a-1"), aPod("a-2")];
    for (const strategy of ["InPlaceOrRollout", "Rollout"] as const)
      expect(decided(pods, sized, [], { strategy }).summary).toEqual(["resize-pod a-2"]);
  });

  describe("and of which some pods could not be resized", () => {
    const lastRollout = aRollout(FOUR, { cameUp: true, inPlaceFailure: failedLater });
    const pods = (second: Partial<PodView> = {}) => [aResizedPod("a-1"), aPod("a-2", second)];
    const returning = (changes: Partial<WriteRecord>) => aPodWrite("a-2", changes, "return-pod");

    it("gives these the size of their template again", () => {
      const { actions } = decided(pods(), { ...sized, lastRollout });
      expect(actions).toMatchObject([
        { type: "return-pod", pod: { metadata: { name: "a-2" } }, resources: resourcesFor(FOUR, false) },
      ]);
    });

    it("gives one that its owner keeps from rollouts that size later, if it fails at first", () => {
      const { inTurn } = aStatefulPipe({
        options: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
      });
      if (!inTurn?.hold) throw new Error("the owner keeps no pod");
      const ofSet = { ...sized, lastRollout, inTurn: { ...inTurn, templateHash: "current" } };
      const at = (agoMs: number) =>
        decided([aPod("a-0"), aResizedPod("a-1")], ofSet, [
          aPodWrite("a-0", { outcome: failed(), lastAtMs: NOW_MS - agoMs }, "return-pod"),
        ]);
      expect(at(999)).toMatchObject({ summary: [], assessment: { state: "paused" }, atMs: NOW_MS + 1 });
      expect(at(1000).summary).toEqual(["return-pod a-0"]);
    });

    it("waits while that is in progress", () => {
      const pending = returning({ outcome: { type: "pending" } });
      expect(decided(pods(), { ...sized, lastRollout }, [pending]).summary).toEqual([]);
      const resizing = aResizedPod("a-2", { observedGeneration: 1, resizedAtMs: NOW_MS });
      const { summary, assessment } = decided([aResizedPod("a-1"), resizing], { ...sized, lastRollout });
      expect(summary).toEqual([]);
      expect(assessment).toMatchObject({
        activity: "its pods get the size of their template again",
        recheckAtMs: NOW_MS + TIMEOUTS.resizeMs,
      });
    });

    it("has all replaced by another ReplicaSet if that fails, too, and no pod gets another size before", () => {
      const outcome = failed({ reason: "WriteFailed", message: "no response" });
      const { actions } = decided(pods(), { ...sized, lastRollout }, [returning({ outcome })]);
      expect(actions).toMatchObject([
        { type: "replace-pods", resources: resourcesFor(ONE, false), templateHash: aPod("a-2").templateHash },
      ]);
      const late = { observedGeneration: 1, resizedAtMs: NOW_MS - TIMEOUTS.resizeMs };
      const overdue = aResizedPod("a-2", late, { actual: amounts(ONE) });
      expect(decided([aResizedPod("a-1"), overdue], { ...sized, lastRollout }).summary).toEqual([
        "replace-pods a",
      ]);
    });

    it("has no pod of a StatefulSet replaced whose resize may still succeed", () => {
      const resizedAtMs = NOW_MS - TIMEOUTS.resizeMs / 2;
      const old = { actual: amounts(ONE) };
      const infeasible = { type: "PodResizePending", reason: "Infeasible", message: "too large" } as const;
      const resizing = { observedGeneration: 1, resizedAtMs };
      const { actions } = decided(
        [
          aResizedPod("a-0", { resize: infeasible, resizedAtMs }, old),
          aResizedPod("a-1", resizing, old),
          aResizedPod("a-2", resizing, { ...old, restartedAtMs: NOW_MS }),
          aResizedPod("a-3"),
        ],
        { ...sized, lastRollout },
      );
      expect(actions).toMatchObject([{ type: "replace-pods", kept: ["uid-a-1"] }]);
    });
  });

  it("has such pods resized although its last rollout began because that was not possible then", () => {
    const lastRollout = aRollout(FOUR, { cameUp: true, inPlaceFailure: failedInPlace });
    expect(failedInPlace.atMs).toBe(lastRollout.startedAtMs);
    expect(decided([aResizedPod("a-1"), aPod("a-2")], { ...sized, lastRollout }).summary).toEqual([
      "resize-pod a-2",
    ]);
  });

  it("has failed if its pods were replaced in vain, and shows when a retry is requested for later", () => {
    const lastRollout = aRollout(FOUR, { cameUp: true, inPlaceFailure: failedLater });
    const writes = [
      aPodWrite("a-1", {}, "return-pod"),
      aWrite("uid-a", "replace-pods", { subject: formatSize(FOUR), attempts: 4, lastAtMs: NOW_MS - 60_000 }),
    ];
    const at = (retryRequestedAtMs: number | undefined) => {
      const scaling = aScaling(4, { retryRequestedAtMs });
      return decided([aPod("a-1")], { ...sized, lastRollout }, writes, { scaling });
    };
    expect(at(undefined).assessment).toMatchObject({ state: "failed", failure: { reason: "FieldConflict" } });
    expect(at(undefined).assessment?.failure).not.toHaveProperty("retryAtMs");
    expect(at(NOW_MS + 1000).assessment).toMatchObject({
      state: "failed",
      failure: { reason: "FieldConflict", retryAtMs: NOW_MS + 1000 },
    });
    expect(at(NOW_MS).summary).toEqual(["resize-pod a-1"]);
  });

  it("does not have them replaced again before the Deployment controller could respond", () => {
    const lastRollout = aRollout(FOUR, { cameUp: true, inPlaceFailure: failedLater });
    const subject = formatSize(FOUR);
    const at = (agoMs: number) =>
      decided([aPod("a-1")], { ...sized, lastRollout }, [
        aPodWrite("a-1", {}, "return-pod"),
        aWrite("uid-a", "replace-pods", { subject, lastAtMs: NOW_MS - agoMs }),
      ]).summary;
    expect(at(29_999)).toEqual([]);
    expect(at(30_000)).toEqual(["replace-pods a"]);
  });
});

describe("a size that the API server refuses for a pod", () => {
  const outcome = failed({ reason: "Refused", message: "exceeded quota" });
  const refused = (attempts: number, agoMs: number) =>
    aPodWrite("a-2", { attempts, lastAtMs: NOW_MS - agoMs, outcome });
  const pods = [aResizedPod("a-1"), aPod("a-2")];

  it("is a failure that replaces no pod, and the resized pods get their old size again", () => {
    const { actions, assessment } = decided(pods, {}, [refused(1, 0)]);
    expect(actions).toMatchObject([
      { type: "return-pod", pod: { metadata: { name: "a-1" } }, resources: resourcesFor(ONE, false) },
    ]);
    expect(assessment).toMatchObject({
      state: "failed",
      failure: { reason: "Refused", message: "exceeded quota", attempts: 1, retryAtMs: NOW_MS + 300_000 },
    });
  });

  it("is tried again after 5 minutes, doubling, or on request", () => {
    const back = [aPod("a-1"), aPod("a-2")];
    const others = { metadata: { ...aLabelledPipe("a").metadata, generation: 7 } };
    expect(decided(back, others, [refused(1, 299_999)]).summary).toEqual([]);
    expect(decided(back, {}, [refused(1, 299_999)]).summary).toEqual([]);
    expect(decided(back, {}, [refused(1, 300_000)]).summary).toEqual(["resize-pod a-1"]);
    expect(decided(back, {}, [refused(2, 599_999)]).summary).toEqual([]);
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(decided(back, {}, [refused(1, 1000)], { scaling }).summary).toEqual(["resize-pod a-1"]);
  });
});

describe("a pipe that cannot be resized in place", () => {
  const infeasible = { type: "PodResizePending", reason: "Infeasible", message: "too large" } as const;

  it("has the reason recorded before anything else", () => {
    const { actions, assessment } = decided([aResizedPod("a-1", { resize: infeasible }), aPod("a-2")]);
    expect(actions).toMatchObject([
      {
        type: "adopt",
        rollout: { attempts: 0, inPlaceFailure: { size: FOUR, reason: "Infeasible", atMs: NOW_MS } },
      },
    ]);
    expect(assessment?.state).toBe("rolling");
  });

  it("has the reason recorded although the annotation was just written for another one", () => {
    const adopted = aWrite("uid-a", "adopt", { attempts: 4 });
    const { summary } = decided([aResizedPod("a-1", { resize: infeasible })], {}, [adopted]);
    expect(summary).toEqual(["adopt a with 4000m/16Gi"]);
  });

  it("has its pods returned to the size of the template, and again only after a failure, later", () => {
    const pods = [aResizedPod("a-1"), aResizedPod("a-2"), aPod("a-3")];
    expect(decided(pods, noted).summary).toEqual(["return-pod a-1", "return-pod a-2"]);
    const subject = formatAllotment(resourcesFor(ONE, false));
    const tried = aPodWrite("a-1", { subject, outcome: failed({ reason: "Refused" }) }, "return-pod");
    expect(decided(pods, noted, [tried]).summary).toEqual(["return-pod a-2"]);
    const tests = [
      [failed({ reason: "Refused" }, 2), 299_999, []],
      [failed({ reason: "Refused" }, 2), 300_000, ["return-pod a-1"]],
      [failed(), 30_000, ["return-pod a-1"]],
      [{ type: "done" }, 3_600_000, []],
    ] as const;
    for (const [outcome, agoMs, expected] of tests) {
      const write = aPodWrite("a-1", { subject, outcome, lastAtMs: NOW_MS - agoMs }, "return-pod");
      const [first] = decided([aResizedPod("a-1"), aPod("a-3")], noted, [write]).summary;
      expect(first === "return-pod a-1" ? [first] : []).toEqual(expected);
    }
  });

  it("has the return of a pod that fails repeated after the delay, if its strategy replaces no pod", () => {
    const inPlaceFailure = { ...failedInPlace, reason: "Restarted" } as const;
    const pipe = { lastRollout: aRollout(ONE, { inPlaceFailure, cameUp: true }) };
    const subject = formatAllotment(resourcesFor(ONE, false));
    const at = (outcome: WriteRecord["outcome"], agoMs: number) => {
      const write = aPodWrite("a-1", { subject, outcome, lastAtMs: NOW_MS - agoMs }, "return-pod");
      return decided([aResizedPod("a-1"), aPod("a-2")], pipe, [write], { strategy: "InPlace" });
    };
    expect(at(failed(), 999)).toMatchObject({ summary: [], atMs: NOW_MS + 1 });
    expect(at(failed(), 1000).summary).toEqual(["return-pod a-1"]);
    expect(at(failed({ reason: "Refused" }, 2), 0)).toMatchObject({ summary: [], atMs: NOW_MS + 300_000 });
    expect(at({ type: "pending" }, 0)).toMatchObject({ summary: [], atMs: Number.POSITIVE_INFINITY });
    expect(at({ type: "done" }, 0)).toMatchObject({ summary: [], atMs: Number.POSITIVE_INFINITY });
  });

  it("is then rolled out, and the annotation keeps the reason", () => {
    const { actions } = decided([aPod("a-1")], noted);
    expect(actions).toMatchObject([
      { type: "resize", rollout: { attempts: 1, inPlaceFailure: failedInPlace } },
    ]);
  });

  it("is tried in place again if people ask for a retry", () => {
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(decided([aPod("a-1")], noted, [], { scaling }).summary).toEqual(["resize-pod a-1"]);
  });

  it.each<[string, Partial<PipeView>, Partial<Snapshot>, string]>([
    ["the controller may not see pods", {}, { podsProblem: "pods is forbidden" }, "Forbidden"],
    ["its pods have no labels", { hasLabelledPods: false }, {}, "PodsNotLabeled"],
    [
      "its template does not name the container",
      { templateProblem: { reason: "ContainerNotNamed", message: "no annotation" } },
      {},
      "ContainerNotNamed",
    ],
    ["its owner paused it", { isPaused: true }, {}, "NotSettled"],
  ])("is rolled out with the reason if %s", (_, pipe, changes, reason) => {
    const { actions } = decided([aPod("a-1")], pipe, [], changes);
    expect(actions).toMatchObject([{ type: "resize", rollout: { inPlaceFailure: { size: FOUR, reason } } }]);
  });

  it("is rolled out without a reason if the strategy is Rollout", () => {
    const [action] = decided([aPod("a-1")], {}, [], { strategy: "Rollout" }).actions;
    expect(action?.type === "resize" && action.rollout).not.toHaveProperty("inPlaceFailure");
  });

  it("has its pods returned although one crashes and is not available, but not during a rollout", () => {
    const pods = [aResizedPod("a-1", { isReady: false }), aPod("a-2")];
    const { inTurn } = aStatefulPipe();
    if (!inTurn) throw new Error("the pipe is no StatefulSet");
    const ofSet = { ...noted, inTurn: { ...inTurn, templateHash: "current" } };
    expect(decided(pods, { ...ofSet, rollout: CRASHED }).summary).toEqual(["return-pod a-1"]);
    expect(decided(pods, { ...noted, rollout: CRASHED }).summary).toEqual(["return-pod a-1"]);
    const rollout = { ...CRASHED, isUpdated: false, replicas: 2 };
    for (const pipe of [ofSet, noted])
      expect(decided(pods, { ...pipe, rollout }).summary).not.toContain("return-pod a-1");
    const unproven = { ...noted, lastRollout: { ...noted.lastRollout, cameUp: false } };
    expect(decided(pods, { ...unproven, rollout: CRASHED }).summary).not.toContain("return-pod a-1");
  });

  describe("because its template lacks an amount", () => {
    const none = { requests: { cpu: null, memory: null }, limits: { memory: null } };
    const limits = { cpu: "500m", memory: "512Mi" };
    /** The resources of a pod that has the defaults of a LimitRange. */
    const ranged = { requests: { cpu: "100m", memory: "256Mi" }, limits };
    const of = (
      otherResources: Resources,
      resources: ContainerView["resources"],
      strategy: Snapshot["strategy"],
    ) => decided([aPod("a-1", {}, { resources })], { size: undefined, otherResources }, [], { strategy });
    const strategies = ["InPlaceOrRollout", "InPlace", "Rollout"] as const;

    it.each<[string, Resources, ContainerView["resources"]]>([
      ["no amount", none, ranged],
      ["no amount, and its pod has none either", none, undefined],
      ["only limits", { ...none, limits }, { requests: limits, limits }],
      [
        "only a memory limit",
        { ...none, limits: { memory: "2560Mi" } },
        { requests: { cpu: "100m", memory: "2560Mi" }, limits: { cpu: "500m", memory: "2560Mi" } },
      ],
      ["only a CPU request", { ...none, requests: { cpu: "100m", memory: null } }, ranged],
      ["no limit", { ...none, requests: { cpu: "100m", memory: "256Mi" } }, ranged],
    ])("keeps the amounts that Kubernetes gave to its pods, if it has %s", (_, template, resources) => {
      for (const strategy of strategies) {
        const { summary, assessment } = of(template, resources, strategy);
        expect(summary.filter((each) => each.startsWith("return-pod"))).toEqual([]);
        expect(assessment?.state).toBe("waiting");
      }
    });

    it("has what another writer changed returned to the amounts that the template gives to pods", () => {
      const changed = { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } };
      for (const strategy of strategies) {
        const ofLimits = of({ ...none, limits }, changed, strategy).actions;
        expect(ofLimits).toMatchObject([{ type: "return-pod", resources: { requests: limits, limits } }]);
        const ofRequest = of({ ...none, requests: { cpu: "100m", memory: null } }, changed, strategy).actions;
        expect(ofRequest).toMatchObject([{ type: "return-pod" }]);
        expect(ofRequest[0]).toHaveProperty("resources", { requests: { cpu: "100m" }, limits: {} });
      }
    });
  });

  it("has its pods returned before a rollout if the strategy is Rollout by now", () => {
    expect(decided([aResizedPod("a-1"), aPod("a-2")], {}, [], { strategy: "Rollout" }).summary).toEqual([
      "return-pod a-1",
    ]);
  });
});

describe("with the strategy InPlace, a pipe", () => {
  const strategy = "InPlace";

  it("waits while the controller has no permission for its pods", () => {
    const { summary, assessment } = decided([], { replicas: 1 }, [], {
      strategy,
      podsProblem: "pods is forbidden",
    });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({
      state: "waiting",
      hindrance: { reason: "Forbidden", message: "pods is forbidden" },
    });
  });

  it("gets no size in its template before its last pods have ended", () => {
    const rollout = { ...COMPLETE, replicas: 1 };
    const ending = decided([aPod("a-1")], { replicas: 0, rollout }, [], { strategy });
    expect(ending.summary).toEqual([]);
    const ended = decided([], { replicas: 0, rollout: { ...COMPLETE, replicas: 0 } }, [], { strategy });
    expect(ended.summary).toEqual(["a 4000m/16Gi"]);
  });

  it("is resized in place again although the size once failed for a reason that can be seen", () => {
    expect(decided([aPod("a-1")], noted, [], { strategy }).summary).toEqual(["resize-pod a-1"]);
  });

  it.each([
    ["Restarted", 1, 2 * 3_600_000, []],
    ["Restarted", 2, 60_000, ["resize-pod a-1"]],
    ["Reverted", 1, 60_000, []],
    ["Reverted", 1, 2 * 3_600_000, ["resize-pod a-1"]],
    // Another clock is wrong.
    ["Reverted", 1, -24 * 3_600_000, []],
  ] as const)(
    "that failed with %s at revision 1 and now has revision %i is tried again or not after %i ms",
    (reason, revision, agoMs, expected) => {
      const inPlaceFailure = { ...failedInPlace, reason, revision: 1, atMs: NOW_MS - agoMs };
      const lastRollout = aRollout(ONE, { inPlaceFailure, cameUp: true });
      const { summary, assessment } = decided([aPod("a-1")], { lastRollout, revision }, [], { strategy });
      expect(summary).toEqual(expected);
      expect(assessment?.recheckAtMs ?? 0).toBeLessThanOrEqual(NOW_MS + 3_600_000);
    },
  );

  it.each([
    ["Restarted", "failed", NOW_MS + 60_000],
    ["Reverted", "waiting", undefined],
  ] as const)(
    "that failed with %s is tried again when that is requested for later",
    (reason, state, retryAtMs) => {
      const inPlaceFailure = { ...failedInPlace, reason, revision: 1 };
      const lastRollout = aRollout(ONE, { inPlaceFailure, cameUp: true });
      const at = (nowMs: number) => {
        const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS + 60_000 });
        return decided([aPod("a-1")], { lastRollout }, [], { strategy, scaling, nowMs });
      };
      const { summary, assessment } = at(NOW_MS);
      expect(summary).toEqual([]);
      expect(assessment).toMatchObject({ state, recheckAtMs: NOW_MS + 60_000 });
      expect(assessment?.failure?.retryAtMs).toBe(retryAtMs);
      expect(at(NOW_MS + 59_999).summary).toEqual([]);
      expect(at(NOW_MS + 60_000).summary).toEqual(["resize-pod a-1"]);
    },
  );
});
