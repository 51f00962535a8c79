import type { FallbackReason } from "../../crd/fallback-reasons.ts";
import { sameSize } from "../../domain/size.ts";
import type { Container } from "../../kube/pods.ts";
import type { Action, InPlaceAction } from "../actions.ts";
import type { ActivePod, Failure, PipeDecision, Problem, Subject } from "../assessment.ts";
import {
  type Fallback,
  type InPlaceFailure,
  isOfOtherResources,
  type OutOfMemory,
} from "../observe/last-rollout.ts";
import { hasAnyResource, isOfTemplate, type PipeView, templateResources } from "../observe/pipe-view.ts";
import { type ContainerView, isRunning, type PodView } from "../observe/pod-view.ts";
import {
  formatAllotment,
  hasResources,
  memoryLimitOf,
  type Resources,
  resourcesOf,
  type SomeResources,
} from "../observe/resources.ts";
import { mayReplacePods, visiblePods } from "../pods.ts";
import { dueAtMs, failureOf, isRetryRequested, retriedAt, retryAtMs, unlessAhead } from "../retry.ts";
import { adoption, inPlaceFailureTo } from "../rollout/annotation.ts";
import { leftToOwner } from "../rollout/rules.ts";

/**
 * The size cannot be applied in place, and this is recorded before anything else. If the strategy replaces no pods,
 * only a lasting problem is recorded, and with any other one the pipe waits.
 */
export function fallsBack(subject: Subject, problem: Problem): PipeDecision {
  if (!mayReplacePods(subject) && !isLasting(problem)) return waitsInPlace(subject, problem);
  const record = subject.writes.get(subject.pipe.metadata.uid, "adopt");
  const failure = failureOf(record, dueAtMs(record, subject.pipe, subject));
  const next = { type: "continue", actions: recordFailure(subject, problem) } as const;
  return { state: failure ? "retrying" : "rolling", phase: "resizing", failure, next };
}

/** Records in the annotation that the size is not tried in place again. Nothing else would show it later. */
export function recordFailure(subject: Subject, fallback: Fallback): readonly Action[] {
  const { pipe, writes, desired, nowMs } = subject;
  const inPlaceFailure = { ...inPlaceFailureTo(desired, fallback, nowMs), revision: pipe.revision };
  const present = pipe.lastRollout ?? adoption(subject);
  const record = writes.get(pipe.metadata.uid, "adopt");
  const isDue = record?.outcome.type === "done" || dueAtMs(record, pipe, subject) <= nowMs;
  return present && isDue
    ? [{ type: "adopt", pipe, rollout: { ...present, inPlaceFailure }, judged: visiblePods(subject) }]
    : [];
}

/**
 * The writes that return pods to the size of their template, before a rollout or because the pipe cannot have the size.
 * Otherwise, a pod that is larger or whose resize is deferred would take the room of the new pods, and if the rollout
 * failed, the old pods would keep a size that nothing reports. A rollout does not wait for a second attempt,
 * because a pod that cannot be returned is replaced. One that ran out of memory keeps what it has until then.
 */
export function podsToReturn(subject: Subject): readonly InPlaceAction[] {
  const { pipe, writes, container, active, nowMs } = subject;
  const resources = templateResources(pipe);
  if (!resources) return [];
  const isKept = isOutOfMemory(subject) && isFollowedByRollout(subject);
  const isDue = (pod: PodView) => {
    const record = writes.get(pod.metadata.uid, "return-pod");
    if (record?.subject !== formatAllotment(resources)) return true;
    return record.outcome.type === "failed" && dueAtMs(record, pod, subject) <= nowMs;
  };
  return active
    .filter(({ pod, own }) => isOfTemplate(pipe, pod) && !hasResources(own?.resources, resources))
    .filter(
      (each) => isDue(each.pod) && !isStarved(each, resources) && !(isKept && isLowered(each, resources)),
    )
    .map(({ pod }) => ({ type: "return-pod", pipe, pod, container, resources }));
}

/**
 * True if a container of the pod does not run, and the memory limit would rise. The kubelet would keep the smaller
 * limit and report the larger one.
 */
function isStarved({ pod, own }: ActivePod, resources: SomeResources): boolean {
  return !isRunning(pod) && memoryLimitOf(resources) > memoryLimitOf(own?.resources);
}

