import { rolloutWindowAt } from "../../domain/rollout-window.ts";
import { sameSize } from "../../domain/size.ts";
import { formatTime } from "../../kube/time.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { ActivePod, Failed, PodState, PodsStep, Problem, Subject } from "../assessment.ts";
import type { Fallback } from "../observe/last-rollout.ts";
import { templateResources } from "../observe/pipe-view.ts";
import type { ContainerView, PodView } from "../observe/pod-view.ts";
import { memoryLimitOf } from "../observe/resources.ts";
import { isOpen } from "../observe/write-record.ts";
import { begunAtMs, isAsCreated, mayReplacePods, podsAtOnce } from "../pods.ts";
import {
  dueAtMs,
  errorOf,
  failureOf,
  isRefusal,
  lastErrorOf,
  NO_ROOM,
  retriedAt,
  unlessOrdinary,
} from "../retry.ts";
import { timeoutMsOf } from "../rollout/phase.ts";
import { isRoomFound, roomRecord, roomSearch, searchedAtMs } from "../rollout/way.ts";
import { isDrifted, repairDrift } from "./drift.ts";
import { isOutOfMemory } from "./fall-back.ts";
import { inPlaceProblem, problemOfPod, unseenProblem } from "./problem.ts";

/** A pipe, and those of its pods that do not have the size yet. */
interface Pods extends Subject {
  readonly unchanged: readonly ActivePod[];
  /** Those that can be resized now; all of them if none can. */
  readonly pending: readonly ActivePod[];
}

/** The first one that applies decides. */
const RULES: readonly ((pods: Pods) => PodsStep | undefined)[] = [
  // A container that restarted may run with the old limits, whatever the node reports.
  restarted,
  // A pod that has waited too long for room or for the kubelet needs a rollout, or is reported.
  overdue,
  // A write whose outcome is unknown may give the pod the size.
  writing,
  // A resize changes one pod, or a few, at a time.
  resizing,
  // Every pod that is seen has the size.
  complete,
  // Another writer gave pods another size. No pod is replaced for that, because new pods would get that size too.
  drifted,
  // The API server would refuse the other pods, too.
  refused,
  // The pods that are left cannot be resized, or not yet.
  hindered,
  // A failed write is repeated. After the time that a resize may take, it is also a reason for a rollout.
  retrying,
];

export function podsStep(subject: Subject): PodsStep {
  const unchanged = subject.active.filter(({ state }) => state === "unchanged");
  const resizable = unchanged.filter((each) => !problemOfPod(each, subject));
  const pods = { ...subject, unchanged, pending: resizable.length > 0 ? resizable : unchanged };
  for (const rule of RULES) {
    const step = rule(pods);
    if (step) return step;
  }
  return next(pods);
}

/** Returns a pod whose size the API server refused for a reason that holds for new pods, too. */
export function refusedSize({ active }: Subject): ActivePod | undefined {
  return active.find(({ record }) => {
    const error = lastErrorOf(record);
    return error && isRefusal(error.reason) && error.fallback === undefined;
  });
}

export function restarted(subject: Subject): Failed | undefined {
  for (const each of subject.active) {
    const container = restartedContainer(each, subject);
    if (container)
      return failed(each, "Restarted", `its container ${container.name} restarted during the resize`);
  }
  return undefined;
}

/**
 * Returns the first container that restarted when the kubelet applied the size. A pod that was created with the size
 * does not count, and one whose kubelet has applied nothing runs with its old size. If this process resized the pod
 * last, or saw it wait, it knows the runs of the containers before the size was applied. Otherwise, the times show
 * whether a run ended after the resize.
 */
