import { type Size, sameSize } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import type { Subject } from "../assessment.ts";
import { MAX_ANNOTATED_MESSAGE } from "../names.ts";
import {
  annotationSubject,
  type Fallback,
  type InPlaceFailure,
  type LastRollout,
} from "../observe/last-rollout.ts";
import {
  hasAppliedSize,
  type PipeView,
  presentAllotment,
  presentForm,
  replaceablePods,
} from "../observe/pipe-view.ts";
import { type Allotment, hasResources, isSize, resourcesFor } from "../observe/resources.ts";
import { NO_WRITES } from "../observe/write-record.ts";
import { recordOf } from "../retry.ts";

/** The annotation of a rollout to the desired size. */
export function newRollout(subject: Subject, attempts: number, fallback?: Fallback): LastRollout {
  const { pipe, scaling, desired, serviceId, requestId, nowMs } = subject;
  const { uid, generation } = scaling.metadata;
  return {
    size: desired,
    isRollback: false,
    lastGoodSize: lastGoodSize(subject),
    startedAtMs: nowMs,
    cameUp: false,
    attempts,
    serviceId,
    scalingUid: uid,
    scalingGeneration: generation,
    requestId,
    generation: pipe.metadata.generation + 1,
    revision: pipe.revision + 1,
    ...(pipe.inTurn ? { template: pipe.inTurn.template } : {}),
    progressedAtS: pipe.rollout.progressedAtS,
    replicas: replaceablePods(pipe),
    ...(subject.keptOutOfMemory ? { outOfMemory: subject.keptOutOfMemory } : {}),
    ...(fallback ? { inPlaceFailure: inPlaceFailureTo(desired, fallback, nowMs) } : {}),
  };
}

/** The annotation of a template that follows its pods. It starts no rollout, so there is no new revision. */
export function committedRollout(subject: Subject): LastRollout {
  const { pipe, nowMs } = subject;
  const begun = subject.active.flatMap(({ pod }) => pod.resizedAtMs ?? []);
  return {
    ...newRollout(subject, nextAttempt(subject)),
    // The present resources of the template, which it gets again if the commit is undone.
    lastGoodSize: presentForm(pipe),
    revision: pipe.revision,
    // All pods were resized, also those that the owner keeps from rollouts.
    replicas: pipe.replicas,
    inPlaceStartedAtMs: Math.min(nowMs, ...begun),
    restarts: subject.active.reduce((sum, { own }) => sum + (own?.restartCount ?? 0), 0),
    isCommitting: true,
    ...(pipe.inTurn ? { committedRevision: pipe.inTurn.templateHash } : {}),
    ...(pipe.inTurn?.needsHold === false ? { isUnheld: true } : {}),
  };
}

/** If the controller applied the size before, another writer has changed it since then, so this is another attempt. */
function nextAttempt({ pipe, desired }: Subject): number {
  const { lastRollout } = pipe;
  const isRepeated = lastRollout && !lastRollout.isRollback && sameSize(lastRollout.size, desired);
  return isRepeated ? lastRollout.attempts + 1 : 1;
}

/** The annotation that records the present resources of a pipe, and no rollout. */
export function adoption(subject: Subject): LastRollout | undefined {
  const { pipe } = subject;
  const present = presentAllotment(pipe);
  if (!present) return undefined;
  return {
    ...newRollout(subject, 0),
    ...applied(present, subject.desired),
    generation: 0,
    revision: pipe.revision,
    progressedAtS: 0,
    // While the owner rolls this size out, old pods have another one.
    cameUp: pipe.rollout.isComplete || isFirstRollout(pipe),
  };
}

/**
 * True if there are no pods of an earlier template. The revision alone does not show this: a writer that replaces the
 * object may remove it, and a Recreate Deployment gets a new one only when its old pods have ended. Until then, it has
 * the condition Progressing of the previous rollout.
 */
function isFirstRollout({ inTurn, revision, rollout }: PipeView): boolean {
  const isLater = rollout.progressing?.reason === "NewReplicaSetAvailable" && !rollout.isUpdated;
  const isFirst = inTurn ? inTurn.isFirst : revision <= 1 && !isLater;
  return isFirst && (rollout.isSeen || rollout.replicas === 0);
}

/**
 * The fields that record the resources of the template (appliedSize). Resources other than the requested size are
 * recorded like a rollback.
 */
export function applied(
  present: Allotment,
  requested: Size,
): Pick<LastRollout, "size" | "isRollback"> & Partial<Pick<LastRollout, "lastGoodSize">> {
  if (isSize(present) && sameSize(present, requested)) return { size: present, isRollback: false };
  return { size: requested, isRollback: true, lastGoodSize: present };
}

/**
 * The size to which a failed rollout returns; `undefined` if none is known. The size in the template is proven by a
 * rollout that completed, or by a pod that runs with it. Time proves nothing, because the controller may have been
 * away.
 */
export function lastGoodSize(subject: Subject): Allotment | undefined {
  const { pipe } = subject;
  const { rollout, lastRollout } = pipe;
  const present = presentForm(pipe);
  if (hasComeUp(pipe, subject.writes) || runsOnePod(subject)) return present;
  // A rollout without pods proves nothing.
  const isUnproven = pipe.replicas === 0 && lastRollout !== undefined && lastRollout.generation > 0;
  if (rollout.isComplete && !isUnproven) return present;
  // Without a last rollout, the size is that of the owner. It may not be proven, but there is no other to return to.
  return lastRollout ? lastRollout.lastGoodSize : present;
}

/**
 * True if the template has the size that the controller applied, and its rollout completed once. Later failures do not
 * change this.
 *
 * @param writes show it, too, while the annotation cannot be written
 */
export function hasComeUp(pipe: PipeView, writes = NO_WRITES): boolean {
  const { lastRollout } = pipe;
  if (!lastRollout) return false;
  const cameUp = annotationSubject({ ...lastRollout, cameUp: true });
  if (!lastRollout.cameUp && !recordOf({ pipe, writes }, "adopt", cameUp)) return false;
  return hasAppliedSize(pipe);
}

/** True if a pod is ready with the size of the template and never restarted. Its rollout may be superseded later. */
function runsOnePod({ pipe: { size, cpuLimitFollows }, active }: Subject): boolean {
  if (!size) return false;
  const resources = resourcesFor(size, cpuLimitFollows);
  return active.some(
    ({ pod, own }) =>
      own?.isRunning &&
      own.restartCount === 0 &&
      pod.isReady &&
      hasResources(own.actual ?? own.resources, resources),
  );
}

/** The record of why a size is not tried in place again, with only the beginning of the message. */
export function inPlaceFailureTo(
  size: Size,
  fallback: Fallback | InPlaceFailure,
  nowMs: number,
): InPlaceFailure {
  const { reason, message } = fallback;
  const known = "atMs" in fallback ? { atMs: fallback.atMs, revision: fallback.revision } : { atMs: nowMs };
  return { size, reason, message: clipped(message, MAX_ANNOTATED_MESSAGE), ...known };
}