/**
 * True if a container of the pipe was OOM-killed with less memory than its service gets now. It is killed again and
 * again, so a rollout to more memory interrupts nothing that runs well.
 */
export function isOutOfMemory(subject: Subject): boolean {
  const { outOfMemory, pipe, active, target, nowMs, timeouts } = subject;
  if (!outOfMemory) return false;
  const isTooSmall = (resources: Parameters<typeof memoryLimitOf>[0]) =>
    memoryLimitOf(resources) < memoryLimitOf(target);
  const isTemplateTooSmall = isTooSmall(templateResources(pipe));
  const recordedMs = killedSinceMs(pipe, outOfMemory, isTemplateTooSmall);
  const sinceMs = unlessAhead(recordedMs, nowMs, nowMs - timeouts.outOfMemoryMs);
  return active.some(
    ({ own }) =>
      own?.isOomKilled &&
      own.restartedAtMs >= sinceMs &&
      // If the template has enough memory, its pods lack it only while they run with less.
      (isTemplateTooSmall || isTooSmall(own.actual ?? own.resources)),
  );
}

/** Since when a kill shows that the pipe needs the larger size. Before that, its containers had another size. */
function killedSinceMs(
  { lastRollout }: PipeView,
  { atMs }: OutOfMemory,
  isTemplateTooSmall: boolean,
): number {
  if (!lastRollout) return atMs;
  const { inPlaceStartedAtMs, startedAtMs, isRollback, attempts } = lastRollout;
  // Pods that a rollback kept still show the kills before it.
  if (inPlaceStartedAtMs === undefined && isRollback) return atMs;
  const sinceMs = inPlaceStartedAtMs ?? startedAtMs;
  const isUndone = inPlaceStartedAtMs !== undefined && attempts === 0;
  // Another pipe showed the shortage, and the template of this one had not followed yet.
  return isTemplateTooSmall || isUndone ? sinceMs : Math.max(sinceMs, atMs);
}

/** True if the container would get less memory than it runs with. */
function isLowered({ own }: ActivePod, resources: SomeResources): boolean {
  return memoryLimitOf(own?.actual) > memoryLimitOf(resources);
}

/** The resources of the first pod that does not have or does not run the size, and the hash of its template. */
export function stalePod({ container: name, target, active }: Subject) {
  for (const { pod, own } of active) {
    const resources = staleResources(own, target);
    if (resources) return { templateHash: pod.templateHash, resources: resourcesOf({ name, resources }) };
  }
  return undefined;
}

/**
 * The resources of a container that lacks the size: those in the spec of its pod or, if the kubelet has not applied
 * that, those that it runs with. `undefined` if it has the size.
 */
export function staleResources(own: ContainerView | undefined, target: Resources): Container["resources"] {
  return [own?.resources, own?.actual].find((each) => each && !hasResources(each, target));
}

/*
 * Pipes that cannot be resized in place, and whose pods must not be replaced: with the strategy InPlace, and before
 * somebody requests a size. With InPlace, the kubelet goes on with resizes that it has deferred or that had an error,
 * so these pods keep the size that they wait for, and nothing is recorded.
 */

/** An attempt soon after would fail, too, so these reasons are recorded, and the pods get their old size again. */
const LASTING: readonly FallbackReason[] = ["Restarted", "Reverted"];

export function isLasting({ reason }: Pick<Fallback, "reason">): boolean {
  return LASTING.includes(reason);
}

/**
 * True while a lasting failure keeps the pods from another attempt with the same size. Other reasons are visible in the
 * cluster.
 */
export function isRemembered(failure: InPlaceFailure, subject: Subject): boolean {
  const { revision = subject.pipe.revision } = failure;
  if (!isLasting(failure) || revision !== subject.pipe.revision) return false;
  return subject.nowMs < retriedAtMs(failure, subject);
}

/**
 * When the size is tried again, in milliseconds since 1970. Without a request, infinite if a container restarted with
 * the size for another reason than too little memory before.
 */
function retriedAtMs({ reason, atMs }: Pick<InPlaceFailure, "reason" | "atMs">, subject: Subject): number {
  const { timeouts, outOfMemory } = subject;
  // The container is killed again and again until it has the larger size, so its restarts say nothing about that size.
  const lacksMemory = outOfMemory !== undefined || wasTooSmall(subject);
  const afterRestartMs = lacksMemory ? timeouts.outOfMemoryMs : Number.POSITIVE_INFINITY;
  return retryAtMs(atMs, reason === "Reverted" ? timeouts.rolloutRetry.mostMs : afterRestartMs, subject);
}