function restartedContainer(each: ActivePod, subject: Subject): ContainerView | undefined {
  const { pod, own, state, record } = each;
  if (UNAPPLIED.includes(state) || isAsCreated(each)) return undefined;
  // The pod ran the size before its template followed. Since then, its restarts are a matter of health.
  if (state === "done" && sameSize(subject.pipe.size, subject.desired)) return undefined;
  const pendingRuns = subject.writes.pendingRuns(pod.metadata.uid);
  const runs = own?.otherResizedAtMs === undefined ? (pendingRuns ?? record?.runs)?.split(",") : undefined;
  const resizedAtMs = own?.otherResizedAtMs ?? pod.resizedAtMs ?? Number.POSITIVE_INFINITY;
  const hasRestarted = (container: ContainerView, at: number) =>
    !container.isRunning || (runs ? runs[at] !== runOf(container) : container.restartedAtMs > resizedAtMs);
  // Nothing shows when the kubelet granted a resize that it had deferred.
  const mayBeUnrelated = state === "done" && pendingRuns === undefined;
  return pod.containers.find(
    (container, at) =>
      hasRestarted(container, at) && !(mayBeUnrelated && isUnrelated(container, each, subject)),
  );
}

/**
 * True if a run of a container ended so long after the resize that this was a matter of health: the template may wait
 * for hours for another pod. With less memory, a program may be OOM-killed at any time because of that.
 */
function isUnrelated(container: ContainerView, each: ActivePod, subject: Subject): boolean {
  const { pipe, target, nowMs, timeouts } = subject;
  const isSmaller = memoryLimitOf(templateResources(pipe)) > memoryLimitOf(target);
  const begunMs = begunAtMs(each, subject);
  const { restartedAtMs } = container;
  const isOfEarlierRun = restartedAtMs < begunMs;
  if (isSmaller && container.isOomKilled && !isOfEarlierRun && container.name === each.own?.name)
    return false;
  // The status of a container shows the end of its last run only when the kubelet is about to start it again. The clock
  // of a node may be ahead.
  const endedAtMs = !container.isRunning && isOfEarlierRun ? nowMs : Math.min(restartedAtMs, nowMs);
  return endedAtMs > begunMs + timeouts.resizeMs;
}

const UNAPPLIED: readonly PodState[] = ["unchanged", "deferred", "infeasible"];

/** Identifies the runs of the containers of a pod, in the order of its spec. */
export function runsOf({ containers }: PodView): string {
  return containers.map(runOf).join(",");
}

function runOf({ containerId, restartCount }: ContainerView): string {
  return `${containerId} ${restartCount}`;
}

function overdue(pods: Pods): PodsStep | undefined {
  const over = pods.active.filter((each) => endsAtMs(each, pods) <= pods.nowMs);
  const found = over.find(({ state }) => state !== "deferred") ?? over[0];
  if (!found) return undefined;
  const deferral = found.state === "deferred" ? waitForRoom(found, pods) : undefined;
  if (deferral) return deferral;
  const message = found.pod.resize?.message ?? "the kubelet has not resized it";
  return failed(found, TIMED_OUT[found.state] ?? "ResizeTimeout", message);
}

/**
 * The kubelet grants the resize as soon as its node has room, and nothing restarts. So the pod keeps waiting unless
 * another node has room now. While a rollout could not begin, room on another node would be of no use yet.
 *
 * @returns `undefined` if it does not wait any more
 */
function waitForRoom(found: ActivePod, subject: Subject): PodsStep | undefined {
  const { pipe, active, nowMs, scaling } = subject;
  if (!pipe.stopsOldPodsFirst || !mayReplacePods(subject)) return undefined;
  const held = waitForWindow(found, subject);
  if (held || isRoomFound(subject)) return held;
  const result = unlessOrdinary(failureOf(roomRecord(subject)));
  const untilMs = searchedAtMs(subject);
  // If its own node had room, the kubelet would have granted the resize.
  const full = active.filter(({ state }) => state === "deferred").map(({ pod }) => pod.nodeName);
  const searched = scaling.spec.suspend ? "are not" : "are being";
  const elsewhere = result?.message ?? `other nodes ${searched} searched for room`;
  const message = `${lacksRoom(found)}; ${elsewhere}`;
  const actions = untilMs <= nowMs ? [roomSearch(subject, full)] : [];
  const failsAtMs = begunAtMs(found, subject) + timeoutMsOf(pipe, subject);
  const deferral = { type: "defer", message, isHeld: false, actions } as const;
  if (failsAtMs > nowMs) return { ...deferral, untilMs: Math.min(untilMs, failsAtMs), failure: undefined };
  // The pipe may have waited for a window until now. Searches run one at a time, so the first one may take a while.
  if (!result) return { ...deferral, untilMs, failure: undefined };
  const { attempts, atMs } = result;
  const failure = retriedAt(untilMs, { reason: NO_ROOM, message, attempts, atMs });
  return { ...deferral, untilMs, failure };
}

