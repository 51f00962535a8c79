import { type Size, sameSize } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import type { DeletePodAction, PipeAction } from "../actions.ts";
import type { ActivePod, Assessment, Cause, Subject } from "../assessment.ts";
import { MAX_ANNOTATED_MESSAGE } from "../names.ts";
import { annotationSubject, appliedSize, type LastRollout } from "../observe/last-rollout.ts";
import { requestedSize } from "../observe/pipe-scaling-view.ts";
import { isChangedByOwner, isHeld, isRollingOut, type PipeView } from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { isSize, sizeOf, sizeOfAllotment } from "../observe/resources.ts";
import { isOpen, READ_LATER, type WritePurpose, type WriteRecord } from "../observe/write-record.ts";
import { mayReplacePods } from "../pods.ts";
import { dueAtMs, errorOf, FIELD_CONFLICT, isOfWrite, podDueAtMs, recordOf } from "../retry.ts";
import { adoption, hasComeUp, newRollout } from "./annotation.ts";

/** Returns the writes for a pipe that is not resized now; none while the outcome of a write is unknown. */
export function repair(assessment: Assessment): readonly (PipeAction | DeletePodAction)[] {
  const { subject, pipe, abandoned } = assessment;
  const isOpenFor = (purpose: WritePurpose) => isOpen(subject.writes.get(pipe.metadata.uid, purpose));
  if (READ_LATER.some(isOpenFor)) return [];
  const stuck = stuckPod(subject);
  if (stuck && stuck.dueAtMs <= subject.nowMs) return [{ type: "delete-pod", pipe, pod: stuck.pod }];
  if (abandoned && pipe.lastRollout) return rollBack(subject, pipe.lastRollout.size, abandoned);
  if (!sameSize(pipe.size, subject.desired)) return [];
  return [...record(assessment), ...rollBackFailed(assessment)];
}

/**
 * Records facts that nothing else would show later: the rollout completed, the pipe had the size before, or the
 * controller manages its size.
 */
function record(assessment: Assessment): readonly PipeAction[] {
  const { subject, pipe, state } = assessment;
  const { rollout, replicas, lastRollout } = pipe;
  if (!isRecorded(subject)) {
    // A default size need not be recorded, because the tier determines it again.
    const isNeeded = requestedSize(subject.scaling) !== undefined || !pipe.ownsSize;
    return isNeeded && isAdoptable(assessment) ? adopt(subject, adoption(subject)) : [];
  }
  // Another size, or a retry, was requested since then.
  if (state === "done" && lastRollout?.outOfMemory && !subject.keptOutOfMemory)
    return adopt(subject, { ...lastRollout, outOfMemory: undefined });
  // The rollout has completed as far as the owner allows.
  const isHeldBack = pipe.inTurn?.hold !== undefined && state === "paused";
  const isUp = (state === "done" || isHeldBack) && rollout.isComplete && replicas > 0;
  if (isUp && lastRollout && !hasComeUp(pipe)) return adopt(subject, { ...lastRollout, cameUp: true });
  const isSettled = state === "done" || state === "paused";
  return isSettled && !pipe.ownsSize && !pipe.isPausedForCommit ? adopt(subject, lastRollout) : [];
}

function rollBackFailed({ subject, state, failure, recheckAtMs = 0 }: Assessment): readonly PipeAction[] {
  if (state !== "failed" || !failure || failure.reason === FIELD_CONFLICT) return [];
  return recheckAtMs > subject.nowMs ? [] : rollBack(subject, subject.desired, failure);
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
  const { pipe, scaling } = subject;
  const { lastRollout, container } = pipe;
  const size = lastRollout?.lastGoodSize;
  // After a deletion of the PipeScaling, it is unknown whether the pipe was available before its owner changed it. The
  // deletion must not resize the pipe.
  if (lastRollout?.scalingUid !== scaling.metadata.uid && isChangedByOwner(pipe)) return [];
  if ("problem" in container || !lastRollout || !size) return [];
  if (!mayReplacePods(subject) && !replacedPods(pipe, lastRollout)) return [];
  const isSame = sameSize(sizeOfAllotment(size), failed);
  const record = recordOf({ ...subject, desired: failed }, "roll-back");
  if (isSame || dueAtMs(record, subject) > subject.nowMs) return [];
  const rollout: LastRollout = {
    ...newRollout(subject, lastRollout.attempts),
    lastGoodSize: size,
    size: failed,
    isRollback: true,
    // The annotation has only the beginning; the status has the whole message.
    failure: { reason, message: clipped(message, MAX_ANNOTATED_MESSAGE) },
    inPlaceFailure: lastRollout.inPlaceFailure,
  };
  return [{ type: "roll-back", pipe, container: container.name, size, rollout }];
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
  const isDue = dueAtMs(record, subject) <= nowMs;
  return isDue ? [{ type: "adopt", pipe, rollout, ...(pipe.ownsSize ? {} : { ownsSize: true }) }] : [];
}

/*
 * A StatefulSet waits for a pod that does not become ready before it replaces any pod, even that one. So a pod with a
 * size that failed would stay after the template has its old size again, until somebody deletes it (kubernetes#67250).
 */

interface Stuck {
  readonly pod: PodView;
  readonly record: WriteRecord | undefined;
  /** When it may be deleted, or deleted again, in milliseconds since 1970. */
  readonly dueAtMs: number;
}

/** For people: a sentence about a pod that could not be deleted. */
export function stuckRemark(subject: Subject): string | undefined {
  const { pod, record } = stuckPod(subject) ?? {};
  const error = errorOf(record);
  if (!pod || !error || error.isConflict) return undefined;
  const { name } = pod.metadata;
  return `The pod ${name} still has the size that failed, because it could not be deleted: ${error.message}. Delete it, so that it gets its old size.`;
}

export function stuckPod(subject: Subject): Stuck | undefined {
  const { pipe, pods, active, writes, timeouts } = subject;
  const { inTurn, lastRollout, rollout } = pipe;
  // The controller cleans up only after its own writes, and only a template that is seen shows which pods are old.
  if (!inTurn || !lastRollout || lastRollout.generation === 0 || !rollout.isSeen) return undefined;
  // All pods end.
  if (pipe.replicas === 0) return undefined;
  // With the strategy InPlace, the controller cleans up only after a rollout that began before.
  if (!mayReplacePods(subject) && !replacedPods(pipe, lastRollout)) return undefined;
  if (pods.some(({ isTerminating }) => isTerminating)) return undefined;
  const found = active.find(
    (each) =>
      !each.pod.isReady &&
      each.pod.templateHash !== inTurn.templateHash &&
      !isHeld(pipe, each.pod) &&
      hasFailedSize(each, subject),
  );
  if (!found) return undefined;
  const { pod } = found;
  const record = writes.get(pod.metadata.uid, "delete-pod");
  const repeatableMs = podDueAtMs({ pod, record }, subject);
  // The watch soon shows that it ends.
  const isDone = record?.outcome.type === "done";
  const dueAtMs = isDone ? Math.max(repeatableMs, record.lastAtMs + timeouts.rescheduleMs) : repeatableMs;
  return { pod, record, dueAtMs };
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
