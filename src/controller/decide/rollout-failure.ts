import { sameSize } from "../../domain/size.ts";
import type { DeploymentCondition } from "../../kube/objects.ts";
import { type DeploymentView, isChangedSince } from "../observe/deployment-view.ts";
import { isSize } from "../observe/resources.ts";
import type { AssessContext } from "./assessment.ts";
import type { Reason } from "./failure.ts";

/** ReplicaFailure comes and goes in healthy rollouts; one that lasts is real (kubernetes-facts.md). */
const REPLICA_FAILURE_GRACE_MS = 30_000;

const UNSCHEDULABLE = "Unschedulable";

/** When a rollout to the desired size began that is ours to judge; `undefined` if there is none. */
export function begunAt(
  pipe: DeploymentView,
  { desired, nowMs, rolloutTimeoutMs }: AssessContext,
): number | undefined {
  const { attempt, given, rollout } = pipe;
  if (!attempt) return undefined;
  if (!sameSize(attempt.size, desired)) {
    const isPutBack = isSize(given) && sameSize(given, desired);
    // Put back to the size that is asked for by now: the patch that did it has left no time.
    return isPutBack ? progressedAt(rollout, nowMs) || undefined : undefined;
  }
  // Stamped by a clock that was wrong: to wait for that time could take years.
  if (attempt.startedAtMs > nowMs + rolloutTimeoutMs)
    return progressedAt(rollout, nowMs) || attempt.startedAtMs;
  return attempt.startedAtMs;
}

export function rolloutFailure(
  pipe: DeploymentView,
  begunAtMs: number,
  context: AssessContext,
): Reason | undefined {
  const { progressing, replicaFailure } = pipe.rollout;
  const unschedulable = context.unschedulable.get(pipe.metadata.name);
  // It has stopped its old pods already; the others keep theirs, and a node may yet come.
  if (pipe.isRecreated && unschedulable !== undefined) {
    return { reason: UNSCHEDULABLE, message: unschedulable };
  }
  const because = unschedulable === undefined ? "" : `: ${unschedulable}`;
  // An older deadline's condition survives in a Recreate Deployment (kubernetes-facts.md).
  if (progressing?.reason === "ProgressDeadlineExceeded" && timeOf(progressing.lastUpdateTime) > begunAtMs) {
    return { reason: "ProgressDeadlineExceeded", message: `${progressing.message ?? ""}${because}` };
  }
  if (replicaFailure?.status === "True" && graceEndsAt(pipe, begunAtMs) <= context.nowMs) {
    return { reason: replicaFailure.reason ?? "ReplicaFailure", message: replicaFailure.message ?? "" };
  }
  if (timeoutAt(pipe, begunAtMs, context) <= context.nowMs) {
    const time = describeDuration(context.rolloutTimeoutMs);
    return { reason: "RolloutTimeout", message: `the rollout has not completed in ${time}${because}` };
  }
  return undefined;
}

/** When time alone may make it fail. */
export function rolloutRecheckAt(pipe: DeploymentView, begunAtMs: number, context: AssessContext): number {
  const latest = timeoutAt(pipe, begunAtMs, context);
  return pipe.rollout.replicaFailure?.status === "True"
    ? Math.min(latest, graceEndsAt(pipe, begunAtMs))
    : latest;
}

/** When a ReplicaFailure that holds has held long enough: at once where no pod is left to wait with. */
function graceEndsAt({ rollout }: DeploymentView, begunAtMs: number): number {
  const since = timeOf(rollout.replicaFailure?.lastTransitionTime);
  // It may be left from the size before; times of conditions are whole seconds.
  const isOfAttempt = since > begunAtMs - 1000;
  if (rollout.isWithoutPods && isOfAttempt) return since;
  return Math.max(since, begunAtMs) + REPLICA_FAILURE_GRACE_MS;
}

/**
 * A rollout that its owner paused has its whole time once it goes on, and one that its owner began since, for
 * another image, from its last progress.
 */
function timeoutAt(
  pipe: DeploymentView,
  begunAtMs: number,
  { nowMs, rolloutTimeoutMs }: AssessContext,
): number {
  const { attempt, rollout } = pipe;
  const isOwners = attempt !== undefined && isChangedSince(pipe, attempt);
  const progressedAtMs = isOwners ? progressedAt(rollout, nowMs) : 0;
  return Math.max(resumedAt(rollout.progressing, nowMs), progressedAtMs, begunAtMs) + rolloutTimeoutMs;
}

/** By the clock of who rolls it; 0 where that has no deadline, and so tells nothing. */
function progressedAt({ isSeen, progressing }: DeploymentView["rollout"], nowMs: number): number {
  return isSeen ? timeOf(progressing?.lastUpdateTime) : nowMs;
}

/** To pause and to resume leaves the condition's status as it is, so that its transition tells of neither. */
function resumedAt(progressing: DeploymentCondition | undefined, nowMs: number): number {
  // That it is to go on has not been seen yet by who rolls it.
  if (progressing?.reason === "DeploymentPaused") return nowMs;
  const { lastTransitionTime, lastUpdateTime } = progressing ?? {};
  return timeOf(progressing?.reason === "DeploymentResumed" ? lastUpdateTime : lastTransitionTime);
}

function timeOf(time: string | undefined): number {
  return Date.parse(time ?? "") || 0;
}

function describeDuration(ms: number): string {
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}
