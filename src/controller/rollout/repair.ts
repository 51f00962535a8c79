import { type Size, sameSize } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import type { DeletePodAction, PipeAction } from "../actions.ts";
import type { ActivePod, Assessment, Cause, Subject } from "../assessment.ts";
import { MAX_ANNOTATED_MESSAGE } from "../names.ts";
import {
  annotationSubject,
  appliedSize,
  isOfOtherResources,
  type LastRollout,
} from "../observe/last-rollout.ts";
import { requestedSize } from "../observe/pipe-scaling-view.ts";
import {
  hasAppliedSize,
  hasNoPods,
  isChangedByOwner,
  isHeld,
  isOfTemplate,
  isRollingOut,
  type PipeView,
} from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { isSize, sizeOf, sizeOfAllotment } from "../observe/resources.ts";
import { isOpen, READ_LATER, type WritePurpose, type WriteRecord } from "../observe/write-record.ts";
import { awaitedOldPod, isUnwatched, mayReplacePods, visiblePods } from "../pods.ts";
import { dueAtMs, errorOf, FIELD_CONFLICT, isOfWrite, recordOf } from "../retry.ts";
import { adoption, hasComeUp, newRollout } from "./annotation.ts";
import { startedAtMs, timeoutMsOf } from "./phase.ts";

/** Returns the writes for a pipe that is not resized now; none while the outcome of a write is unknown. */
export function repair(assessment: Assessment): readonly (PipeAction | DeletePodAction)[] {
  const { subject, pipe, abandoned } = assessment;
  const isOpenFor = (purpose: WritePurpose) => isOpen(subject.writes.get(pipe.metadata.uid, purpose));
  if (READ_LATER.some(isOpenFor) || isUnwatched(subject)) return [];
  const stuck = stuckPod(subject);
  if (stuck && stuck.dueAtMs <= subject.nowMs)
    return [{ type: "delete-pod", pipe, pod: stuck.pod, isFailed: stuck.isFailed }];
  if (abandoned && pipe.lastRollout) return rollBack(subject, pipe.lastRollout.size, abandoned);
  const interrupted = recordInterrupted(subject);
  if (interrupted.length > 0) return interrupted;
  if (!sameSize(pipe.size, subject.desired)) return recordSuperseded(subject);
  return [...record(assessment), ...rollBackFailed(assessment)];
}

/**
 * Records that the owner scaled the pipe to zero before its rollout completed, as if the pipe had got the size then.
 * Otherwise, a later scale-up would count as the same rollout, which Kubernetes announced as complete without a pod.
 */
function recordInterrupted(subject: Subject): readonly PipeAction[] {
  const { pipe } = subject;
  const { lastRollout } = pipe;
  if (!lastRollout || lastRollout.generation === 0 || lastRollout.replicas === 0 || !hasNoPods(pipe))
    return [];
  // Pods that were resized in place ran the size.
  if (lastRollout.inPlaceStartedAtMs !== undefined) return [];
  if (!hasAppliedSize(pipe) || hasComeUp(pipe, subject.writes)) return [];
  return adopt(subject, { ...lastRollout, replicas: 0 });
}

/**
 * Records that the rollout to a size which is no longer desired has completed. Otherwise, a later change of the owner
 * would count as a part of that rollout, and the pipe would be rolled back if the change fails.
 */
function recordSuperseded(subject: Subject): readonly PipeAction[] {
  const { pipe } = subject;
  const { lastRollout, rollout, replicas } = pipe;
  if (!lastRollout || lastRollout.isRollback || !rollout.isComplete || replicas === 0) return [];
  if (!hasAppliedSize(pipe) || hasComeUp(pipe)) return [];
  return adopt(subject, { ...lastRollout, cameUp: true });
}

/**
 * Records facts that nothing else would show later: the rollout completed, the pipe had the size before, or the
 * controller manages its size.
 */
