import { elapsedMs } from "../../runtime/elapsed.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

const MINUTE_MS = 60_000;

/** A wait that doubles with each attempt. */
interface Doubling {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** For rollouts that failed and sizes that were refused: each try costs the customer something, or is unlikely to help. */
const ROLLOUT: Doubling = { firstMs: 5 * MINUTE_MS, mostMs: 60 * MINUTE_MS };

/** For writes that got an error: the next one may well be done. 20 writes in the first hour, then 12. */
const WRITE: Doubling = { firstMs: 1000, mostMs: 5 * MINUTE_MS };

/** Another writer has taken the size: applied again after these times, and then no more. */
const FIELD_CONFLICT_MS = [0, 10_000, 60_000];

const WRITE_REASONS = ["WriteFailed", "Forbidden"];

/** The size was not applied, and depends on the Deployment or on something else that a person can change. */
const REFUSALS = ["Refused", "NoNodeLargeEnough"];

export const FIELD_CONFLICT = "FieldConflict";

export function isRefusal(reason: string): boolean {
  return REFUSALS.includes(reason);
}

/** @returns the wait after this many attempts; infinite if only a person or another size can help */
export function retryDelayMs(reason: string, attempts: number): number {
  if (reason === FIELD_CONFLICT) return FIELD_CONFLICT_MS[attempts - 1] ?? Number.POSITIVE_INFINITY;
  const { firstMs, mostMs } = WRITE_REASONS.includes(reason) ? WRITE : ROLLOUT;
  return Math.min(mostMs, firstMs * 2 ** Math.min(20, Math.max(0, attempts - 1)));
}

/**
 * The wait after a write that failed. A refused size may be allowed once the owner has changed the Deployment. The wait
 * still grows with each attempt, because some programs change Deployments all the time.
 *
 * @param isChanged whether the Deployment has changed since the write
 */
export function writeDelayMs(reason: string, attempts: number, isChanged: boolean): number {
  return retryDelayMs(isRefusal(reason) && isChanged ? "WriteFailed" : reason, attempts);
}

/**
 * When a failed pipe is tried again, in milliseconds since 1970. The time of the annotation counts once, when it has
 * come.
 *
 * @param atMs time of the failure
 * @param delayMs the wait after the failure
 */
export function retryAtMs(
  atMs: number,
  delayMs: number,
  { retryRequestedAtMs = 0 }: PipeScalingView,
  nowMs: number,
): number {
  const failedAtMs = notInFuture(atMs, nowMs);
  const dueAtMs = failedAtMs + delayMs;
  return retryRequestedAtMs > failedAtMs ? Math.min(retryRequestedAtMs, dueAtMs) : dueAtMs;
}

/** True if a person has asked for another try since the failure, and the time that they gave has come. */
export function isRetryRequested(
  atMs: number,
  { retryRequestedAtMs = 0 }: PipeScalingView,
  nowMs: number,
): boolean {
  return retryRequestedAtMs > notInFuture(atMs, nowMs) && retryRequestedAtMs <= nowMs;
}

/** A failure in the future comes from a wrong clock: the wait begins now at the latest. */
function notInFuture(atMs: number, nowMs: number): number {
  return nowMs - elapsedMs(atMs, nowMs);
}
