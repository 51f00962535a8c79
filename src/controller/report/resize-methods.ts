import { MAX_MESSAGE_LENGTH } from "../../crd/fields.ts";
import {
  MAX_FALLBACKS,
  MAX_METHODS,
  type PipeFallback,
  type PipeScalingStatus,
  type ResizeMethod,
} from "../../crd/pipe-scaling.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import type { Assessment } from "../assessment.ts";
import { leadsToRollout } from "../in-place/fall-back.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";

/** Returns how each pipe got the desired size, and why pipes get it by a rollout although in place was wanted. */
export function resizeMethods(assessments: readonly Assessment[], desired: Size) {
  const methods = assessments.flatMap((each) => {
    const method = methodOf(each, desired);
    return method ? [[nameOf(each.pipe), method] as const] : [];
  });
  const fallbacks = assessments.flatMap((each) => fallbackOf(each, desired) ?? []);
  // Callers need not wait for the templates, so a pipe whose template still follows counts already.
  const following = assessments.filter(({ state }) => state === "resized").length;
  return {
    inPlace: methods.filter(([, method]) => method === "InPlace").length + following || undefined,
    resizedBy: methods.length === 0 ? undefined : Object.fromEntries(methods.slice(0, MAX_METHODS)),
    fallbacks: fallbacks.length === 0 ? undefined : fallbacks.slice(0, MAX_FALLBACKS),
  };
}

/**
 * Returns `undefined` until the pods and the template have the size, because the last rollout may be to another size
 * before that. Also returns it for a pipe without replicas, because no pod was resized or replaced.
 */
function methodOf(assessment: Assessment, desired: Size): ResizeMethod | undefined {
  const { pipe, state } = assessment;
  const { lastRollout } = pipe;
  if (state !== "done" || !lastRollout || lastRollout.isRollback) return undefined;
  const { size, attempts, replicas, inPlaceStartedAtMs, isCommitting = false, revision } = lastRollout;
  if (!sameSize(size, desired) || attempts === 0 || replicas === 0) return undefined;
  // If the owner resumed the Deployment before its template had followed, Kubernetes replaced the pods.
  const isCutShort = isCommitting && !pipe.isPausedForCommit && pipe.revision > revision;
  const isInPlace = inPlaceStartedAtMs !== undefined && !isCutShort && !fallbackOf(assessment, desired);
  return isInPlace ? "InPlace" : "Rollout";
}

function fallbackOf({ pipe, subject }: Assessment, desired: Size): PipeFallback | undefined {
  const failure = pipe.lastRollout?.inPlaceFailure;
  if (!failure || !sameSize(failure.size, desired) || !leadsToRollout(failure, subject)) return undefined;
  // An owner who resets managedFields can write an annotation with a longer message.
  const message = clipped(failure.message, MAX_MESSAGE_LENGTH);
  return { pipe: nameOf(pipe), reason: failure.reason, message };
}

/** A change of the status of a PipeScaling. */
export interface StatusChange {
  /** With its previous status. */
  readonly scaling: PipeScalingView;
  readonly after: PipeScalingStatus;
  readonly pipes: readonly PipeView[];
  /** UIDs of the workloads whose last rollout this process has reported before. */
  readonly reported: ReadonlySet<string>;
}

/** A commit has ended, or was undone, after this time. */
const COMMITTED_MS = 60_000;

/**
 * Returns the pipes that have got their size since the previous status, with what was done. A pipe that another writer
 * resized, and that has its size again, got it by a rollout that was reported before.
 */
export function newlyResized({ scaling, after, pipes, reported }: StatusChange) {
  const { metadata, status: before } = scaling;
  const isSame = isSameDesired(before, after);
  const sinceMs = isSame ? Number.NaN : Date.parse(before.propagation?.startedAt ?? "");
  // When the rescale completed, every pipe ran its size. After a restart, only this shows which rollouts were reported.
  const completedMs = Date.parse(before.propagation?.completedAt ?? "");
  return pipes.flatMap((pipe) => {
    const name = nameOf(pipe);
    const { lastRollout: rollout } = pipe;
    const method = after.pipes?.resizedBy?.[name];
    if (!method || (isSame && before.pipes?.resizedBy?.[name])) return [];
    // The resize was for a deleted PipeScaling of this name, or before another size was wanted for a moment.
    if (rollout?.scalingUid !== metadata.uid || rollout.startedAtMs < sinceMs) return [];
    if (reported.has(pipe.metadata.uid) || rollout.startedAtMs + COMMITTED_MS < completedMs) return [];
    return [{ pipe, rollout, method }];
  });
}

/** Returns the fallbacks that a status has and the previous status did not have. */
export function newFallbacks(before: PipeScalingStatus, after: PipeScalingStatus): readonly PipeFallback[] {
  const known = isSameDesired(before, after) ? (before.pipes?.fallbacks ?? []) : [];
  return (after.pipes?.fallbacks ?? []).filter(
    ({ pipe, reason }) => !known.some((each) => each.pipe === pipe && each.reason === reason),
  );
}

function isSameDesired(before: PipeScalingStatus, { desired }: PipeScalingStatus): boolean {
  return before.desired?.summary === desired?.summary;
}
