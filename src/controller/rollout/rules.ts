import { formatSize, sameSize } from "../../domain/size.ts";
import type { Failure, PipeDecision, Subject } from "../assessment.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../names.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import {
  hasAppliedSize,
  isChangedByOwner,
  isCommitUnseen,
  isHeld,
  isRollingOut,
  type PipeView,
} from "../observe/pipe-view.ts";
import { isReplica } from "../observe/pod-view.ts";
import { hasResources } from "../observe/resources.ts";
import { isOpen } from "../observe/write-record.ts";
import { allPodsHaveSize, hasPodWriteInFlight, seesAllPods, seesPods, unseenPods } from "../pods.ts";
import {
  dueAtMs,
  FIELD_CONFLICT,
  failureOf,
  isRetryRequested,
  lastErrorOf,
  recordOf,
  retriedAt,
  retryAtMs,
} from "../retry.ts";
import { hasComeUp } from "./annotation.ts";
import { rolloutOutlook } from "./failure.ts";

/** A response or a read soon shows whether the template was changed. Until then, the write counts as a rollout. */
export function writeInFlight({ pipe, writes, desired }: Subject): PipeDecision | undefined {
  const { uid } = pipe.metadata;
  const size = formatSize(desired);
  const commit = writes.get(uid, "commit");
  const open = [
    writes.get(uid, "resize"),
    // A rollback from the desired size goes on with its failure.
    sameSize(pipe.size, desired) ? undefined : writes.get(uid, "roll-back"),
    commit?.subject === size ? undefined : commit,
  ].find(isOpen);
  if (!open) return undefined;
  const failure = open.subject === size ? failureOf(open) : undefined;
  return { state: failure ? "retrying" : "rolling", phase: "rolling-out", failure };
}

/** A rollout of the controller to the desired size has not completed yet. If it fails, the controller rolls it back. */
export function rolloutOfController(subject: Subject): PipeDecision | undefined {
  const { pipe, writes, nowMs } = subject;
  const { lastRollout, rollout, replicas, isPaused } = pipe;
  if (!lastRollout || lastRollout.generation === 0 || replicas === 0) return undefined;
  if (hasComeUp(pipe, writes) || rollout.isComplete) return undefined;
  // In the middle of a commit, its owner may begin to keep pods that have the size already.
  if (isPaused) return pipe.inTurn && allPodsHaveSize(subject) ? undefined : heldByOwner(subject);
  if (!isRollingOut(pipe) && !isChangedByOwner(pipe)) return undefined;
  const { cause, recheckAtMs, unschedulable: obstacle } = rolloutOutlook(subject);
  if (!cause) return { state: "rolling", recheckAtMs, obstacle };
  const attempts = Math.max(1, lastRollout.attempts);
  const failure = { reason: cause.reason, message: cause.message, attempts, atMs: nowMs };
  return { state: "failed", failure, ...failedRollback(subject, failure) };
}

/** A rollback that failed, too, is added to the message, and repeated later. */
function failedRollback(subject: Subject, failure: Failure): Partial<PipeDecision> {
  const record = recordOf(subject, "roll-back");
  const error = lastErrorOf(record);
  if (!record || !error) return {};
  const repeated = { ...failure, isRepeated: true };
  if (isOpen(record))
    return { failure: { ...repeated, message: `${failure.message}; ${ROLLBACK_FAILED}${error.message}` } };
  const recheckAtMs = dueAtMs(record, subject.pipe, subject);
  const next = isRolloutSuspended(subject.pipe, subject.scaling)
    ? ""
    : `, next at ${new Date(recheckAtMs).toISOString()}`;
  const message = `${failure.message}; ${ROLLBACK_FAILED}${error.message} (attempt ${record.attempts}${next})`;
  return { failure: { ...failure, message }, recheckAtMs };
}

