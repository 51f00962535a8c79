import type { RolloutPhase } from "../../domain/rollout-plan.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import { type DeploymentView, isChangedByOwner, isRollingOut } from "../observe/deployment-view.ts";

export interface Timing {
  readonly nowMs: number;
  readonly policy: RolloutPolicy;
}

/** The phase of a pipe. Every phase in which pods move ends by time, so that no other pipe waits for ever. */
export function rolloutPhase(pipe: DeploymentView, timing: Timing): RolloutPhase {
  const { rollout, replicas, isPaused, lastRollout } = pipe;
  // An owner's change in the middle does not take the rollout out of the budget; one that comes later is the owner's.
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

/** The time at which a phase in which pods move ends; `undefined` for other phases. */
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
 * Start of the controller's last rollout. A start in the future comes from a wrong clock; then the last progress that
 * Kubernetes reports stands in for it.
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

/** Pods that end were replaced by the last progress, or by the last rollout where Kubernetes reports no progress. */
function endingSinceMs(pipe: DeploymentView, nowMs: number): number {
  return Math.max(pipe.rollout.progressedAtS * 1000, pipe.lastRollout ? startedAtMs(pipe, nowMs) : 0);
}

function isOverdue(sinceMs: number, { nowMs, policy }: Timing): boolean {
  return elapsedMs(sinceMs, nowMs) >= policy.rolloutTimeoutMs;
}
