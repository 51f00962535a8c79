import { OURS, type RolloutPhase } from "../../domain/rollout-plan.ts";
import type { PipeContext } from "../assessment.ts";
import { BY_ROLLING, type Caches } from "../observe/caches.ts";
import {
  isChangedByOwner,
  isRollingOut,
  mayReplacePodsOfTemplate,
  type PipeView,
} from "../observe/pipe-view.ts";

type Timing = Pick<PipeContext, "nowMs" | "policy">;

/** A phase, and when it times out. */
interface TimedPhase {
  readonly phase: RolloutPhase;
  readonly phaseEndsAtMs?: number;
}

/**
 * Returns the phase of a pipe. Phases in which pods are replaced have a timeout, so that no other pipe waits forever.
 */
export function timedPhase(pipe: PipeView, timing: Timing): TimedPhase {
  const { rollout, replicas, isPaused, lastRollout } = pipe;
  const { nowMs } = timing;
  const unlessOver = (phase: RolloutPhase, sinceMs: number): TimedPhase | undefined => {
    const phaseEndsAtMs = Math.min(sinceMs, nowMs) + stepsOf(pipe) * timeoutMsOf(pipe, timing);
    return phaseEndsAtMs > nowMs ? { phase, phaseEndsAtMs } : undefined;
  };
  const isOurs = isRollingOut(pipe);
  // If its owner changes a pipe during a rollout, the rollout still counts against the budget. A later change does not.
  const ours = unlessOver(lastRollout?.isRollback ? "rolling-back" : "rolling-out", startedAtMs(pipe, nowMs));
  if (isOurs && ours) return ours;
  if (rollout.isComplete || replicas === 0) {
    const ending = unlessOver("terminating", endingSinceMs(pipe, nowMs));
    return rollout.terminatingReplicas > 0 && ending ? ending : { phase: "settled" };
  }
  if (isPaused) return { phase: "paused" };
  const overdue = { phase: "overdue" } as const;
  const phase = mayReplacePodsOfTemplate(pipe) ? "rolling-out" : "updating";
  return isOurs && !isChangedByOwner(pipe) ? overdue : (unlessOver(phase, updatedAtMs(pipe)) ?? overdue);
}

/**
 * Returns the start of the controller's last rollout. A start in the future comes from a wrong clock; then the last
 * progress of this rollout that Kubernetes reports replaces it, or the present time if it reports none.
 */
export function startedAtMs(pipe: PipeView, nowMs: number): number {
  const { lastRollout, rollout, createdAtMs } = pipe;
  const startedMs = Math.max(lastRollout?.startedAtMs ?? 0, createdAtMs);
  if (startedMs <= nowMs) return startedMs;
  return Math.min(nowMs, isOfLastRollout(pipe) ? rollout.progressedAtS * 1000 || nowMs : nowMs);
}

/** For a while, a Recreate Deployment still has the condition Progressing of the previous rollout. */
export function isOfLastRollout({ rollout, lastRollout }: PipeView): boolean {
  return rollout.progressedAtS !== lastRollout?.progressedAtS;
}

/**
 * Last progress of a rollout that may not be the controller's, or the last write of the controller if that is later.
 */
function updatedAtMs({ rollout, resizedAtMs = 0 }: PipeView): number {
  return Math.max(rollout.progressedAtS * 1000, resizedAtMs);
}

/** Terminating pods were replaced by the time of the last progress, or of the last rollout if that began later. */
function endingSinceMs(pipe: PipeView, nowMs: number): number {
  return Math.max(pipe.rollout.progressedAtS * 1000, pipe.lastRollout ? startedAtMs(pipe, nowMs) : 0);
}

/** A rollout that replaces one pod after another has the whole timeout for each. */
export function stepsOf({ inTurn }: PipeView): number {
  return inTurn?.steps ?? 1;
}

/** The owner may allow a rollout more time than the controller does. Pods count as available only after `minReadyMs`. */
export function timeoutMsOf(
  { deadlineMs, minReadyMs }: PipeView,
  { policy }: Pick<Timing, "policy">,
): number {
  return Math.max(policy.rolloutTimeoutMs, deadlineMs) + minReadyMs;
}

/** Counts rollouts and rollbacks of the controller across all services. */
export function countRolling({ pipes }: Caches, timing: Timing): number {
  return pipes.by(BY_ROLLING, "yes").filter((pipe) => {
    const { phase } = timedPhase(pipe, timing);
    // Without its last rollout, the phase of a pipe does not tell who started the rollout.
    return OURS.includes(phase) || (!pipe.lastRollout && phase === "updating");
  }).length;
}