/** A person who suspends a service decides about its rollouts. Those of a deleted PipeScaling began before that. */
export function isRolloutSuspended(
  { lastRollout }: PipeView,
  { spec, metadata }: Pick<PipeScalingView, "spec" | "metadata">,
): boolean {
  return spec.suspend === true && lastRollout?.scalingUid === metadata.uid;
}

export const ROLLBACK_FAILED = "the rollback failed: ";

export function annotationRemoved(subject: Subject): PipeDecision | undefined {
  const { pipe, writes } = subject;
  const last = writes.lastAnnotation(pipe.metadata.uid);
  if (!last?.isStripped) return undefined;
  const { attempts, lastAtMs: atMs } = last;
  const failure = { reason: FIELD_CONFLICT, message: STRIPPED, attempts, atMs } as const;
  // Only a write shows whether something still removes it, so it is made when people ask for it.
  if (!isRetryRequested(atMs, subject)) {
    const requestedMs = retryAtMs(atMs, Number.POSITIVE_INFINITY, subject);
    return { state: "failed", failure: retriedAt(requestedMs, failure) };
  }
  if (!pipe.lastRollout) return { state: "failed", failure };
  const adopt = { type: "adopt", pipe, rollout: pipe.lastRollout } as const;
  return { state: "failed", failure, next: { type: "continue", actions: [adopt] } };
}

const STRIPPED = `something, probably an admission webhook, removes the annotation ${LAST_ROLLOUT_ANNOTATION} from the workload: configure it to keep the annotation`;

/** The template and all pods have the size. Their health does not matter. */
export function hasSize(subject: Subject): PipeDecision | undefined {
  const { pipe, podsProblem, active } = subject;
  // A pod with another size counts even if other pods are not seen.
  const isOther = podsProblem === undefined && active.some(({ state }) => state !== "done");
  if (pipe.replicas === 0)
    return isOther ? { state: "rolling", activity: "its pods have not ended yet" } : { state: "done" };
  if (isNew(subject)) return undefined;
  // If the template lacks the label, pods of an earlier template may have it, and show another size.
  if (!seesPods(subject)) return showsSize(pipe) && !isOther ? { state: "done" } : undefined;
  const seenUntilMs = podsSeenUntilMs(subject);
  if (isOther || missesOldPods(subject) || seenUntilMs <= subject.nowMs) return undefined;
  if (hasPodWriteInFlight(subject))
    return { state: "rolling", phase: "resizing", activity: "a write to a pod has not ended" };
  if (isCommitUnseen(pipe)) return { state: "resized", activity: "its template follows its pods" };
  return { state: "done", recheckAtMs: seenUntilMs };
}

/**
 * The time until which all pods count as seen, in milliseconds since 1970. The status of the workload may still count
 * one pod that has ended with the size. 0 if any other pod is not seen; infinite if all are.
 */
function podsSeenUntilMs(subject: Subject): number {
  if (seesAllPods(subject)) return Number.POSITIVE_INFINITY;
  const { pipe, pods, endedPod, container, target, timeouts } = subject;
  const isOne = pods.filter(isReplica).length + 1 === pipe.rollout.replicas;
  const own = endedPod?.containers.find(({ name }) => name === container);
  return endedPod && isOne && hasResources(own?.resources, target) ? endedPod.atMs + timeouts.podEndMs : 0;
}

/** A pod below the partition of the owner is created again with the earlier template, which may have another size. */
function missesOldPods({ pipe, active }: Subject): boolean {
  const { inTurn, rollout } = pipe;
  if (!inTurn?.hold || inTurn.hold.isOnDelete || (rollout.isSeen && inTurn.isOfOneRevision)) return false;
  return active.filter(({ pod }) => isHeld(pipe, pod)).length < inTurn.hold.pods;
}