function record(assessment: Assessment): readonly PipeAction[] {
  const { subject, pipe, state } = assessment;
  const { rollout, replicas, lastRollout } = pipe;
  if (!lastRollout || !isRecorded(subject)) {
    // A default size need not be recorded, because the tier determines it again.
    const isNeeded = requestedSize(subject.scaling) !== undefined || !pipe.ownsSize;
    return isNeeded && isAdoptable(assessment) ? adopt(subject, adoption(subject)) : [];
  }
  const kept = withoutOtherSizes(lastRollout, assessment);
  // The rollout has completed as far as the owner allows.
  const isHeldBack = pipe.inTurn?.hold !== undefined && state === "paused";
  const isUp = (state === "done" || isHeldBack) && rollout.isComplete && replicas > 0;
  const wanted = isUp && !hasComeUp(pipe) ? { ...kept, cameUp: true } : kept;
  if (wanted !== lastRollout) return adopt(subject, wanted);
  const isSettled = state === "done" || state === "paused";
  return isSettled && !pipe.ownsSize && !pipe.isPausedForCommit ? adopt(subject, lastRollout) : [];
}

/**
 * The annotation of a pipe that has the desired size, without what it says about other sizes: when one of them is
 * requested again, that is a new attempt. Each part was written for a request, and is removed once.
 */
function withoutOtherSizes(lastRollout: LastRollout, { subject, state }: Assessment): LastRollout {
  if (state !== "done") return lastRollout;
  const { desired, keptOutOfMemory, scaling } = subject;
  const { isRollback, inPlaceFailure, outOfMemory } = lastRollout;
  const { uid: scalingUid, generation: scalingGeneration } = scaling.metadata;
  // Nothing was done for the present request, whose trace would begin with the rollback.
  const noAttempt = { attempts: 0, failure: undefined, requestId: undefined };
  const rolledBackTo = { size: desired, isRollback: false, ...noAttempt };
  const changes: Partial<LastRollout> = {
    ...(isRollback && !isOfOtherResources(lastRollout)
      ? { ...rolledBackTo, scalingUid, scalingGeneration }
      : {}),
    ...(inPlaceFailure && !sameSize(inPlaceFailure.size, desired) ? { inPlaceFailure: undefined } : {}),
    // A retry may have been requested, too.
    ...(outOfMemory && !sameSize(keptOutOfMemory?.size, outOfMemory.size)
      ? { outOfMemory: keptOutOfMemory }
      : {}),
  };
  return Object.keys(changes).length > 0 ? { ...lastRollout, ...changes } : lastRollout;
}

function rollBackFailed({ subject, state, failure }: Assessment): readonly PipeAction[] {
  if (state !== "failed" || !failure || failure.reason === FIELD_CONFLICT) return [];
  const { retryAtMs = 0 } = failure;
  return retryAtMs > subject.nowMs ? [] : rollBack(subject, subject.desired, failure);
}

/** The annotation of an adopted pipe records no rollout, so it would hide one that the controller began. */
function isAdoptable({ pipe, state }: Assessment): boolean {
  if (state === "rolling") return pipe.resizedAtMs === undefined && !isRollingOut(pipe);
  return state === "done" || state === "paused";
}

/** True if the annotation has the current size of the pipe, so that the size survives a deletion of the PipeScaling. */
function isRecorded({ pipe: { lastRollout, size }, serviceId }: Subject): boolean {
  const applied = appliedSize(lastRollout);
  return lastRollout?.serviceId === serviceId && isSize(applied) && sameSize(applied, size);
}

/** @param failed the size whose rollout failed */
function rollBack(subject: Subject, failed: Size, { reason, message }: Cause): readonly PipeAction[] {
  const { pipe, container, scaling } = subject;
  const { lastRollout } = pipe;
  const size = lastRollout?.lastGoodSize;
  // After a deletion of the PipeScaling, it is unknown whether the pipe was available before its owner changed it. The
  // deletion must not resize the pipe.
  if (lastRollout?.scalingUid !== scaling.metadata.uid && isChangedByOwner(pipe)) return [];
  if (!lastRollout || !size) return [];
  if (!mayReplacePods(subject) && !replacedPods(pipe, lastRollout)) return [];
  const isSame = sameSize(sizeOfAllotment(size), failed);
  const record = recordOf({ ...subject, desired: failed }, "roll-back");
  if (isSame || dueAtMs(record, pipe, subject) > subject.nowMs) return [];
  // While the service is suspended, only this shows later that the rollback goes on (decide/suspended.ts).
  const { scalingUid, scalingGeneration } = lastRollout;
  const rollout: LastRollout = {
    ...newRollout(subject, lastRollout.attempts),
    ...(scaling.spec.suspend ? { scalingUid, scalingGeneration } : {}),
    lastGoodSize: size,
    size: failed,
    isRollback: true,
    // The annotation has only the beginning; the status has the whole message.
    failure: { reason, message: clipped(message, MAX_ANNOTATED_MESSAGE) },
    inPlaceFailure: lastRollout.inPlaceFailure,
  };
  return [{ type: "roll-back", pipe, container, size, rollout, judged: visiblePods(subject) }];
}

