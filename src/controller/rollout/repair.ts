import { type Size, sameSize } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import type { DeletePodAction, PipeAction } from "../actions.ts";
import type { Assessment, Cause, Subject } from "../assessment.ts";
import { MAX_ANNOTATED_MESSAGE } from "../names.ts";
import { annotationSubject, appliedSize, type LastRollout } from "../observe/last-rollout.ts";
import { requestedSize } from "../observe/pipe-scaling-view.ts";
import { isChangedByOwner, isRollingOut, type PipeView } from "../observe/pipe-view.ts";
import { isSize } from "../observe/resources.ts";
import { isOpen, READ_LATER, type WritePurpose } from "../observe/write-record.ts";
import { mayReplacePods } from "../pods.ts";
import { dueAtMs, FIELD_CONFLICT, recordOf } from "../retry.ts";
import { adoption, hasComeUp, newRollout } from "./annotation.ts";
import { deleteStuckPod } from "./stuck-pod.ts";

/** Returns the writes for a pipe that is not resized now. Nothing follows from a write whose outcome is unknown. */
export function repair(assessment: Assessment): readonly (PipeAction | DeletePodAction)[] {
  const { subject, pipe, abandoned } = assessment;
  const isOpenFor = (purpose: WritePurpose) => isOpen(subject.writes.get(pipe.metadata.uid, purpose));
  if (READ_LATER.some(isOpenFor)) return [];
  const deletions = deleteStuckPod(subject);
  if (deletions.length > 0) return deletions;
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
    // The tier determines its default again, so that size need not be recorded.
    const isNeeded = requestedSize(subject.scaling) !== undefined || !pipe.ownsSize;
    return isNeeded && isAdoptable(assessment) ? adopt(subject, adoption(subject)) : [];
  }
  // Another size, or a retry, was requested since then.
  if (state === "done" && lastRollout?.outOfMemory && !subject.outOfMemory)
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
  const isSame = isSize(size) && sameSize(size, failed);
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

/** A rollout that began before the strategy became InPlace may have left the pipe without a pod. */
function replacedPods(pipe: PipeView, { replicas, inPlaceStartedAtMs }: LastRollout): boolean {
  return replicas > 0 && inPlaceStartedAtMs === undefined && !isChangedByOwner(pipe);
}

/**
 * Writes only the annotation, unless it was written in vain before. If the controller does not own the size yet, it becomes
 * an owner. Then an owner that no longer applies the size leaves it in the template, and nothing restarts.
 */
export function adopt(subject: Subject, rollout: LastRollout | undefined): readonly PipeAction[] {
  const { pipe, nowMs } = subject;
  if (!rollout) return [];
  const record = recordOf(subject, "adopt", annotationSubject(rollout));
  const isDue = dueAtMs(record, subject) <= nowMs;
  return isDue ? [{ type: "adopt", pipe, rollout, ...(pipe.ownsSize ? {} : { ownsSize: true }) }] : [];
}
