import { describe, expect, it } from "vitest";
import { nextStep } from "../../../../src/controller/in-place/next-step.ts";
import type { ContainerView, PodView } from "../../../../src/controller/in-place/pod-view.ts";
import type { ReplicaSetView } from "../../../../src/controller/in-place/replica-set-view.ts";
import type { InPlaceContext } from "../../../../src/controller/in-place/steps.ts";
import type { Fallback, InPlaceView } from "../../../../src/controller/in-place/view.ts";
import { resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import { aPipe, aRollout, COMPLETE, UNDER_WAY } from "../../../support/fixtures/snapshot.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);
const NOW_MS = 1_000_000;
const CURRENT_WITH_ONE = {
  replicaSet: { metadata: { name: "current" } },
  resources: resourcesFor(ONE, false),
};

describe("a resize in place", () => {
  it("starts with one pod", () => {
    expect(stepOf([aPod("a"), aPod("b")])).toMatchObject({
      type: "resize-pods",
      pods: [{ metadata: { name: "a" } }],
    });
  });

  it("continues with the other pods when the first one is resized", () => {
    const step = stepOf([aResizedPod("a"), aPod("b"), aPod("c")]);
    expect(step).toMatchObject({
      type: "resize-pods",
      pods: [{ metadata: { name: "b" } }, { metadata: { name: "c" } }],
    });
  });

  it("waits until the kubelet has observed the change", () => {
    const seen = aResizedPod("a", { observedGeneration: 1 });
    expect(stepOf([seen, aPod("b")])).toEqual({ type: "wait", untilMs: NOW_MS + 120_000 });
  });

  it("waits until the container runs with the size, even if the kubelet reports no condition", () => {
    const missed = aResizedPod("a", {}, { actual: amounts(ONE) });
    expect(stepOf([missed])).toMatchObject({ type: "wait" });
  });

  it.each([
    ["a deferred resize", 60_000, "Deferred", { type: "PodResizePending", reason: "Deferred" }],
    ["an error", 120_000, "ResizeError", { type: "PodResizeInProgress", reason: "Error" }],
    ["no progress", 120_000, "ResizeTimeout", undefined],
  ] as const)(
    "waits for %s until the timeout, and then falls back",
    (_what, timeoutMs, reason, condition) => {
      const resize = condition && { ...condition, message: "no room" };
      const waiting = aResizedPod("a", { resize, observedGeneration: condition ? 2 : 1 });
      const at = (agoMs: number) =>
        stepOf([waiting, aPod("b")], { resizedAtMs: new Map([["uid-a", NOW_MS - agoMs]]) });
      expect(at(timeoutMs - 1)).toEqual({ type: "wait", untilMs: NOW_MS + 1 });
      expect(at(timeoutMs)).toMatchObject({
        type: "fall-back",
        reason,
        restore: [{ pod: { metadata: { name: "a" } } }],
      });
    },
  );

  it("gives up on a resize by a previous leader when the timeout has passed since the new leader started", () => {
    const unseen = aResizedPod("a", { observedGeneration: 1 });
    expect(stepOf([unseen], { beganAtMs: NOW_MS - 119_999 })).toEqual({ type: "wait", untilMs: NOW_MS + 1 });
    expect(stepOf([unseen], { beganAtMs: NOW_MS - 120_000 })).toMatchObject({ reason: "ResizeTimeout" });
  });

  it("counts the time of a resize without a response from the write", () => {
    const unseen = aResizedPod("a", { observedGeneration: 1 });
    const times = { beganAtMs: NOW_MS - 300_000, triedAtMs: new Map([["uid-a", NOW_MS - 1000]]) };
    expect(stepOf([unseen], times)).toEqual({ type: "wait", untilMs: NOW_MS + 119_000 });
  });

  it("falls back if the API server accepts no resize within two minutes of the previous one", () => {
    const at = (agoMs: number) =>
      stepOf([aResizedPod("a"), aPod("b")], {
        beganAtMs: NOW_MS - 300_000,
        resizedAtMs: new Map([["uid-a", NOW_MS - agoMs]]),
      });
    expect(at(119_999)).toMatchObject({ type: "resize-pods" });
    expect(at(120_000)).toMatchObject({
      type: "fall-back",
      reason: "ResizeTimeout",
      message: "pod b: the API server has not resized it",
    });
  });

  it("falls back immediately if the size is infeasible on the node", () => {
    const resize = { type: "PodResizePending", reason: "Infeasible", message: "swap" } as const;
    expect(stepOf([aResizedPod("a", { resize })])).toMatchObject({
      type: "fall-back",
      reason: "Infeasible",
      message: "pod a: swap",
    });
  });

  it.each([
    ["a container that has stopped", { isRunning: false, restartCount: 1 }, "ContainerNotRunning"],
    ["a node that does not report resources", { actual: undefined }, "NotSupported"],
    ["a container that restarts when its memory changes", { restartsFor: ["memory"] }, "ContainerRestarts"],
  ])("does not start with %s", (_what, changes, reason) => {
    expect(stepOf([aPod("a", {}, changes)])).toMatchObject({ type: "fall-back", restore: [], reason });
  });

  it("does not start if the kubelet does not report the observed generation", () => {
    expect(stepOf([aPod("a", { observedGeneration: 0 })])).toEqual({
      type: "fall-back",
      restore: [],
      reason: "NotSupported",
      message: "pod a: its node does not report the generation of the pod that it has observed",
    });
  });

  it("does not start while the owner of the Deployment has paused it", () => {
    const paused = { isPaused: true };
    expect(stepOf([aPod("a")], {}, paused)).toMatchObject({ type: "fall-back", reason: "NotSettled" });
  });

  it.each<[string, PodView, Partial<InPlaceView>, Partial<InPlaceContext["pipe"]>, string]>([
    ["the Deployment is being scaled", aPod("a"), {}, { rollout: UNDER_WAY }, "NotSettled"],
    [
      "pods of two ReplicaSets are running",
      aPod("a"),
      { replicaSets: [replicaSet("new"), replicaSet("old")] },
      {},
      "NotSettled",
    ],
    ["a new pod is starting", aPod("a", {}, { isRunning: false }), {}, {}, "ContainerNotRunning"],
  ])(
    "waits for at most two minutes while %s, and then falls back without resizing a pod",
    (_what, waited, view, changes, reason) => {
      expect(stepOf([waited], view, changes)).toEqual({ type: "wait", untilMs: NOW_MS + 120_000 });
      const late = { ...view, beganAtMs: NOW_MS - 120_000 };
      expect(stepOf([waited], late, changes)).toMatchObject({ type: "fall-back", reason, restore: [] });
    },
  );

  it("falls back if another writer restores the old size of a pod", () => {
    const view = { resizedAtMs: new Map([["uid-b", NOW_MS - 1000]]) };
    expect(stepOf([aResizedPod("a"), aPod("b")], view)).toMatchObject({
      type: "fall-back",
      reason: "Reverted",
      restore: [{ pod: { metadata: { name: "a" } } }],
    });
  });

  it.each<[string, Partial<ContainerView>, Partial<ContainerView>]>([
    ["has restarted", {}, { restartCount: 1, containerId: "other" }],
    ["is a new one after a restart of the node", {}, { containerId: "other" }],
    ["has stopped", {}, { isRunning: false }],
    ["has stopped since a previous leader resized the pod", { isRunning: false }, { isRunning: false }],
  ])(
    "falls back if a container of a resized pod %s, regardless of the status of the resize",
    (_what, was, is) => {
      const view = { podsBefore: new Map([["uid-a", aPod("a", {}, was)]]) };
      expect(
        stepOf([aResizedPod("a"), aPod("b")], { podsBefore: new Map([["uid-a", aPod("a")]]) }),
      ).toMatchObject({
        type: "resize-pods",
      });
      expect(stepOf([aResizedPod("a", {}, is), aPod("b")], view)).toMatchObject({
        type: "fall-back",
        reason: "Restarted",
        message: "pod a: its container pipe restarted during the resize",
        restore: [{ pod: { metadata: { name: "a" } } }],
      });
    },
  );

  it("ignores restarts of a pod that it did not resize", () => {
    const crashed = { restartCount: 1, containerId: "other" };
    const created = aPod("b", {}, { resources: amounts(FOUR), ...crashed });
    const podsBefore = new Map(["a", "b"].map((name) => [`uid-${name}`, aPod(name)]));
    expect(stepOf([aPod("a", {}, crashed), created], { podsBefore })).toMatchObject({ type: "resize-pods" });
  });

  it("restores the old size of the resized pods if the API server rejects the resize of another pod", () => {
    const view = { failure: { reason: "Refused", message: "exceeded quota" } } as const;
    expect(stepOf([aResizedPod("a"), aPod("b")], view)).toEqual({
      ...{ type: "fall-back", reason: "Refused", message: "exceeded quota" },
      restore: [{ pod: aResizedPod("a"), resources: resourcesFor(ONE, false) }],
    });
  });

  it("restores the size of each pod from its ReplicaSet, because the rollout may return to that ReplicaSet", () => {
    const failure = { reason: "Refused", message: "exceeded quota" } as const;
    const sized = replicaSet("sized", { resources: new Map([["pipe", amounts(FOUR)]]) });
    const replicaSets = [replicaSet("current"), sized];
    const ofSized = { replicaSetUid: "uid-sized" };
    const pods = [aResizedPod("a"), aPod("b"), aResizedPod("c", ofSized), aPod("d", ofSized)];
    expect(stepOf(pods, { failure, replicaSets })).toMatchObject({
      type: "fall-back",
      restore: [
        { pod: { metadata: { name: "a" } }, resources: resourcesFor(ONE, false) },
        { pod: { metadata: { name: "d" } }, resources: resourcesFor(FOUR, false) },
      ],
    });
  });

  it("waits for a pod that was created during the resize to start", () => {
    const view = { beganAtMs: NOW_MS - 2000, resizedAtMs: new Map([["uid-a", NOW_MS - 1000]]) };
    const starting = aPod("b", {}, { isRunning: false });
    expect(stepOf([aResizedPod("a"), starting], view)).toEqual({ type: "wait", untilMs: NOW_MS + 119_000 });
  });
});

describe("the commit of a resize in place", () => {
  const pods = [aResizedPod("a"), aResizedPod("b")];

  it("pauses the Deployment when every pod has the size", () => {
    expect(stepOf(pods)).toEqual({ type: "pause" });
  });

  it("first deletes an older, empty ReplicaSet with the same template", () => {
    const older = replicaSet("older", {
      pods: 0,
      createdAtS: 10,
      resources: new Map([["pipe", amounts(FOUR)]]),
    });
    expect(stepOf(pods, { replicaSets: [replicaSet("current"), older] })).toMatchObject({
      type: "delete-replica-set",
      replicaSet: { metadata: { name: "older" } },
    });
  });

  it.each([
    ["newer", { createdAtS: 21 }],
    ["of another template", { templateHash: "other" }],
    ["of another size", { resources: new Map([["pipe", amounts(ONE)]]) }],
    ["in use", { pods: 1 }],
  ])("keeps a ReplicaSet that is %s", (_what, changes) => {
    const other = replicaSet("other", {
      ...{ pods: 0, createdAtS: 10, resources: new Map([["pipe", amounts(FOUR)]]) },
      ...changes,
    });
    const { type } = stepOf(pods, { replicaSets: [replicaSet("current"), other] });
    expect(type).not.toBe("delete-replica-set");
  });

  const paused = { isPaused: true, isPausedByUs: true, size: FOUR };

  it("waits until the Deployment controller has observed the pause", () => {
    const changes = { ...paused, rollout: { ...COMPLETE, isSeen: false } };
    expect(stepOf(pods, {}, changes)).toEqual({ type: "wait", untilMs: NOW_MS + 30_000 });
  });

  it("updates the ReplicaSet when the Deployment controller has observed the pause", () => {
    expect(stepOf(pods, {}, paused)).toMatchObject({
      type: "update-replica-set",
      replicaSet: { metadata: { name: "current" } },
    });
  });

  it("resumes the Deployment only when its status counts the pods as updated", () => {
    const replicaSets = [replicaSet("current", { resources: new Map([["pipe", amounts(FOUR)]]) })];
    const behind = { ...paused, rollout: { ...COMPLETE, isUpdated: false } };
    expect(stepOf(pods, { replicaSets }, behind)).toMatchObject({ type: "wait" });
    expect(stepOf(pods, { replicaSets }, paused)).toEqual({ type: "resume" });
  });

  const sized = replicaSet("current", { resources: new Map([["pipe", amounts(FOUR)]]) });
  const late = { pausedAtMs: NOW_MS - 30_000 };

  it.each<[string, Partial<InPlaceContext["pipe"]>, Partial<InPlaceView>]>([
    ["its owner removes the size from the template", { size: undefined }, {}],
    ["its owner scales it to zero", {}, { replicaSets: [] }],
    [
      "the Deployment controller does not confirm it within 30 s",
      { rollout: { ...COMPLETE, isUpdated: false } },
      { ...late, replicaSets: [sized] },
    ],
  ])("resumes the Deployment if %s", (_what, changes, view) => {
    expect(stepOf(pods, view, { ...paused, ...changes })).toEqual({ type: "resume" });
  });

  it.each<[string, Partial<InPlaceContext["pipe"]>, Partial<InPlaceView>, Fallback]>([
    [
      "the Deployment controller does not respond",
      { rollout: { ...COMPLETE, isSeen: false } },
      late,
      { reason: "CommitTimeout", message: "the Deployment controller has not responded within 30 s" },
    ],
    [
      "writes to the ReplicaSet fail for 30 s",
      {},
      late,
      {
        reason: "CommitTimeout",
        message: "ReplicaSet current: the API server has not changed it within 30 s",
      },
    ],
    [
      "a second ReplicaSet has pods",
      {},
      { replicaSets: [replicaSet("current"), replicaSet("second")] },
      { reason: "NotSettled", message: "its pods are of several ReplicaSets" },
    ],
  ])("ends in a rollout and reports the reason if %s", (_what, changes, view, fallback) => {
    expect(stepOf(pods, view, { ...paused, ...changes })).toEqual({ type: "resume", fallback });
  });

  const changedMeanwhile = {
    ...paused,
    metadata: { ...aPipe("pipe").metadata, generation: 3 },
    rollout: { ...COMPLETE, isSeen: false },
  };
  const template = (generation: number, templateHash = "same") => ({
    template: { generation, templateHash, resources: new Map([["pipe", amounts(FOUR)]]) },
  });

  it("reads the template if another writer has changed the Deployment since the pause", () => {
    expect(stepOf(pods, {}, changedMeanwhile)).toEqual({ type: "read-template" });
    expect(stepOf(pods, template(2), changedMeanwhile)).toEqual({ type: "read-template" });
  });

  it("continues if only the replicas of the Deployment have changed", () => {
    expect(stepOf(pods, template(3), changedMeanwhile)).toMatchObject({ type: "wait" });
    expect(stepOf(pods, template(3), { ...changedMeanwhile, rollout: COMPLETE })).toMatchObject({
      type: "update-replica-set",
    });
  });

  it("resumes the Deployment immediately if its owner changed the template", () => {
    const fallback = { reason: "NotSettled", message: "its owner changed the pod template meanwhile" };
    expect(stepOf(pods, template(3, "other"), changedMeanwhile)).toEqual({ type: "resume", fallback });
  });

  it("ends with the size of the template, even if another size is desired in the meantime", () => {
    const two = sizeOfCores(2);
    expect(stepOf(pods, {}, { ...paused, size: two })).toMatchObject({
      type: "update-replica-set",
      resources: resourcesFor(two, false),
    });
  });

  it("waits until the Deployment has settled after a change of its replicas", () => {
    const behind = { rollout: UNDER_WAY };
    expect(stepOf(pods, {}, behind)).toEqual({ type: "wait", untilMs: NOW_MS + 120_000 });
    expect(stepOf(pods, { beganAtMs: NOW_MS - 120_000 }, behind)).toMatchObject({
      type: "fall-back",
      reason: "NotSettled",
      restore: ["a", "b"].map((name) => ({
        pod: { metadata: { name } },
        resources: resourcesFor(ONE, false),
      })),
    });
  });
});

describe("after the commit, a resize in place", () => {
  const pods = [aResizedPod("a"), aResizedPod("b")];
  const committed = { size: FOUR };
  const sized = replicaSet("current", { resources: new Map([["pipe", amounts(FOUR)]]) });
  const replicaSets = [sized];

  it("resizes pods that were created before the update of the ReplicaSet", () => {
    expect(stepOf([...pods, aPod("c")], { replicaSets }, committed)).toMatchObject({
      type: "resize-pods",
      pods: [{ metadata: { name: "c" } }],
    });
    const created = aPod("c", {}, { resources: amounts(FOUR) });
    expect(stepOf([...pods, created], { replicaSets }, committed)).toEqual({ type: "done" });
  });

  const deferred = aResizedPod(
    "c",
    { resize: { type: "PodResizePending", reason: "Deferred", message: "no room" } },
    { allocated: amounts(ONE).requests, actual: amounts(ONE) },
  );

  it.each<[string, PodView, Partial<InPlaceView>, object]>([
    [
      "cannot be resized because its node has no room",
      deferred,
      { resizedAtMs: new Map([["uid-c", NOW_MS - 60_000]]) },
      { reason: "Deferred", restore: [{ pod: { metadata: { name: "c" } } }] },
    ],
    [
      "cannot be resized because the API server rejects it",
      aPod("c"),
      { failure: { reason: "Refused", message: "quota" } },
      { reason: "Refused", message: "quota", restore: [] },
    ],
    [
      "has a container that is not running",
      aPod("c", {}, { isRunning: false }),
      { beganAtMs: NOW_MS - 120_000 },
      { reason: "ContainerNotRunning", restore: [] },
    ],
  ])("falls back to a rollout if a pod %s", (_what, straggler, view, fallback) => {
    expect(stepOf([...pods, straggler], { replicaSets, ...view }, committed)).toMatchObject({
      type: "fall-back",
      restoreReplicaSet: CURRENT_WITH_ONE,
      ...fallback,
    });
  });

  it("restores the old size of the ReplicaSet if a pod restarted during its resize", () => {
    const restarted = aResizedPod("b", {}, { restartCount: 1 });
    const view = { replicaSets, podsBefore: new Map([["uid-b", aPod("b")]]) };
    expect(stepOf([aResizedPod("a"), restarted], view, committed)).toMatchObject({
      ...{ type: "fall-back", reason: "Restarted", restore: [{ pod: { metadata: { name: "b" } } }] },
      restoreReplicaSet: CURRENT_WITH_ONE,
    });
  });

  it("restores the old size of the ReplicaSet if a failed pod has its old size again but its node reports the new size", () => {
    const stopped = aResizedPod("b", {}, { resources: amounts(ONE), isRunning: false, restartCount: 1 });
    const failure = { reason: "Restarted", message: "its container restarted" } as const;
    const view = { replicaSets, failure, podsBefore: new Map([["uid-b", aPod("b")]]) };
    expect(stepOf([aResizedPod("a"), stopped], view, committed)).toMatchObject({
      type: "fall-back",
      reason: "Restarted",
      restore: [],
      restoreReplicaSet: CURRENT_WITH_ONE,
    });
  });

  it("falls back if a rollout started although the template matches the pods", () => {
    const lastRollout = aRollout(FOUR, { revision: 1, inPlaceStartedAtMs: 1 });
    const step = stepOf(pods, { replicaSets }, { ...committed, lastRollout, revision: 2 });
    expect(step).toMatchObject({ type: "fall-back", reason: "NotSettled", restore: [] });
    expect(step).not.toHaveProperty("restoreReplicaSet");
    const unseen = { rollout: { ...UNDER_WAY, isSeen: false } };
    expect(
      stepOf(pods, { replicaSets }, { ...committed, lastRollout, revision: 2, ...unseen }),
    ).toMatchObject({ type: "wait" });
  });

  it("ignores a rollout that started before it, and resizes every pod", () => {
    const lastRollout = aRollout(FOUR, { revision: 1, inPlaceStartedAtMs: 1 });
    const view = { replicaSets, revision: 2 };
    const changes = { ...committed, lastRollout, revision: 2 };
    expect(stepOf(pods, view, changes)).toEqual({ type: "done" });
    expect(stepOf([...pods, aPod("c")], view, changes)).toMatchObject({ type: "resize-pods" });
  });

  it("waits until the Deployment controller has observed the end of the commit", () => {
    const resumed = { ...committed, rollout: { ...UNDER_WAY, isSeen: false } };
    expect(stepOf(pods, { replicaSets }, resumed)).toEqual({ type: "wait", untilMs: NOW_MS + 30_000 });
  });

  it("is done if the pod that failed was deleted", () => {
    const view = { replicaSets, failure: { reason: "Refused", message: "quota" } } as const;
    expect(stepOf(pods, view, committed)).toEqual({ type: "done" });
  });

  it.each([
    ["falls back", { failure: { reason: "Deferred", message: "no room" } }, "Deferred"],
    ["continues the fallback of a previous leader", {}, "NotSettled"],
  ] as const)("%s only when the rollout has started", (_what, view, reason) => {
    expect(stepOf([...pods, aPod("c")], view, committed)).toMatchObject({ type: "wait" });
    const begun = { ...committed, rollout: UNDER_WAY };
    const step = stepOf([...pods, aPod("c")], view, begun);
    expect(step).toMatchObject({ type: "fall-back", reason, restore: [] });
    expect(step).not.toHaveProperty("restoreReplicaSet");
  });
});

function stepOf(
  pods: readonly PodView[],
  view: Partial<InPlaceView> = {},
  changes: Partial<InPlaceContext["pipe"]> = {},
) {
  // By default, the commit is the last change of the Deployment.
  const lastRollout = changes.isPausedByUs ? aRollout(FOUR) : undefined;
  const pipe = aPipe("pipe", { replicas: pods.length, lastRollout, ...changes });
  return nextStep({
    pipe,
    container: "pipe",
    timeouts: TIMEOUTS,
    target: resourcesFor(FOUR, false),
    isTemplateSized: pipe.size?.cpuMillicores === FOUR.cpuMillicores,
    view: {
      ...{
        size: "4000m/16Gi",
        isReady: true,
        fallback: undefined,
        failure: undefined,
        pods,
        replicaSets: [replicaSet("current")],
      },
      ...{
        beganAtMs: NOW_MS,
        resizedAtMs: new Map(),
        triedAtMs: new Map(),
        revision: 1,
        isWriting: false,
        podsBefore: new Map(),
        template: undefined,
        pausedAtMs: undefined,
      },
      ...{ nowMs: NOW_MS, ...view },
    },
  });
}

/** A pod of one core. */
function replicaSet(name: string, changes: Partial<ReplicaSetView> = {}): ReplicaSetView {
  return {
    metadata: { name, namespace: "pipes", uid: `uid-${name}`, resourceVersion: "1", generation: 1 },
    ...{ deploymentUid: "uid-pipe", createdAtS: 20, revision: 1, pods: 2, templateHash: "same" },
    resources: new Map([["pipe", amounts(ONE)]]),
    ...changes,
  };
}