/** A closed window of either scope holds back restarts, unless the pipe runs out of memory until then. */
function waitForWindow(found: ActivePod, subject: Subject): PodsStep | undefined {
  if (isOutOfMemory(subject)) return undefined;
  const { rolloutWindow, scaling, active, nowMs } = subject;
  const window = rolloutWindowAt(rolloutWindow, nowMs, scaling.windowIgnoredUntilMs);
  if (window.open) return undefined;
  const endsMs = active.map((each) => endsAtMs(each, subject)).filter((atMs) => atMs > nowMs);
  const message = `${lacksRoom(found)}; a rollout would wait for the rollout window, which opens at ${formatTime(window.opensAtMs)}`;
  const untilMs = Math.min(window.opensAtMs, ...endsMs);
  return { type: "defer", message, isHeld: true, untilMs, actions: [], failure: undefined };
}

function lacksRoom({ pod }: ActivePod): string {
  return `pod ${pod.metadata.name} waits for room on its node (${pod.resize?.message})`;
}

const TIMED_OUT: { readonly [state in PodState]?: Fallback["reason"] } = {
  infeasible: "Infeasible",
  deferred: "Deferred",
  error: "ResizeError",
};

function writing(pods: Pods): PodsStep | undefined {
  const { active, unchanged, writes, nowMs, timeouts } = pods;
  const open = active.some(({ pod }) => isOpen(writes.get(pod.metadata.uid, "resize-pod")));
  if (!open) return undefined;
  const wait = { type: "wait", untilMs: nowMs + timeouts.resizeMs } as const;
  const failing = unchanged.find(({ record }) => lastErrorOf(record));
  if (!failing) return wait;
  const hindrance = hindranceBy(failing, pods);
  if (hindrance && !mayReplacePods(pods)) return { ...wait, hindrance };
  // The pipe will be rolled out because of the hindrance, so its status shows no failure.
  return hindrance
    ? wait
    : { ...wait, failure: failureOf(failing.record, dueAtMs(failing.record, failing.pod, pods)) };
}

function resizing(pods: Pods): PodsStep | undefined {
  const untilMs = Math.min(...pods.active.map((each) => endsAtMs(each, pods)));
  return Number.isFinite(untilMs) ? { type: "wait", untilMs } : undefined;
}

/** When the resize of a pod fails unless it is done before; infinite if none is in progress. */
function endsAtMs(each: ActivePod, subject: Subject): number {
  const { state, pod } = each;
  const { nowMs, timeouts } = subject;
  if (state === "unchanged" || state === "done") return Number.POSITIVE_INFINITY;
  // Until the kubelet has seen the resize, it reports about the one before, whose size may have been larger.
  if (state === "infeasible" && pod.observedGeneration >= pod.metadata.generation) return nowMs;
  return begunAtMs(each, subject) + (state === "deferred" ? timeouts.deferredMs : timeouts.resizeMs);
}

/** True if the resize of the pod is in progress and may still succeed. */
export function isInTime(each: ActivePod, subject: Subject): boolean {
  const untilMs = endsAtMs(each, subject);
  return Number.isFinite(untilMs) && untilMs > subject.nowMs && !restartedContainer(each, subject);
}

function complete(pods: Pods): PodsStep | undefined {
  if (pods.unchanged.length > 0) return undefined;
  return hindranceOf(unseenProblem(pods)) ?? { type: "resize", actions: [] };
}

