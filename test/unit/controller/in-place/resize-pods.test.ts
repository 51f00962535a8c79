import { describe, expect, it } from "vitest";
import type { PodsStep } from "../../../../src/controller/assessment.ts";
import { inPlaceProblem } from "../../../../src/controller/in-place/problem.ts";
import { podsStep, runsOf } from "../../../../src/controller/in-place/resize-pods.ts";
import type { InPlaceFailure, LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { ContainerView, PodView } from "../../../../src/controller/observe/pod-view.ts";
import { formatAllotment, resourcesFor } from "../../../../src/controller/observe/resources.ts";
import type { WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import type { ResizeStrategy } from "../../../../src/domain/resize-strategy.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { StatefulSet } from "../../../../src/kube/workloads.ts";
import { aSubject } from "../../../support/fixtures/decisions.ts";
import type { StatefulSetOptions } from "../../../support/fixtures/pipe.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aRollout,
  aScaling,
  COMPLETE,
  NOW_MS,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aPodWrite, failed, someWrites, type Write } from "../../../support/fixtures/writes.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);
const MINUTE = 60_000;
const TARGET = resourcesFor(FOUR, false);

/** The next step for the pods of a pipe whose container should have four cores. */
function stepOf(
  pods: readonly PodView[],
  writes: readonly Write[] = [],
  changes: Partial<Snapshot> = {},
  pipe: Partial<PipeView> = {},
): PodsStep {
  const replicas = pods.length;
  return podsStep(
    aSubject(aLabelledPipe("a", { replicas, ...pipe }), pods, { writes: someWrites(writes), ...changes }),
  );
}

const ENDING: Partial<PodView> = { isTerminating: true, isActive: false };

/** The next step for pods of a StatefulSet, which have its newest template unless they say otherwise. */
function stepInTurn(
  pods: readonly PodView[],
  { status, lastRollout, options, strategy = "InPlaceOrRollout" }: InTurnChanges = {},
): PodsStep {
  const replicas = pods.length;
  const counts = { replicas, updatedReplicas: replicas, ...status };
  const pipe = aStatefulPipe({ options: { replicas, ...options }, status: counts }, lastRollout);
  const labelled = { ...pipe, hasLabelledPods: true, templateProblem: undefined, lastRollout };
  return podsStep(aSubject(labelled, pods, { strategy, pods: new Map([["statefulset/a", pods]]) }));
}

interface InTurnChanges {
  readonly status?: StatefulSet["status"];
  readonly lastRollout?: LastRollout;
  readonly options?: Partial<StatefulSetOptions>;
  readonly strategy?: ResizeStrategy;
}

function inTurnPod(number: number, changes: Partial<PodView> = {}): PodView {
  return aPod(`a-${number}`, { templateHash: "a-1", ...changes });
}

/** The names of the pods that are resized next. */
function resizedNext(step: PodsStep): string[] {
  if (step.type !== "resize") return [step.type];
  return step.actions.map((action) => ("pod" in action ? action.pod.metadata.name : action.type));
}

describe("the pods of a StatefulSet", () => {
  const ended = (...others: readonly PodView[]) => [...others, inTurnPod(2, ENDING)];
  const fails = { type: "fail", reason: "NotSettled" };

  it("are resized while another one is terminating, however long that takes", () => {
    const status = { updatedReplicas: 2, availableReplicas: 2 };
    expect(resizedNext(stepInTurn(ended(inTurnPod(0), inTurnPod(1)), { status }))).toEqual(["a-0"]);
    const first = aResizedPod("a-0", { templateHash: "a-1" });
    expect(resizedNext(stepInTurn(ended(first, inTurnPod(1)), { status }))).toEqual(["a-1"]);
  });

  it("are not resized while another one is terminating because of a rollout", () => {
    const status = { updatedReplicas: 0, availableReplicas: 2, updateRevision: "a-2" };
    expect(stepInTurn(ended(inTurnPod(0), inTurnPod(1)), { status })).toMatchObject(fails);
    // The first pod is the last one to be replaced.
    const updated = [1, 2].map((number) => inTurnPod(number, { templateHash: "a-2" }));
    const last = { ...status, updatedReplicas: 2 };
    expect(stepInTurn([inTurnPod(0, ENDING), ...updated], { status: last })).toMatchObject(fails);
  });

  it("are not resized in place while a pod is missing or not seen", () => {
    const status = { replicas: 2, updatedReplicas: 1, availableReplicas: 1 };
    expect(stepInTurn(ended(inTurnPod(0)), { status, options: { replicas: 3 } })).toMatchObject(fails);
    const unseen = { replicas: 3, updatedReplicas: 1, availableReplicas: 1 };
    expect(stepInTurn(ended(inTurnPod(0)), { status: unseen, options: { replicas: 3 } })).toMatchObject(
      fails,
    );
  });

  it("are resized although one of them is not ready, or not for long enough to be available", () => {
    const unready = inTurnPod(1, { isReady: false, readyChangedAtMs: NOW_MS - 5 * MINUTE });
    const status = { availableReplicas: 1 };
    expect(resizedNext(stepInTurn([inTurnPod(0), unready], { status }))).toEqual(["a-0"]);
    const options = { minReadySeconds: 300 };
    const fresh = inTurnPod(1, { readyChangedAtMs: NOW_MS - 3 * MINUTE });
    expect(resizedNext(stepInTurn([inTurnPod(0), fresh], { status, options }))).toEqual(["a-0"]);
  });

  it("wait longer for a new one only if a rollout might follow, and would not find room for it", () => {
    const createdAtMs = NOW_MS - 3 * MINUTE;
    const step = (changes: Partial<PodView>, strategy?: ResizeStrategy) => {
      const fresh = { templateHash: "a-1", createdAtMs, readyChangedAtMs: createdAtMs, isReady: false };
      const starting = aPod("a-1", { ...fresh, ...changes }, { isRunning: false });
      const done = aResizedPod("a-0", { templateHash: "a-1" });
      return stepInTurn([done, starting], {
        status: { availableReplicas: 1 },
        ...(strategy && { strategy }),
      });
    };
    expect(step({})).toMatchObject({ type: "wait" });
    expect(step({}, "InPlace")).toMatchObject({ type: "fail", reason: "ContainerNotRunning" });
    expect(step({ unschedulable: "no node" })).toMatchObject({ type: "fail", reason: "ContainerNotRunning" });
  });

  it("are not resized if one that is not ready got its template by a rollout that has not completed", () => {
    const pods = [inTurnPod(0), inTurnPod(1, { isReady: false, readyChangedAtMs: 0 })];
    const status = { availableReplicas: 1, currentRevision: "a-0" };
    const { template } = aStatefulPipe().inTurn ?? {};
    const resized = aRollout(ONE, { cameUp: true, template });
    expect(stepInTurn(pods, { status })).toMatchObject(fails);
    expect(stepInTurn(pods, { status, lastRollout: { ...resized, cameUp: false } })).toMatchObject(fails);
    expect(stepInTurn(pods, { status, lastRollout: { ...resized, template: "other" } })).toMatchObject(fails);
    // The template only followed its pods.
    expect(resizedNext(stepInTurn(pods, { status, lastRollout: resized }))).toEqual(["a-0"]);
    const options = { updateStrategy: { type: "OnDelete" } } as const;
    expect(resizedNext(stepInTurn(pods, { status, options }))).toEqual(["a-0"]);
  });
});

describe("a resize in place", () => {
  it("begins with one pod", () => {
    const step = stepOf([aPod("a"), aPod("b")]);
    expect(step).toMatchObject({ type: "resize", actions: [{ type: "resize-pod", resources: TARGET }] });
    expect(resizedNext(step)).toEqual(["a"]);
  });

  it("goes on with the other pods, at most ten at a time, when the first one is resized", () => {
    const others = Array.from({ length: 12 }, (_, at) => aPod(`b-${at}`));
    expect(resizedNext(stepOf([aResizedPod("a"), ...others]))).toEqual(
      others.slice(0, 10).map(({ metadata }) => metadata.name),
    );
  });

  it("is done when all pods have the size, whether they were resized or created with it", () => {
    const created = aPod("b", {}, { resources: amounts(FOUR) });
    expect(stepOf([aResizedPod("a"), created])).toEqual({ type: "resize", actions: [] });
  });

  it("waits for a write without a response", () => {
    const writing = aPodWrite("a", { outcome: { type: "pending" } });
    expect(stepOf([aPod("a"), aPod("b")], [writing])).toMatchObject({ type: "wait" });
  });

  it("waits until the kubelet has observed the change", () => {
    const seen = aResizedPod("a", { observedGeneration: 1 });
    expect(stepOf([seen, aPod("b")], [aPodWrite("a")])).toEqual({
      type: "wait",
      untilMs: NOW_MS + 2 * MINUTE,
    });
  });

  it("waits until the container runs with the size, even if the kubelet reports no condition", () => {
    expect(stepOf([aResizedPod("a", {}, { actual: amounts(ONE) })])).toMatchObject({ type: "wait" });
  });

  it.each([
    ["a deferred resize", MINUTE, "Deferred", { type: "PodResizePending", reason: "Deferred" }],
    ["an error", 2 * MINUTE, "ResizeError", { type: "PodResizeInProgress", reason: "Error" }],
    ["no progress", 2 * MINUTE, "ResizeTimeout", undefined],
  ] as const)("waits for %s until the timeout, and then fails", (_what, timeoutMs, reason, condition) => {
    const resize = condition && { ...condition, message: "no room" };
    const waiting = aResizedPod("a", { resize, observedGeneration: condition ? 2 : 1 });
    const at = (agoMs: number) =>
      stepOf([waiting, aPod("b")], [aPodWrite("a", { lastAtMs: NOW_MS - agoMs })]);
    expect(at(timeoutMs - 1)).toEqual({ type: "wait", untilMs: NOW_MS + 1 });
    expect(at(timeoutMs)).toMatchObject({ type: "fail", reason });
  });

  it.each(["Infeasible", "Deferred"])(
    "waits while the kubelet still reports that the size before is %s, and fails with that if it goes on",
    (reason) => {
      const resize = { type: "PodResizePending", reason, message: "swap" } as const;
      const unseen = [aResizedPod("a", { resize, observedGeneration: 1 })];
      const at = (agoMs: number) => stepOf(unseen, [aPodWrite("a", { lastAtMs: NOW_MS - agoMs })]);
      const timeoutMs = reason === "Deferred" ? MINUTE : 2 * MINUTE;
      expect(at(1000)).toEqual({ type: "wait", untilMs: NOW_MS - 1000 + timeoutMs });
      expect(at(timeoutMs)).toEqual({ type: "fail", reason, message: "pod a: swap" });
    },
  );

  it("fails immediately if the size is infeasible on the node", () => {
    const resize = { type: "PodResizePending", reason: "Infeasible", message: "swap" } as const;
    expect(stepOf([aResizedPod("a", { resize })])).toEqual({
      type: "fail",
      reason: "Infeasible",
      message: "pod a: swap",
    });
  });

  it("fails for another reason than the room if there is one, because nothing waits for that", () => {
    const pending = (reason: string) =>
      ({ type: "PodResizePending", reason, message: reason.toLowerCase() }) as const;
    const step = stepOf(
      [
        aResizedPod("a", { resize: pending("Deferred") }),
        aResizedPod("b", { resize: pending("Infeasible") }),
      ],
      [aPodWrite("a", { lastAtMs: NOW_MS - MINUTE })],
    );
    expect(step).toEqual({ type: "fail", reason: "Infeasible", message: "pod b: infeasible" });
  });

  describe("of a pod that is older than Kubernetes 1.33, and gets its first generation by that", () => {
    const of = (generation: number, pod: PodView): PodView => ({
      ...pod,
      metadata: { ...pod.metadata, generation },
    });
    const resized = (changes: Partial<PodView>, container: Partial<ContainerView> = {}) =>
      of(1, aResizedPod("a", { resizedAtMs: NOW_MS, ...changes }, container));
    const applied = { allocated: amounts(FOUR).requests, actual: amounts(FOUR) };

    it("begins like any other", () => {
      expect(resizedNext(stepOf([of(0, aPod("a", { observedGeneration: 0 }))]))).toEqual(["a"]);
    });

    it("waits until the kubelet reports that the container runs with the size", () => {
      const byOther = { resizedBy: "right-sizer", otherResizedAtMs: NOW_MS };
      const wait = { type: "wait", untilMs: NOW_MS + 2 * MINUTE };
      for (const observedGeneration of [0, 1]) {
        expect(stepOf([resized({ observedGeneration })])).toEqual(wait);
        const other = resized({ observedGeneration, resizedAtMs: undefined }, byOther);
        expect(stepOf([other])).toEqual(wait);
      }
      expect(stepOf([resized({ observedGeneration: 0 }, applied)])).toEqual(wait);
      const done = { type: "resize", actions: [] };
      expect(stepOf([resized({ observedGeneration: 1 }, applied)])).toEqual(done);
    });

    it("fails if a container restarts", () => {
      const restarted = { isRunning: false };
      expect(stepOf([resized({ observedGeneration: 1 }, restarted)])).toMatchObject({ reason: "Restarted" });
    });
  });

  it("has the time since the write, as the pod shows it to the next leader", () => {
    const at = (resizedAtMs: number | undefined, leadingSinceMs = NOW_MS) => {
      const unseen = aResizedPod("a", { observedGeneration: 1, resizedAtMs });
      return stepOf([unseen], [], { leadingSinceMs });
    };
    expect(at(NOW_MS - MINUTE)).toEqual({ type: "wait", untilMs: NOW_MS + MINUTE });
    expect(at(undefined, NOW_MS - MINUTE)).toEqual({ type: "wait", untilMs: NOW_MS + MINUTE });
    expect(at(NOW_MS - 2 * MINUTE)).toMatchObject({ reason: "ResizeTimeout" });
    // Another clock is wrong.
    expect(at(NOW_MS + 60 * MINUTE)).toEqual({ type: "wait", untilMs: NOW_MS + 2 * MINUTE });
  });
});

describe("a write to a pod that fails", () => {
  const failing = (changes: Partial<WriteRecord>) =>
    aPodWrite("b", { outcome: failed({ message: "down" }), ...changes });
  const pods = [aResizedPod("a"), aPod("b")];

  it("is repeated with a delay that doubles, and the error is known meanwhile", () => {
    const at = (attempts: number, agoMs: number) =>
      stepOf(pods, [failing({ attempts, lastAtMs: NOW_MS - agoMs })]);
    expect(at(3, 3999)).toMatchObject({
      type: "wait",
      untilMs: NOW_MS + 1,
      failure: { attempts: 3, message: "down", retryAtMs: NOW_MS + 1 },
    });
    expect(resizedNext(at(3, 4000))).toEqual(["b"]);
  });

  it("is repeated at once after a conflict, because the pod was read, and then with a delay", () => {
    const conflict = failed({ isConflict: true });
    expect(resizedNext(stepOf(pods, [failing({ outcome: conflict })]))).toEqual(["b"]);
    expect(stepOf(pods, [failing({ outcome: conflict, attempts: 2 })])).toMatchObject({
      untilMs: NOW_MS + 2000,
    });
  });

  it("leads to a rollout after two minutes", () => {
    const at = (agoMs: number) => stepOf(pods, [failing({ attempts: 7, undecidedSinceMs: NOW_MS - agoMs })]);
    expect(at(2 * MINUTE - 1)).toMatchObject({ type: "wait" });
    expect(at(2 * MINUTE)).toMatchObject({
      type: "fail",
      reason: "ResizeTimeout",
      message: "pod b: the API server has not resized it: down",
    });
  });

  it("leads to a rollout at once if it is refused for another reason than the size", () => {
    const refusal = failed({ reason: "Refused", message: "a policy says no", fallback: "Refused" });
    expect(stepOf(pods, [failing({ outcome: refusal })])).toMatchObject({
      type: "fail",
      reason: "Refused",
      message: "pod b: a policy says no",
    });
  });

  it("is repeated in its own time, even if that of another pod comes earlier", () => {
    const refused = (pod: string, agoMs: number) =>
      aPodWrite(pod, { outcome: failed({ reason: "Refused" }), lastAtMs: NOW_MS - agoMs });
    const step = stepOf([...pods, aPod("c")], [refused("b", 5 * MINUTE), refused("c", MINUTE)]);
    expect(resizedNext(step)).toEqual(["b"]);
  });

  it("was for another size, so it says nothing about this one", () => {
    const other = failing({ subject: formatAllotment(resourcesFor(sizeOfCores(2), false)) });
    expect(resizedNext(stepOf(pods, [other]))).toEqual(["b"]);
  });
});

describe("a resize in place does not go on", () => {
  it.each<[string, Partial<ContainerView>, string]>([
    ["a container that has stopped", { isRunning: false, restartCount: 1 }, "ContainerNotRunning"],
    ["a node that does not report resources", { actual: undefined }, "NotSupported"],
    ["a container that restarts when its memory changes", { restartsFor: ["memory"] }, "ContainerRestarts"],
  ])("with %s", (_what, changes, reason) => {
    expect(stepOf([aPod("a", {}, changes)])).toMatchObject({ type: "fail", reason });
  });

  it("if a webhook added a container to its pods and they do not name the container to resize", () => {
    const [pipe] = aPod("a").containers;
    if (!pipe) throw new Error("the pod has no container");
    const containers = [pipe, { ...pipe, name: "istio-proxy" }];
    expect(stepOf([aPod("a", { containers })])).toMatchObject({
      type: "fail",
      reason: "ContainerNotNamed",
      message:
        "pod a: it has the containers pipe, istio-proxy, and no annotation pipes.clouddb.dev/container=pipe: add it to the pod template",
    });
    expect(resizedNext(stepOf([aPod("a", { containers, namedContainer: "pipe" })]))).toEqual(["a"]);
    expect(stepOf([aPod("a", { containers, namedContainer: "istio-proxy" })])).toMatchObject({
      type: "fail",
    });
  });

  it("if the kubelet does not report the observed generation", () => {
    expect(stepOf([aPod("a", { observedGeneration: 0 })])).toMatchObject({
      type: "fail",
      reason: "NotSupported",
      message: "pod a: its node does not report the generation of the pod that it has observed",
    });
  });

  it("if a webhook gives a pod its old size again in the same write", () => {
    const outcome = failed({ reason: "Refused", fallback: "Reverted" });
    expect(stepOf([aResizedPod("a"), aPod("b")], [aPodWrite("b", { outcome })])).toMatchObject({
      type: "fail",
      reason: "Reverted",
    });
  });

  it.each<[string, Partial<ContainerView>]>([
    ["has restarted", { restartCount: 1, containerId: "other" }],
    ["is a new one after a restart of the node", { containerId: "other" }],
    ["has stopped", { isRunning: false }],
  ])("if a container of a resized pod %s, regardless of the status of the resize", (_what, changes) => {
    const write = aPodWrite("a", { runs: runsOf(aPod("a")) });
    expect(resizedNext(stepOf([aResizedPod("a"), aPod("b")], [write]))).toEqual(["b"]);
    expect(stepOf([aResizedPod("a", {}, changes), aPod("b")], [write])).toMatchObject({
      type: "fail",
      reason: "Restarted",
      message: "pod a: its container pipe restarted during the resize",
    });
  });

  it("with the name of the container that restarted, whether or not this process resized the pod", () => {
    const before = aResizedPod("a", { resizedAtMs: NOW_MS - 5000 });
    const [pipe] = before.containers;
    if (!pipe) throw new Error("The pod has no container.");
    const proxy = (changes: Partial<ContainerView> = {}) => ({
      ...pipe,
      name: "proxy",
      containerId: "p",
      ...changes,
    });
    const containers = [pipe, proxy({ restartCount: 1, restartedAtMs: NOW_MS - 4000 })];
    const runs = runsOf({ ...before, containers: [pipe, proxy()] });
    for (const writes of [[aPodWrite("a", { runs })], []])
      expect(stepOf([{ ...before, containers }], writes)).toMatchObject({
        type: "fail",
        message: "pod a: its container proxy restarted during the resize",
      });
  });

  it("if a container restarted after a previous leader resized the pod", () => {
    const at = (restartedAtMs: number) =>
      stepOf([aResizedPod("a", { resizedAtMs: NOW_MS - 5000 }, { restartCount: 1, restartedAtMs })]);
    expect(at(NOW_MS - 4000)).toMatchObject({ reason: "Restarted" });
    expect(at(NOW_MS - 6000)).toEqual({ type: "resize", actions: [] });
  });

  it("but a container may restart later than a resize may take, whether or not this process resized the pod", () => {
    const resizedAtMs = NOW_MS - 60 * MINUTE;
    const write = aPodWrite("a", { runs: runsOf(aPod("a")), lastAtMs: resizedAtMs });
    const at = (
      afterMs: number,
      changes: Partial<ContainerView> = {},
      writes: readonly Write[] = [write],
    ) => {
      const ended = {
        restartCount: 1,
        containerId: "other",
        restartedAtMs: resizedAtMs + afterMs,
        ...changes,
      };
      return stepOf([aResizedPod("a", { resizedAtMs }, ended), aPod("b")], writes);
    };
    for (const isRunning of [true, false])
      for (const writes of [[], [write]]) {
        expect(at(2 * MINUTE, { isRunning }, writes)).toMatchObject({ reason: "Restarted" });
        expect(resizedNext(at(2 * MINUTE + 1, { isRunning }, writes))).toEqual(["b"]);
      }
    // The container has just ended, and its status shows the end only later.
    expect(resizedNext(at(0, { isRunning: false, restartedAtMs: 0 }))).toEqual(["b"]);
    // Nothing shows when the resize was granted.
    const pending = { ...someWrites([]), pendingRuns: () => runsOf(aPod("a")) };
    const restarted = { restartCount: 1, containerId: "other", restartedAtMs: NOW_MS - MINUTE };
    const granted = aResizedPod("a", { resizedAtMs }, restarted);
    expect(stepOf([granted], [], { writes: pending })).toMatchObject({ reason: "Restarted" });
  });

  it("also if a container is OOM-killed later, with less memory", () => {
    const resizedAtMs = NOW_MS - 60 * MINUTE;
    const killed = { restartCount: 1, restartedAtMs: NOW_MS, isOomKilled: true };
    const pods = [aResizedPod("a", { resizedAtMs }, killed), aPod("b")];
    const from = (size: PipeView["size"], changes: Partial<PipeView> = {}) =>
      stepOf(pods, [], {}, { size, ...changes });
    expect(from(sizeOfCores(8))).toMatchObject({ reason: "Restarted" });
    expect(resizedNext(from(ONE))).toEqual(["b"]);
    // The container has just ended for another reason, and its status still has the kill before the resize.
    const earlier = { ...killed, restartedAtMs: resizedAtMs - 60 * MINUTE, isRunning: false };
    const ended = [aResizedPod("a", { resizedAtMs }, earlier), aPod("b")];
    expect(resizedNext(stepOf(ended, [], {}, { size: sizeOfCores(8) }))).toEqual(["b"]);
  });

  it("also if the clock of the node of a container that restarts at once is ahead", () => {
    const runs = runsOf(aPod("a"));
    const write = aPodWrite("a", { runs, lastAtMs: NOW_MS - 5000 });
    const restarted = { restartCount: 1, containerId: "other", restartedAtMs: NOW_MS + 10 * MINUTE };
    const pods = [aResizedPod("a", { resizedAtMs: NOW_MS - 5000 }, restarted), aPod("b")];
    expect(stepOf(pods, [write])).toMatchObject({ reason: "Restarted" });
  });

  it("but a container may restart while the kubelet defers the resize, because it has applied nothing", () => {
    const resize = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
    const restartedOnce = { restartCount: 1, containerId: "other", restartedAtMs: NOW_MS - 1000 };
    const write = aPodWrite("a", { runs: runsOf(aPod("a")), lastAtMs: NOW_MS - 5000 });
    for (const changes of [restartedOnce, { ...restartedOnce, isRunning: false }]) {
      const deferred = aResizedPod("a", { resize, resizedAtMs: NOW_MS - 5000 }, changes);
      expect(stepOf([deferred], [write])).toMatchObject({ type: "wait" });
      expect(stepOf([deferred])).toMatchObject({ type: "wait" });
    }
    const granted = aResizedPod("a", { resizedAtMs: NOW_MS - 5000 }, restartedOnce);
    const stepAfter = (runs: string) =>
      stepOf([granted], [], { writes: { ...someWrites([write]), pendingRuns: () => runs } });
    expect(stepAfter(runsOf(granted))).toEqual({ type: "resize", actions: [] });
    // The container was stopped when the resize was granted, or restarted after that.
    expect(stepAfter(runsOf(aPod("a")))).toMatchObject({ type: "fail", reason: "Restarted" });
  });

  it("but it ignores restarts of a pod that it did not resize", () => {
    const crashed = { restartCount: 1, containerId: "other", restartedAtMs: NOW_MS - 1000 };
    const created = aPod("b", {}, { resources: amounts(FOUR), ...crashed });
    expect(resizedNext(stepOf([aPod("a", {}, crashed), created]))).toEqual(["a"]);
  });

  it("while the owner of the Deployment has paused it", () => {
    expect(stepOf([aPod("a")], [], {}, { isPaused: true })).toMatchObject({
      type: "fail",
      reason: "NotSettled",
    });
  });

  it("while the Deployment controller has not observed a change, such as the adoption of a pipe that runs for days", () => {
    const rollout = { ...COMPLETE, isSeen: false, isUpdated: false, isComplete: false };
    expect(stepOf([aPod("a")], [], {}, { rollout })).toMatchObject({ type: "wait" });
  });

  it.each<[string, readonly PodView[], Partial<PipeView>, string]>([
    ["the Deployment is being scaled", [aPod("a")], { rollout: UNDER_WAY }, "NotSettled"],
    ["pods of two templates are running", [aPod("a"), aPod("b", { templateHash: "old" })], {}, "NotSettled"],
    [
      "a new pod is starting",
      [aPod("a", { createdAtMs: NOW_MS - 50_000 }, { isRunning: false })],
      {},
      "ContainerNotRunning",
    ],
  ])("for at most two minutes while %s", (_what, pods, pipe, reason) => {
    const at = (agoMs: number) => {
      const rollout = { ...(pipe.rollout ?? COMPLETE), progressedAtS: (NOW_MS - agoMs) / 1000 };
      const created = pods.map((pod) => ({ ...pod, createdAtMs: NOW_MS - agoMs }));
      return stepOf(created, [], {}, { ...pipe, rollout });
    };
    expect(at(50_000)).toMatchObject({ type: "wait", untilMs: NOW_MS + 70_000 });
    expect(at(2 * MINUTE)).toMatchObject({ type: "fail", reason });
  });

  it("for at most two minutes while a pod is not ready, also if another one crashes again and again", () => {
    const unready = (agoMs: number) => aPod("a", { isReady: false, readyChangedAtMs: NOW_MS - agoMs });
    const at = (...pods: readonly PodView[]) =>
      stepOf(pods, [], {}, { rollout: { ...COMPLETE, isComplete: false, isUpdated: false } });
    expect(at(unready(50_000))).toMatchObject({ type: "wait", untilMs: NOW_MS + 70_000 });
    const flapping = aPod("b", { readyChangedAtMs: NOW_MS }, { restartCount: 9 });
    for (const other of [flapping, { ...flapping, isReady: false }])
      expect(at(unready(2 * MINUTE), other)).toMatchObject({ type: "fail", reason: "NotSettled" });
  });

  it("for at most two minutes after a pod became ready, or was seen to end", () => {
    const at = (agoMs: number, endedAgoMs: number) => {
      const ended = { atMs: NOW_MS - endedAgoMs, containers: [] };
      const changes = { endedPods: new Map([["a", ended]]) };
      const rollout = { ...COMPLETE, isComplete: false, isUpdated: false };
      return stepOf([aPod("a", { readyChangedAtMs: NOW_MS - agoMs })], [], changes, { rollout });
    };
    for (const [agoMs, endedAgoMs] of [
      [50_000, 2 * MINUTE],
      [2 * MINUTE, 50_000],
    ] as const)
      expect(at(agoMs, endedAgoMs)).toMatchObject({ type: "wait", untilMs: NOW_MS + 70_000 });
    expect(at(2 * MINUTE, 2 * MINUTE)).toMatchObject({ type: "fail", reason: "NotSettled" });
  });

  it("while all pods of a StatefulSet are terminating, however long they take", () => {
    const { rollout, inTurn } = aStatefulPipe({ status: { updatedReplicas: 0, availableReplicas: 0 } });
    const pods = ["a-0", "a-1", "a-2"].map((name) => aPod(name, { ...ENDING, templateHash: "a-1" }));
    // A resize that has begun is over, and one that has not begun waits.
    expect(stepOf(pods, [], {}, { rollout, inTurn })).toEqual({ type: "resize", actions: [] });
    const problem = inPlaceProblem(aSubject(aLabelledPipe("a", { replicas: 3, rollout, inTurn }), pods));
    expect(problem).toEqual({
      reason: "NotSettled",
      message: "its pods are terminating",
      untilMs: NOW_MS + 2 * MINUTE,
    });
  });

  it("for two minutes more than a pod must be ready to be available", () => {
    const rollout = { ...COMPLETE, isComplete: false, isUpdated: false };
    const at = (agoMs: number) =>
      stepOf([aPod("a", { readyChangedAtMs: NOW_MS - agoMs })], [], {}, { rollout, minReadyMs: 5 * MINUTE });
    expect(at(6 * MINUTE)).toMatchObject({ type: "wait", untilMs: NOW_MS + MINUTE });
    expect(at(7 * MINUTE)).toMatchObject({ type: "fail", reason: "NotSettled" });
  });

  it("if this size failed in place before, until people ask for a retry", () => {
    const failure: InPlaceFailure = {
      size: FOUR,
      reason: "Deferred",
      message: "no room",
      atMs: NOW_MS - MINUTE,
    };
    const lastRollout = aRollout(ONE, { inPlaceFailure: failure, cameUp: true });
    const stepAfter = (changes: Partial<Snapshot>) => stepOf([aPod("a")], [], changes, { lastRollout });
    expect(stepAfter({})).toMatchObject({ type: "fail", reason: "Deferred", message: "no room" });
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(resizedNext(stepAfter({ scaling }))).toEqual(["a"]);
    expect(stepAfter({ scaling: aScaling(4, { retryRequestedAtMs: NOW_MS - 2 * MINUTE }) })).toMatchObject({
      reason: "Deferred",
    });
    expect(resizedNext(stepAfter({ scaling: aScaling(2) }))).toEqual(["a"]);
  });
});