/** True if the last rollout replaced pods. If the strategy became InPlace since then, the pipe may have no pod left. */
function replacedPods(pipe: PipeView, { replicas, inPlaceStartedAtMs }: LastRollout): boolean {
  return replicas > 0 && inPlaceStartedAtMs === undefined && !isChangedByOwner(pipe);
}

/** The last attempt at a rollback failed, and the next one follows soon. */
export function rollsBackSoon({ subject, pipe }: Assessment): boolean {
  const record = recordOf({ ...subject, desired: pipe.lastRollout?.size }, "roll-back");
  return isOfWrite(errorOf(record)?.reason ?? "");
}

/**
 * Writes only the annotation, unless the next attempt is not due yet. If the controller does not own the size yet, it
 * becomes an owner. Then the size stays in the template when another owner no longer applies it, and nothing restarts.
 */
export function adopt(subject: Subject, rollout: LastRollout | undefined): readonly PipeAction[] {
  const { pipe, nowMs } = subject;
  if (!rollout) return [];
  const record = recordOf(subject, "adopt", annotationSubject(rollout));
  const isDue = dueAtMs(record, subject.pipe, subject) <= nowMs;
  return isDue ? [{ type: "adopt", pipe, rollout, ...(pipe.ownsSize ? {} : { ownsSize: true }) }] : [];
}

/*
 * A StatefulSet waits for a pod that does not become ready before it replaces any pod, even that one. So a pod with a
 * size that failed would stay after the template has its old size again, until somebody deletes it (kubernetes#67250).
 * And a pod that fails with a size that worked before would keep the StatefulSet from every other size.
 */

interface Stuck extends Pick<DeletePodAction, "pod" | "isFailed"> {
  readonly record: WriteRecord | undefined;
  /** When it may be deleted, or deleted again, in milliseconds since 1970. */
  readonly dueAtMs: number;
}

/** For people: a sentence about a pod that could not be deleted. */
export function stuckRemark(subject: Subject): string | undefined {
  const { pod, isFailed, record } = stuckPod(subject) ?? {};
  const error = errorOf(record);
  if (!pod || !error || error.isConflict) return undefined;
  const { name } = pod.metadata;
  return isFailed
    ? `The pod ${name} still has the size that failed, because it could not be deleted: ${error.message}. Delete it, so that it gets its old size.`
    : `Kubernetes waits for the pod ${name}, which is not ready and could not be deleted: ${error.message}. Delete it, so that it gets its new size.`;
}

export function stuckPod(subject: Subject): Stuck | undefined {
  const { pipe, pods, active, writes, timeouts, nowMs } = subject;
  const { inTurn, lastRollout, rollout } = pipe;
  // Only a template that is seen shows which pods are old.
  if (!inTurn || !lastRollout || !rollout.isSeen) return undefined;
  // All pods end.
  if (pipe.replicas === 0) return undefined;
  // With the strategy InPlace, the controller cleans up only after a rollout that began before.
  if (!mayReplacePods(subject) && !replacedPods(pipe, lastRollout)) return undefined;
  if (pods.some(({ isTerminating }) => isTerminating)) return undefined;
  const [found] = active
    .filter(({ pod }) => !pod.isReady && !isHeld(pipe, pod))
    .map((each) => ({ each, atMs: Math.max(nowMs, stuckAtMs(each, lastRollout, subject)) }))
    .filter(({ atMs }) => Number.isFinite(atMs))
    .toSorted((a, b) => a.atMs - b.atMs);
  if (!found) return undefined;
  const { pod } = found.each;
  const record = writes.get(pod.metadata.uid, "delete-pod");
  const repeatableMs = Math.max(found.atMs, dueAtMs(record, pod, subject));
  // The watch soon shows that it ends.
  const isDone = record?.outcome.type === "done";
  const dueMs = isDone ? Math.max(repeatableMs, record.lastAtMs + timeouts.rescheduleMs) : repeatableMs;
  return { pod, isFailed: hasFailedSize(found.each, subject), record, dueAtMs: dueMs };
}