/** Other pods that do not have the size yet come first, and so does the rollout that one of them needs. */
function drifted(pods: Pods): PodsStep | undefined {
  const { pending, unchanged } = pods;
  if (!pending.every((each) => isDrifted(each, pods))) return undefined;
  const others = unchanged.filter((each) => !isDrifted(each, pods));
  const problems = others.map((each) => problemOfPod(each, pods));
  if (mayReplacePods(pods) && problems.some((problem) => problem && problem.untilMs === undefined))
    return undefined;
  const step = repairDrift(pods, pending);
  const endsAtMs = Math.min(...problems.map((problem) => problem?.untilMs ?? Number.POSITIVE_INFINITY));
  if (step?.type === "wait") return { ...step, untilMs: Math.min(step.untilMs, endsAtMs) };
  if (step?.type !== "conflict" || !Number.isFinite(endsAtMs)) return step;
  return { type: "wait", untilMs: endsAtMs, failure: step.failure };
}

function refused({ unchanged, ...pods }: Pods): PodsStep | undefined {
  for (const each of unchanged) {
    const { fallback, message = "" } = errorOf(each.record) ?? {};
    if (!fallback) continue;
    const refusal = failed(each, fallback, message);
    if (mayReplacePods(pods)) return refusal;
    // With the strategy InPlace, nothing else can apply the size, so the write is repeated.
    const untilMs = dueAtMs(each.record, each.pod, pods);
    if (untilMs > pods.nowMs) return { ...refusal, untilMs };
  }
  return undefined;
}

function hindered(pods: Pods): PodsStep | undefined {
  return hindranceOf(inPlaceProblem(pods));
}

function hindranceOf(problem: Problem | undefined): PodsStep | undefined {
  if (!problem) return undefined;
  const { reason, message, untilMs } = problem;
  return untilMs === undefined
    ? { type: "fail", reason, message }
    : { type: "wait", untilMs, because: message };
}

function retrying(pods: Pods): PodsStep | undefined {
  const { pending, nowMs } = pods;
  const failing = pending.filter(({ record }) => errorOf(record));
  const [first] = failing;
  if (!first) return undefined;
  const untilMs = Math.min(...failing.map((each) => dueAtMs(each.record, each.pod, pods)));
  const timedOut = hindranceBy(first, pods);
  if (timedOut && mayReplacePods(pods)) return timedOut;
  if (untilMs <= nowMs) return undefined;
  return timedOut
    ? { ...timedOut, untilMs }
    : { type: "wait", untilMs, failure: failureOf(first.record, untilMs) };
}

/**
 * Why a pod needs a rollout: the last write to it was refused for a reason that does not hold for new pods, or its
 * writes have failed for as long as a resize may take.
 */
function hindranceBy(each: ActivePod, { nowMs, timeouts, scaling }: Pods): Failed | undefined {
  const { record } = each;
  const error = lastErrorOf(record);
  if (!record || !error) return undefined;
  if (error.fallback) return failed(each, error.fallback, error.message);
  // A refused size is tried again without a limit, because a rollout would be refused too.
  if (isRefusal(error.reason)) return undefined;
  const { retryRequestedAtMs = 0 } = scaling;
  const requestedMs = retryRequestedAtMs <= nowMs ? retryRequestedAtMs : 0;
  if (elapsedMs(Math.max(record.undecidedSinceMs, requestedMs), nowMs) < timeouts.resizeMs) return undefined;
  return failed(each, "ResizeTimeout", `the API server has not resized it: ${error.message}`);
}

function next(pods: Pods): PodsStep {
  const { pipe, container, target: resources, unchanged, pending, nowMs } = pods;
  const due = pending.filter((each) => dueAtMs(each.record, each.pod, pods) <= nowMs);
  const actions = due
    .slice(0, podsAtOnce(unchanged, pods))
    .map(({ pod }) => ({ type: "resize-pod", pipe, pod, container, resources }) as const);
  return { type: "resize", actions };
}

function failed({ pod }: ActivePod, reason: Fallback["reason"], message: string): Failed {
  return { type: "fail", reason, message: `pod ${pod.metadata.name}: ${message}` };
}
