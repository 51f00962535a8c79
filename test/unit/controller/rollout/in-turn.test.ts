import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { recheckAtMs } from "../../../../src/controller/decide/recheck.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import type { Snapshot } from "../../../../src/controller/observe/snapshot.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { StatefulSet } from "../../../../src/kube/objects.ts";
import { assessmentsIn, failuresIn, summaries } from "../../../support/fixtures/decisions.ts";
import type { StatefulSetOptions } from "../../../support/fixtures/pipe.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aWrite, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);
const MINUTE_MS = 60_000;
const ON_DELETE: Partial<StatefulSetOptions> = { updateStrategy: { type: "OnDelete" } };
/** A rollout to the revision `a-2` that has replaced no pod. */
const BEGUN: StatefulSet["status"] = { updateRevision: "a-2", updatedReplicas: 0 };

function partition(value: number): Partial<StatefulSetOptions> {
  return { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: value } } };
}

/** A StatefulSet whose template got four cores from the controller. */
function rolling(
  status: StatefulSet["status"] = {},
  rollout: Partial<LastRollout> = {},
  options: Partial<StatefulSetOptions> = {},
): PipeView {
  const { template } = aStatefulPipe().inTurn ?? {};
  const lastRollout = aRollout(FOUR, {
    ...{ generation: 7, revision: 2, replicas: 3, template },
    ...rollout,
  });
  const pipe = aStatefulPipe(
    { options: { cores: 4, ...options }, status: { ...BEGUN, ...status } },
    lastRollout,
  );
  return { ...pipe, ownsSize: true };
}

const old = (number: number, changes: Partial<PodView> = {}) =>
  aPod(`a-${number}`, { templateHash: "a-1", ...changes });
const resized = (number: number, changes: Partial<PodView> = {}) =>
  aPod(
    `a-${number}`,
    { templateHash: "a-2", ...changes },
    { resources: amounts(FOUR), actual: amounts(FOUR) },
  );

function decided(pipe: PipeView, pods: readonly PodView[], changes: Partial<Snapshot> = {}) {
  const snapshot = aSnapshot([pipe], { pods: new Map([["statefulset/a", pods]]), ...changes });
  const decision = decide(snapshot, DECIDE_OPTIONS);
  const [assessment] = assessmentsIn(decision);
  const status = statusOf(snapshot, aScaling(4), decision.sizing, POLICY);
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  return { snapshot, decision, assessment, status, ready, actions: summaries(decision.actions) };
}

const OLD = [old(0), old(1), old(2)];

describe("a StatefulSet that gets another size", () => {
  it("is rolled out with the strategy InPlaceOrRollout, and the status says why", () => {
    const { decision, actions } = decided(aStatefulPipe(), OLD, { strategy: "InPlaceOrRollout" });
    expect(actions).toEqual(["a 4000m/16Gi"]);
    expect(decision.actions).toMatchObject([
      { rollout: { replicas: 3, template: expect.any(String), inPlaceFailure: { reason: "NotSupported" } } },
    ]);
  });

  it("waits with the strategy InPlace", () => {
    const { actions, assessment } = decided(aStatefulPipe(), OLD, { strategy: "InPlace" });
    expect([actions, assessment?.state, assessment?.hindrance?.reason]).toEqual([
      [],
      "waiting",
      "NotSupported",
    ]);
  });

  it("is rolling until each pod has the size", () => {
    const { assessment, actions } = decided(rolling({ updatedReplicas: 2 }), [
      old(0),
      resized(1),
      resized(2),
    ]);
    expect([assessment?.state, actions]).toEqual(["rolling", []]);
  });

  it("is done when each pod has the size, and that is recorded", () => {
    const status = { updatedReplicas: 3, currentRevision: "a-2" };
    const { ready, actions } = decided(rolling(status), [resized(0), resized(1), resized(2)]);
    expect([ready?.status, actions]).toEqual(["True", ["adopt a with 4000m/16Gi"]]);
  });

  it("has a name of its own in the status, also if a Deployment has the same one", () => {
    const snapshot = aSnapshot([aPipe("a"), aStatefulPipe()], { pods: new Map([["statefulset/a", OLD]]) });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    const { pipes } = statusOf(snapshot, aScaling(4), decision.sizing, POLICY);
    expect(pipes?.pending?.map(({ name }) => name)).toEqual(["a", "statefulset/a"]);
    expect(decision.sizing?.blockedBy).toEqual(["a"]);
  });

  it("says which pod has another size although the rollout has completed", () => {
    const status = { updatedReplicas: 3, currentRevision: "a-2" };
    const other = aPod("a-1", { templateHash: "a-2" });
    const { assessment } = decided(rolling(status, { cameUp: true }), [resized(0), other, resized(2)]);
    expect(assessment).toMatchObject({
      state: "rolling",
      activity: "its pod a-1 has another size than its template: delete the pod",
    });
  });
});