/** While the owner rolls something out, only the end of that rollout shows which size the pods run. */
function showsSize(pipe: Subject["pipe"]): boolean {
  const { isComplete, isUpdated } = pipe.rollout;
  // The rollout that completed before may have replaced only a part of the pods.
  if (pipe.inTurn) return isUpdated;
  return isComplete || (hasComeUp(pipe) && (isUpdated || !isChangedByOwner(pipe)));
}

/**
 * True if the pipe never ran the size: it was created, scaled up from nothing, or its owner replaces all of its pods at
 * once. False if the controller gave it the size, or adopted it when it ran. For any other pipe, either of two signs
 * counts: none of its pods has run, or its first rollout has not completed.
 */
function isNew(subject: Subject): boolean {
  const { pipe } = subject;
  const { rollout, inTurn } = pipe;
  if (hasRun(pipe)) return false;
  // The pods that are available may be those of the earlier template.
  if (seesPods(subject) && !rollout.isComplete && !hasPodRun(subject)) return true;
  if (rollout.isAvailable) return false;
  if (rollout.isComplete) return seesPods(subject) ? !hasPodRun(subject) : !rollout.isAnyAvailable;
  // A pod that has the template may not have run, and only its pods would show that.
  if (inTurn) return inTurn.isFirst || !(seesPods(subject) || rollout.isAnyAvailable);
  return pipe.revision <= 1 && rollout.progressing?.reason !== "NewReplicaSetAvailable";
}

/**
 * True if the controller gave the pipe this size, or adopted it when it ran; a new image does not change that. Another
 * size is a change of the owner. The revision may not show that: neither while the old pods of a Recreate Deployment
 * end, nor for a StatefulSet, whose templates are compared without the size.
 */
function hasRun(pipe: PipeView): boolean {
  const { lastRollout, rollout } = pipe;
  if (!lastRollout || !hasAppliedSize(pipe)) return false;
  if (lastRollout.generation > 0) return true;
  // If the pipe was adopted without a revision, Kubernetes had not seen it, so a later revision shows no change.
  const isAfterFirst = rollout.isComplete || (lastRollout.revision > 0 && isChangedByOwner(pipe));
  return isAfterFirst && lastRollout.cameUp && lastRollout.replicas > 0;
}

/** True if any pod that has the size has run. One that is being deleted counts, because it may have been evicted. */
function hasPodRun({ pods, container, target }: Subject): boolean {
  return pods.some(({ containers }) =>
    containers.some(
      ({ name, isRunning, restartCount, resources }) =>
        name === container && (isRunning || restartCount > 0) && hasResources(resources, target),
    ),
  );
}

export function rolloutOfOwner(subject: Subject): PipeDecision {
  if (seesPods(subject) && !seesAllPods(subject)) return { state: "rolling", activity: unseenPods(subject) };
  return heldByOwner(subject) ?? { state: "rolling" };
}

const PAUSED = "its owner paused the Deployment: resume it";

/** Why a change of the template replaces no pod, or not all, for people: the end of a sentence. */
export function heldBy({ inTurn }: Pick<PipeView, "inTurn">): string {
  return inTurn?.hold?.message ?? PAUSED;
}

/** The owner keeps the pods from rollouts. For a StatefulSet, that is a lasting choice, so it causes no alarm. */
export function heldByOwner({ pipe }: Pick<Subject, "pipe">): PipeDecision | undefined {
  const { isPaused, rollout, inTurn } = pipe;
  if (!isPaused && !(inTurn?.hold && rollout.isComplete)) return undefined;
  return { state: "paused", activity: heldBy(pipe), ...(inTurn ? { waitsForOwner: true } : {}) };
}

/** With OnDelete, a changed template would replace a pod whenever one ends, and nothing would prove the size. */
export function leftToOwner({ pipe }: Pick<Subject, "pipe">): PipeDecision | undefined {
  const { inTurn } = pipe;
  if (!inTurn?.hold?.isOnDelete) return undefined;
  return { state: "paused", activity: heldBy(pipe), waitsForOwner: true };
}
