import type { DeploymentCondition } from "../../kube/objects.ts";
import { type DeploymentView, isChangedByOwner } from "../observe/deployment-view.ts";
import type { AssessContext } from "./assessment.ts";
import type { Cause } from "./failure.ts";
import { startedAtMs } from "./rollout-phase.ts";

/** ReplicaFailure comes and goes in healthy rollouts; only one that lasts is a failure. */
const REPLICA_FAILURE_GRACE_MS = 30_000;

/** Why the controller's last rollout of the pipe has failed; `undefined` if it has not. */
export function rolloutFailure(pipe: DeploymentView, context: AssessContext): Cause | undefined {
  const { progressing, replicaFailure } = pipe.rollout;
  const unschedulable = context.unschedulable.get(pipe.metadata.name);
  // Its old pods are gone already; other pipes keep theirs, and a node may yet come.
  if (pipe.stopsOldPodsFirst && unschedulable !== undefined) {
    return { reason: "Unschedulable", message: unschedulable };
  }
  const because = unschedulable === undefined ? "" : `: ${unschedulable}`;
  if (progressing?.reason === "ProgressDeadlineExceeded" && isOfLastRollout(pipe)) {
    return { reason: "ProgressDeadlineExceeded", message: `${progressing.message ?? ""}${because}` };
  }
  if (replicaFailure?.status === "True" && graceEndsAtMs(pipe, context) <= context.nowMs) {
    const reason = replicaFailure.reason === "FailedCreate" ? "FailedCreate" : "ReplicaFailure";
    return { reason, message: replicaFailure.message ?? "" };
  }
  if (timeoutAtMs(pipe, context) <= context.nowMs) {
    const time = describeDuration(context.policy.rolloutTimeoutMs);
    return { reason: "RolloutTimeout", message: `the rollout has not completed in ${time}${because}` };
  }
  return undefined;
}

/** A Recreate Deployment keeps the condition Progressing of the rollout before for a while. */
function isOfLastRollout({ rollout, lastRollout }: DeploymentView): boolean {
  return rollout.progressedAtS !== lastRollout?.progressedAtS;
}

/** When time alone may make the rollout fail. */
export function rolloutRecheckAtMs(pipe: DeploymentView, context: AssessContext): number {
  const latest = timeoutAtMs(pipe, context);
  const isFailing = pipe.rollout.replicaFailure?.status === "True";
  return isFailing ? Math.min(latest, graceEndsAtMs(pipe, context)) : latest;
}

/** End of the grace time of a ReplicaFailure; at once where no pod is left to wait with. */
function graceEndsAtMs(pipe: DeploymentView, { nowMs }: AssessContext): number {
  const sinceMs = timeOf(pipe.rollout.replicaFailure?.lastTransitionTime);
  const startedMs = startedAtMs(pipe, nowMs);
  // It may be left from the size before; times of conditions are whole seconds.
  const isOfThis = sinceMs > startedMs - 1000;
  if (pipe.rollout.isWithoutPods && isOfThis) return sinceMs;
  return Math.max(sinceMs, startedMs) + REPLICA_FAILURE_GRACE_MS;
}

/**
 * A rollout that its owner paused has its whole time once it goes on, and one that its owner changed since has it from
 * the last progress. The time of a rollout that the Deployment controller has not seen yet has not begun.
 */
function timeoutAtMs(pipe: DeploymentView, { nowMs, policy }: AssessContext): number {
  const { rollout, lastRollout } = pipe;
  // The rollout has ended, or there was nothing to roll out; pods that start now belong to a later scaling.
  const isOver = rollout.progressing?.reason === "NewReplicaSetAvailable" && isOfLastRollout(pipe);
  if (isOver || lastRollout?.replicas === 0) return Number.POSITIVE_INFINITY;
  const progressedMs = isChangedByOwner(pipe) ? rollout.progressedAtS * 1000 : 0;
  const begunMs = rollout.isSeen ? startedAtMs(pipe, nowMs) : nowMs;
  return Math.max(resumedAtMs(rollout.progressing, nowMs), progressedMs, begunMs) + policy.rolloutTimeoutMs;
}

/** A pause and a resumption leave the status of the condition as it is, so its transition time shows neither. */
function resumedAtMs(progressing: DeploymentCondition | undefined, nowMs: number): number {
  // The Deployment controller has not seen yet that the rollout is to go on.
  if (progressing?.reason === "DeploymentPaused") return nowMs;
  const { lastTransitionTime, lastUpdateTime } = progressing ?? {};
  return Math.min(
    nowMs,
    timeOf(progressing?.reason === "DeploymentResumed" ? lastUpdateTime : lastTransitionTime),
  );
}

function timeOf(time: string | undefined): number {
  return Date.parse(time ?? "") || 0;
}

function describeDuration(ms: number): string {
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}