/**
 * When a pod that is not ready counts as stuck, in milliseconds since 1970; infinite if it is left to Kubernetes and the
 * owner.
 */
function stuckAtMs(each: ActivePod, lastRollout: LastRollout, subject: Subject): number {
  const { pipe } = subject;
  const { pod } = each;
  const isFailed = hasFailedSize(each, subject);
  if (isOfTemplate(pipe, pod)) {
    const isStuck = isFailed && isLeftOver(pod, lastRollout, pipe);
    return isStuck ? lastsAtMs(pod, subject) : Number.POSITIVE_INFINITY;
  }
  // A size that is being applied in place is not known to work yet, and its pod may only be unready for a moment.
  const isResizedSince = pod.resizedAtMs !== undefined && pod.resizedAtMs >= lastRollout.startedAtMs;
  // The controller cleans up only after its own writes.
  if (isFailed && !isResizedSince && lastRollout.generation > 0) return 0;
  const isAwaited = isForward(lastRollout, pipe) && awaitedOldPod(subject)?.pod === pod;
  return isAwaited || (isFailed && isResizedSince) ? lastsAtMs(pod, subject) : Number.POSITIVE_INFINITY;
}

/**
 * True if the pod was resized in place before the last rollout, whose template has the revision that the pod had
 * already. So Kubernetes does not replace the pod, although it has another size than its template.
 */
function isLeftOver({ resizedAtMs }: PodView, lastRollout: LastRollout, pipe: PipeView): boolean {
  if (lastRollout.generation === 0 || resizedAtMs === undefined) return false;
  return replacedPods(pipe, lastRollout) && resizedAtMs < lastRollout.startedAtMs;
}

/** True during a rollout of the controller, which replaces each pod of an earlier template, whatever its size is. */
function isForward(lastRollout: LastRollout, pipe: PipeView): boolean {
  return isRollingOut(pipe) && !lastRollout.isRollback && replacedPods(pipe, lastRollout);
}

/**
 * When a pod that is not ready counts as one that does not become ready by itself. One that has crashed only once may
 * start slowly, or become ready again. If another pod has just ended, Kubernetes creates that one first.
 */
function lastsAtMs({ readyChangedAtMs, unschedulable, containers }: PodView, subject: Subject): number {
  const { pipe, nowMs, endedPod, timeouts } = subject;
  const unreadyAtMs = Math.min(readyChangedAtMs, nowMs);
  const isCrashing = containers.some(
    ({ restartCount, isRunning, restartedAtMs }) =>
      restartCount > 1 && (!isRunning || restartedAtMs > unreadyAtMs),
  );
  const isBroken = isCrashing || unschedulable !== undefined;
  return Math.max(
    startedAtMs(pipe, nowMs) + timeouts.stuckPodMs,
    unreadyAtMs + (isBroken ? timeouts.stuckPodMs : timeoutMsOf(pipe, subject)),
    (endedPod?.atMs ?? 0) + timeouts.rescheduleMs,
  );
}

/**
 * True if the pod has a size that was rolled out and superseded, and is not known to work. The size may be older than
 * the last rollout, for example if the pod kept that from making progress. If a pod has a size that worked before, the
 * reason why it is not ready is another one, such as a change of the template by the owner.
 */
function hasFailedSize({ own }: ActivePod, { pipe: { lastRollout, size: present } }: Subject): boolean {
  const size = own && sizeOf(own);
  const applied = appliedSize(lastRollout);
  const good = [present, sizeOfAllotment(lastRollout?.lastGoodSize)];
  const proven = lastRollout?.cameUp && isSize(applied) ? [...good, applied] : good;
  return size !== undefined && !proven.some((each) => sameSize(size, each));
}