describe("a StatefulSet that gets a third size while a pod has the second one", () => {
  const superseded = (pod: Partial<PodView>, agoMs = MINUTE_MS) => {
    const pods = [old(0), old(1), resized(2, pod)];
    const pipe = rolling({ updatedReplicas: 1 }, { startedAtMs: NOW_MS - agoMs });
    return decided(pipe, pods, { scaling: aScaling(2) }).decision.actions;
  };

  it("returns to the second one only if a pod was ready with it", () => {
    expect(superseded({})).toMatchObject([{ type: "resize", rollout: { lastGoodSize: FOUR } }]);
    expect(superseded({ isReady: false })).toMatchObject([{ rollout: { lastGoodSize: sizeOfCores(1) } }]);
  });

  it("does not take a rollout for proven because of its age", () => {
    const actions = superseded({ isReady: false }, 24 * 60 * MINUTE_MS);
    expect(actions).toMatchObject([{ rollout: { lastGoodSize: sizeOfCores(1) } }]);
  });
});

describe("the room for the new pods of a StatefulSet", () => {
  it("is searched before a rollout, in place of the pods that are replaced", () => {
    const pipe = aStatefulPipe({ options: partition(1) });
    const subject = `${pipe.inTurn?.template}/pipe/true/4000m/16Gi`;
    const writes = someWrites([aWrite("uid-a", "dry-run", { subject })]);
    const snapshot = aSnapshot([pipe], { pods: new Map([["statefulset/a", OLD]]), writes });
    const { actions } = decide(snapshot, { ...DECIDE_OPTIONS, makesDryRuns: true });
    expect(actions).toMatchObject([
      { type: "check-room", stopping: [{ metadata: { name: "a-1" } }, { metadata: { name: "a-2" } }] },
    ]);
  });

  it("is not searched if its owner lets no pod be replaced", () => {
    const snapshot = aSnapshot([aStatefulPipe({ options: partition(3) })]);
    const { actions } = decide(snapshot, { ...DECIDE_OPTIONS, makesDryRuns: true });
    expect(summaries(actions)).toEqual(["a 4000m/16Gi"]);
  });
});

describe("a StatefulSet with a partition", () => {
  const asAllowed = () => rolling({ updatedReplicas: 2 }, {}, partition(1));
  const pods = [old(0), resized(1), resized(2)];

  it("waits for its owner when all other pods have the size, and is never ready", () => {
    const { assessment, ready, status } = decided(asAllowed(), pods);
    expect(assessment).toMatchObject({ state: "paused", phase: "settled" });
    expect(ready).toMatchObject({
      ...{ status: "False", reason: "WaitingForOwner" },
      message: expect.stringContaining("1 of its 3 pods are below the partition 1 of its owner"),
    });
    expect(status.conditions?.some(({ type }) => type === "Stalled")).toBe(false);
    expect(status.pipes?.pending).toMatchObject([{ name: "statefulset/a", state: "Paused" }]);
    expect(status.effective).toBeUndefined();
  });

  it("has come up as far as its owner allows, so nothing rolls it back later", () => {
    expect(decided(asAllowed(), pods).actions).toEqual(["adopt a with 4000m/16Gi"]);
    const late = { cameUp: true, startedAtMs: 0 };
    const lowered = rolling({ updatedReplicas: 2 }, late);
    expect(decided(lowered, [old(0, { isReady: false }), resized(1), resized(2)]).actions).toEqual([]);
  });

  it("is not ready if its pods are not seen", () => {
    const pipe = { ...asAllowed(), hasLabelledPods: false };
    const { ready, status } = decided(pipe, []);
    expect([ready?.status, status.effective]).toEqual(["False", undefined]);
    const cameUp = {
      ...rolling({ updatedReplicas: 2 }, { cameUp: true }, partition(1)),
      hasLabelledPods: false,
    };
    expect(decided(cameUp, []).ready?.status).toBe("False");
  });

  it("is done if the pods below it have the size for another reason", () => {
    const { ready } = decided(asAllowed(), [{ ...resized(0), templateHash: "a-1" }, resized(1), resized(2)]);
    expect(ready?.status).toBe("True");
  });

  it("gets the template while the partition keeps all pods, and that is no rollout that could fail", () => {
    const { decision, actions } = decided(aStatefulPipe({ options: partition(3) }), OLD);
    expect(actions).toEqual(["a 4000m/16Gi"]);
    expect(decision.actions).toMatchObject([{ rollout: { replicas: 0 } }]);
    const late = { replicas: 0, startedAtMs: 0 };
    expect(decided(rolling({}, late, partition(3)), OLD).assessment?.state).toBe("paused");
    const lowered = decided(rolling({ updatedReplicas: 1 }, late), [
      old(0),
      old(1),
      resized(2, { isReady: false }),
    ]);
    expect([lowered.assessment?.state, lowered.actions]).toEqual(["rolling", []]);
  });

  it("keeps no other pipe from its size", () => {
    const snapshot = aSnapshot([asAllowed(), aPipe("b")], { pods: new Map([["statefulset/a", pods]]) });
    expect(summaries(decide(snapshot, DECIDE_OPTIONS).actions)).toContain("b 4000m/16Gi");
  });
});

