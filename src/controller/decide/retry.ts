import { elapsedMs } from "../../runtime/elapsed.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Timeouts } from "../timeouts.ts";

const DAY_MS = 24 * 3_600_000;

const WRITE_REASONS = ["WriteFailed", "Forbidden"];

/** The size was not applied, for a reason in the Deployment or elsewhere that someone can change. */
const REFUSALS = ["Refused", "NoNodeLargeEnough"];

/** The size was applied, and its pods did not come up. */
const ROLLOUT_REASONS = [
  "Unschedulable",
  "ProgressDeadlineExceeded",
  "RolloutTimeout",
  "RolloutFailed",
  "FailedCreate",
  "ReplicaFailure",
];

/** A size that stayed this long was not in conflict, so a later change starts a new count. */
export const TRUCE_MS = 7 * DAY_MS;

export const FIELD_CONFLICT = "FieldConflict";

export function isRefusal(reason: string): boolean {
  return REFUSALS.includes(reason);
}

/** The reason of a rollout that failed. */
export function isOfRollout(reason: string): boolean {
  return ROLLOUT_REASONS.includes(reason);
}

/** The size was not applied, and the write is repeated soon. */
export function isOfWrite(reason: string): boolean {
  return WRITE_REASONS.includes(reason);
}

/** @returns the delay after this many attempts; infinite if there is no automatic retry */
export function retryDelayMs(reason: string, attempts: number, timeouts: Timeouts): number {
  if (reason === FIELD_CONFLICT) return timeouts.fieldConflictMs[attempts - 1] ?? Number.POSITIVE_INFINITY;
  const { firstMs, mostMs } = isOfWrite(reason) ? timeouts.writeRetry : timeouts.rolloutRetry;
  return Math.min(mostMs, firstMs * 2 ** Math.min(20, Math.max(0, attempts - 1)));
}

/**
 * Returns the delay after a failed write. A change of the Deployment may make a rejected size acceptable. The delay
 * still grows with each attempt, because some programs change Deployments continuously.
 *
 * @param isChanged whether the Deployment has changed since the write
 */
export function writeDelayMs(
  reason: string,
  attempts: number,
  isChanged: boolean,
  timeouts: Timeouts,
): number {
  return retryDelayMs(isRefusal(reason) && isChanged ? "WriteFailed" : reason, attempts, timeouts);
}

/**
 * Returns the time at which a failed pipe is retried, in milliseconds since 1970. The time in the annotation applies
 * once, when it is reached.
 *
 * @param atMs time of the failure
 * @param delayMs delay after the failure
 */
export function retryAtMs(
  atMs: number,
  delayMs: number,
  { retryRequestedAtMs = 0 }: Pick<PipeScalingView, "retryRequestedAtMs">,
  nowMs: number,
): number {
  const failedAtMs = notInFuture(atMs, nowMs);
  const dueAtMs = failedAtMs + delayMs;
  return retryRequestedAtMs > failedAtMs ? Math.min(retryRequestedAtMs, dueAtMs) : dueAtMs;
}

/** Returns true if a retry was requested for a time after the failure, and that time is reached. */
export function isRetryRequested(
  atMs: number,
  { retryRequestedAtMs = 0 }: PipeScalingView,
  nowMs: number,
): boolean {
  return retryRequestedAtMs > notInFuture(atMs, nowMs) && retryRequestedAtMs <= nowMs;
}

/** A failure in the future comes from a wrong clock; the delay then starts now. */
function notInFuture(atMs: number, nowMs: number): number {
  return nowMs - elapsedMs(atMs, nowMs);
}
