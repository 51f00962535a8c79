import type { RolloutPhase } from "../../domain/rollout-plan.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import { type DeploymentView, isChangedByOwner, isRollingOut } from "../observe/deployment-view.ts";

export interface Timing {
  readonly nowMs: number;
  readonly policy: RolloutPolicy;
}

/**
 * Returns the phase of a pipe. Phases in which pods are replaced have a timeout, so that no other pipe waits forever.
 */
export function rolloutPhase(pipe: DeploymentView, timing: Timing): RolloutPhase {
  const { rollout, replicas, isPaused, lastRollout } = pipe;
  // If its owner changes a pipe during a rollout, the rollout still counts against the budget. A later change does not.
  if (isRollingOut(pipe) && !isOverdue(startedAtMs(pipe, timing.nowMs), timing))
    return lastRollout?.isRollback ? "rolling-back" : "rolling-out";
  if (rollout.isComplete || replicas === 0) {
    const isEnding = rollout.terminatingReplicas > 0 && !isOverdue(endingSinceMs(pipe, timing.nowMs), timing);
    return isEnding ? "terminating" : "settled";
  }
  if (isPaused) return "paused";
  const isOurs = isRollingOut(pipe) && !isChangedByOwner(pipe);
  return isOurs || isOverdue(updatedAtMs(pipe), timing) ? "overdue" : "updating";
}

/** Returns the time at which a phase with moving pods times out; `undefined` for other phases. */
export function phaseEndsAtMs(
  pipe: DeploymentView,
  phase: RolloutPhase,
  { nowMs, policy }: Timing,
): number | undefined {
  switch (phase) {
    case "rolling-out":
    case "rolling-back":
      return startedAtMs(pipe, nowMs) + policy.rolloutTimeoutMs;
    case "updating":
      return updatedAtMs(pipe) + policy.rolloutTimeoutMs;
    case "terminating":
      return endingSinceMs(pipe, nowMs) + policy.rolloutTimeoutMs;
    case "settled":
    case "paused":
    case "overdue":
      return undefined;
  }
}

/**
 * Returns the start of the controller's last rollout. A start in the future comes from a wrong clock; then the last
 * progress that Kubernetes reports replaces it.
 */
export function startedAtMs({ lastRollout, rollout, createdAtMs }: DeploymentView, nowMs: number): number {
  const startedMs = Math.max(lastRollout?.startedAtMs ?? 0, createdAtMs);
  if (startedMs <= nowMs) return startedMs;
  return Math.min(nowMs, rollout.progressedAtS * 1000 || nowMs);
}

/** Last progress of a rollout that is not known to be the controller's; its own write comes before any progress. */
function updatedAtMs({ rollout, resizedAtMs = 0 }: DeploymentView): number {
  return Math.max(rollout.progressedAtS * 1000, resizedAtMs);
}

/** Terminating pods were replaced by the time of the last progress, or of the last rollout if there is no progress. */
function endingSinceMs(pipe: DeploymentView, nowMs: number): number {
  return Math.max(pipe.rollout.progressedAtS * 1000, pipe.lastRollout ? startedAtMs(pipe, nowMs) : 0);
}

function isOverdue(sinceMs: number, { nowMs, policy }: Timing): boolean {
  return elapsedMs(sinceMs, nowMs) >= policy.rolloutTimeoutMs;
}