describe("a StatefulSet with the strategy OnDelete", () => {
  it.each(["Rollout", "InPlaceOrRollout"] as const)("is not touched with the strategy %s", (strategy) => {
    const { actions, ready, status } = decided(aStatefulPipe({ options: ON_DELETE }), OLD, { strategy });
    expect(actions).toEqual([]);
    expect(ready).toMatchObject({
      ...{ status: "False", reason: "WaitingForOwner" },
      message: expect.stringContaining("its update strategy is OnDelete"),
    });
    expect(status.conditions?.some(({ type }) => type === "Stalled")).toBe(false);
  });

  it("gets its size while it has no replicas", () => {
    const none = { replicas: 0, updatedReplicas: 0, availableReplicas: 0 };
    const pipe = aStatefulPipe({ options: { ...ON_DELETE, replicas: 0 }, status: none });
    expect(decided(pipe, []).actions).toEqual(["a 4000m/16Gi"]);
  });

  it("is not rolled back if its owner chose that during a rollout", () => {
    const pipe = rolling({ updatedReplicas: 1 }, { startedAtMs: 0 }, ON_DELETE);
    const { assessment, actions } = decided(pipe, [old(0), old(1), resized(2, { isReady: false })]);
    expect([assessment?.state, actions]).toEqual(["paused", []]);
  });
});

describe("the timeout of the rollout of a StatefulSet", () => {
  const TIMEOUT_MS = POLICY.rolloutTimeoutMs;
  const slow = (createdAtMs: number, startedAtMs: number) =>
    decided(rolling({ updatedReplicas: 2, availableReplicas: 2 }, { startedAtMs }), [
      ...[old(0), resized(1, { createdAtMs, isReady: false })],
      resized(2, { createdAtMs: startedAtMs }),
    ]);

  it("begins again with each pod", () => {
    const startedAtMs = NOW_MS - TIMEOUT_MS - MINUTE_MS;
    const { assessment, snapshot, decision } = slow(NOW_MS - MINUTE_MS, startedAtMs);
    expect([assessment?.state, assessment?.phase]).toEqual(["rolling", "rolling-out"]);
    expect(recheckAtMs(snapshot, decision)).toBe(NOW_MS + TIMEOUT_MS - MINUTE_MS);
  });

  it("is over if one pod does not become ready in time", () => {
    const { decision, actions } = slow(NOW_MS - TIMEOUT_MS, NOW_MS - TIMEOUT_MS - MINUTE_MS);
    expect(actions).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresIn(decision)).toMatchObject([{ pipe: "statefulset/a", reason: "RolloutTimeout" }]);
  });

  it("does not begin again for ever for a pod that is created again and again", () => {
    expect(slow(NOW_MS, NOW_MS - 3 * TIMEOUT_MS).actions).toEqual(["a back to 1000m/4Gi"]);
    expect(slow(NOW_MS, NOW_MS - 3 * TIMEOUT_MS + 1).actions).toEqual([]);
  });

  it("is that of all pods together if they are not seen", () => {
    const hidden = (agoMs: number) =>
      decided({ ...rolling({}, { startedAtMs: NOW_MS - agoMs }), hasLabelledPods: false }, []);
    expect(hidden(3 * TIMEOUT_MS - 1).actions).toEqual([]);
    expect(hidden(3 * TIMEOUT_MS).actions).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is followed by no automatic retry, because a rollback interrupted the pipe too", () => {
    const failure = { reason: "RolloutTimeout", message: "late" } as const;
    const rollout = { isRollback: true, failure, startedAtMs: 0 };
    const back = rolling({ updateRevision: "a-1", updatedReplicas: 3 }, rollout, { cores: 1 });
    const { decision, actions } = decided(back, OLD);
    expect(actions).toEqual([]);
    expect(failuresIn(decision)[0]?.nextRetryAt).toBeUndefined();
  });
});
