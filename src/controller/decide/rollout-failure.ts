import type { DeploymentCondition } from "../../kube/objects.ts";
import { type DeploymentView, isChangedByOwner } from "../observe/deployment-view.ts";
import type { AssessContext } from "./assessment.ts";
import type { Cause } from "./failure.ts";
import { startedAtMs } from "./rollout-phase.ts";

/** Returns the reason why the controller's last rollout of the pipe failed; `undefined` if it did not fail. */
export function rolloutFailure(pipe: DeploymentView, context: AssessContext): Cause | undefined {
  const { progressing, replicaFailure } = pipe.rollout;
  const unschedulable = context.unschedulable.get(pipe.metadata.name);
  // Its old pods are gone already. Other pipes keep theirs, so they can wait for a new node.
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

/** For a while, a Recreate Deployment still has the condition Progressing of the previous rollout. */
function isOfLastRollout({ rollout, lastRollout }: DeploymentView): boolean {
  return rollout.progressedAtS !== lastRollout?.progressedAtS;
}

/** Returns the time at which the rollout may fail without an event. */
export function rolloutRecheckAtMs(pipe: DeploymentView, context: AssessContext): number {
  const latest = timeoutAtMs(pipe, context);
  const isFailing = pipe.rollout.replicaFailure?.status === "True";
  return isFailing ? Math.min(latest, graceEndsAtMs(pipe, context)) : latest;
}

/** Returns the end of the grace period of a ReplicaFailure. There is none if the pipe has no pod left. */
function graceEndsAtMs(pipe: DeploymentView, { nowMs, timeouts }: AssessContext): number {
  const sinceMs = timeOf(pipe.rollout.replicaFailure?.lastTransitionTime);
  const startedMs = startedAtMs(pipe, nowMs);
  // The condition may be from the previous size. Times of conditions are whole seconds.
  const isOfThis = sinceMs > startedMs - 1000;
  if (pipe.rollout.isWithoutPods && isOfThis) return sinceMs;
  return Math.max(sinceMs, startedMs) + timeouts.replicaFailureMs;
}

/**
 * Returns the start of the timeout. A resumed rollout gets the whole timeout again, and a rollout that its owner
 * changed gets it from the last progress. Until the Deployment controller observes a rollout, the timeout does not
 * start.
 */
function timeoutAtMs(pipe: DeploymentView, { nowMs, policy }: AssessContext): number {
  const { rollout, lastRollout } = pipe;
  // The rollout has ended, or there was nothing to roll out. Pods that start now belong to a later scale-up.
  const isOver = rollout.progressing?.reason === "NewReplicaSetAvailable" && isOfLastRollout(pipe);
  if (isOver || lastRollout?.replicas === 0) return Number.POSITIVE_INFINITY;
  const progressedMs = isChangedByOwner(pipe) ? rollout.progressedAtS * 1000 : 0;
  const begunMs = rollout.isSeen ? startedAtMs(pipe, nowMs) : nowMs;
  return Math.max(resumedAtMs(rollout.progressing, nowMs), progressedMs, begunMs) + policy.rolloutTimeoutMs;
}

/** Pausing and resuming do not change the status of the condition, so its transition time shows neither. */
function resumedAtMs(progressing: DeploymentCondition | undefined, nowMs: number): number {
  // The Deployment controller has not observed yet that the rollout is resumed.
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
