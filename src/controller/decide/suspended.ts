import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Assessment, Failure, Subject } from "../assessment.ts";
import type { Snapshot } from "../observe/observe.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { isFromLaterGeneration, isInCommit, isRollingOut, type PipeView } from "../observe/pipe-view.ts";
import { isOpen } from "../observe/write-record.ts";
import { hasPodWriteInFlight } from "../pods.ts";
import { recordOf } from "../retry.ts";
import { isRolloutSuspended } from "../rollout/rules.ts";
import { assess } from "./assess.ts";
import type { Sizing } from "./decision.ts";

/**
 * While a service is suspended, only a commit goes on, and what Kubernetes does by itself. Rules do not depend on that,
 * so that a pipe goes on where it was. The status must not announce a write that is not made.
 */
export function reportSuspension(sizing: Sizing): Sizing {
  if (sizing.waitReason !== "suspended") return sizing;
  return { ...sizing, assessments: sizing.assessments.map(withoutNextStep) };
}

function withoutNextStep(assessment: Assessment): Assessment {
  const { pipe, failure } = assessment;
  if (pipe.isPausedForCommit) return assessment;
  const reported = failure ? { ...assessment, failure: withoutRetry(failure) } : assessment;
  return isHeldBack(assessment)
    ? { ...reported, activity: "its next step waits while the service is suspended" }
    : reported;
}

/** The earlier report of a repeated write says when it is retried, so it is reported anew. */
function withoutRetry({ retryAtMs: _, isRepeated: __, ...failure }: Failure): Failure {
  return failure;
}

/** True if nothing happens to a pipe in the middle of a resize in place. */
function isHeldBack({
  subject,
  state,
  phase,
  isReturned = false,
  hindrance,
  waitsForOwner,
}: Assessment): boolean {
  // A pipe that has its previous size again, and so has its template, gets nothing until another size is requested.
  const isBegun = phase === "resizing" || state === "resized" || (state === "rolling" && isReturned);
  return isBegun && !hindrance && !waitsForOwner && !goesOn(subject);
}

function goesOn(subject: Subject): boolean {
  const isCommitWritten = (["commit", "resume"] as const).some((purpose) =>
    isOpen(recordOf(subject, purpose)),
  );
  if (isInCommit(subject.pipe) || isCommitWritten || hasPodWriteInFlight(subject)) return true;
  // The kubelet has not finished.
  return subject.active.some(
    ({ state }) => state === "resizing" || state === "deferred" || state === "error",
  );
}

/**
 * Assesses the pipes of a service that must not be resized now, if a rollout may have left them without a pod. Their
 * annotations have all that a rollback needs, so a pipe also comes back while the tier is unknown, for example.
 */
export function strandedPipes(
  snapshot: Snapshot,
  scaling: PipeScalingView | undefined,
  policy: RolloutPolicy,
): readonly Assessment[] {
  if (!scaling) return [];
  return snapshot.pipes.flatMap((pipe) => {
    const { lastRollout } = pipe;
    if (!lastRollout || !mayBeStranded(pipe, scaling)) return [];
    const { size: desired, requestId, outOfMemory: keptOutOfMemory } = lastRollout;
    const context = { ...snapshot, scaling, policy, desired, requestId, keptOutOfMemory };
    return [assess(pipe, snapshot, { ...context, outOfMemory: undefined })];
  });
}

function mayBeStranded(pipe: PipeView, scaling: PipeScalingView): boolean {
  if (!pipe.stopsOldPodsFirst || !isRollingOut(pipe) || isFromLaterGeneration(pipe, scaling)) return false;
  // The end of a commit comes first.
  if (pipe.isPausedForCommit || pipe.inTurn?.ownsPartition) return false;
  return !isRolloutSuspended(pipe, scaling);
}