/**
 * True if the desired size has more memory than the template, and a container was OOM-killed. If the container had the
 * larger size then, the smaller one would not be enough either.
 */
function wasTooSmall({ pipe, desired, active }: Subject): boolean {
  if (!pipe.size || desired.memoryGib <= pipe.size.memoryGib) return false;
  return active.some(({ own }) => own?.isOomKilled);
}

/**
 * True for a pipe that cannot be resized in place, and must not restart. It keeps no other pipe from its size. False if
 * its pods have the size, and only the template cannot follow them.
 */
export function isHindered<T extends PipeDecision>(of: T): of is T & Required<Pick<T, "hindrance">> {
  return of.state === "waiting" && of.hindrance !== undefined;
}

/** @param problem `untilMs`: when it may end without an event, in milliseconds since 1970 */
export function waitsInPlace(
  subject: Subject,
  problem: Problem & Partial<Pick<InPlaceFailure, "atMs">>,
): PipeDecision {
  const { reason, message, untilMs } = problem;
  const waiting = {
    state: "waiting",
    hindrance: { reason, message },
    activity: `it cannot be resized in place, and its strategy replaces no pod: ${message}`,
    recheckAtMs: untilMs,
  } as const;
  const { atMs } = problem;
  if (atMs === undefined) return waiting;
  const recheckAtMs = retriedAtMs({ reason, atMs }, subject);
  if (reason === "Reverted") return { ...waiting, recheckAtMs };
  // The size itself may have stopped the container, so no other pipe gets it.
  const failure = retriedAt(recheckAtMs, notResized(waiting.hindrance, atMs));
  return { ...waiting, recheckAtMs, state: "failed", failure, next: { type: "continue", actions: [] } };
}

/**
 * Labels alone restart nothing. True for a pipe that had resources when it became one of a new service, until a size or
 * a retry is requested. False for a pipe that the controller resized before, or that had the size when it was adopted,
 * because its owner has moved or changed it since then.
 */
export function isUnrequested(subject: Subject): boolean {
  const { pipe, scaling } = subject;
  if (!scaling.isUnrequested || isRetryRequested(0, subject) || !hasAnyResource(pipe)) return false;
  const { lastRollout, resizedAtMs } = pipe;
  if (!lastRollout) return resizedAtMs === undefined;
  return isOfOtherResources(lastRollout);
}

/**
 * True if a size that cannot be applied in place is rolled out: unless the strategy replaces no pods, or the pipe waits
 * for its owner or for a request instead.
 */
export function isFollowedByRollout(subject: Subject): boolean {
  return mayReplacePods(subject) && !isUnrequested(subject) && !leftToOwner(subject);
}

/**
 * True if the rollout of the size began with this failure, or one follows. With the strategy InPlace, a new pod may fail
 * to get the size of its template, and waits.
 */
export function leadsToRollout(failure: InPlaceFailure, subject: Subject): boolean {
  const { size, lastRollout } = subject.pipe;
  const { generation = 0, startedAtMs = 0 } = lastRollout ?? {};
  const isOfRollout = generation > 0 && failure.atMs <= startedAtMs && sameSize(failure.size, size);
  return isOfRollout || isFollowedByRollout(subject);
}

/** @param problem why it cannot be resized in place; absent if its strategy does not allow that */
export function waitsForRequest(problem: Fallback | undefined): PipeDecision {
  const because = problem?.message ?? "its strategy is Rollout";
  const message = `no size was requested since it got its labels, so it keeps its resources; another size needs a restart, because ${because}`;
  return { state: "waiting", hindrance: { reason: NOT_REQUESTED, message }, activity: message };
}

const NOT_REQUESTED = "SizeNotRequested";

/** The failure of a pipe that cannot be resized in place and must not restart. */
export function notResized({ reason, message }: Fallback, atMs: number): Failure {
  const because = `it cannot be resized in place (${reason}: ${message}), and its strategy replaces no pod`;
  const text =
    reason === NOT_REQUESTED
      ? `${message}: request a size`
      : `${because}: fix that, or set the strategy InPlaceOrRollout`;
  return { reason: "NotResizedInPlace", message: text, attempts: 1, atMs };
}
