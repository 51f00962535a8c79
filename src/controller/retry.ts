import { formatSize, type Size } from "../domain/size.ts";
import { elapsedMs } from "../runtime/elapsed.ts";
import type { Failure, Subject } from "./assessment.ts";
import type { PipeScalingView } from "./observe/pipe-scaling-view.ts";
import { isOpen, type WriteError, type WritePurpose, type WriteRecord } from "./observe/write-record.ts";
import type { Doubling, Timeouts } from "./timeouts.ts";

const DAY_MS = 24 * 3_600_000;

const WRITE_REASONS = ["WriteFailed", "Forbidden"];

/** The size was not applied, for a reason in the workload or elsewhere that someone can change. */
const REFUSALS = ["Refused", "NoNodeLargeEnough"];

/** No node has room now. Pods come and go, so the nodes are searched again soon. */
export const NO_ROOM = "NoNodeHasRoom";

/** A size that stayed this long was not in conflict, so a later change starts a new count. */
export const TRUCE_MS = 7 * DAY_MS;

/**
 * If the last write was longer ago than this, the delays `writeRetry` and `commitRetry` begin again with the shortest.
 * An hour keeps the bound on writes per hour valid.
 */
export const SERIES_END_MS = 60 * 60_000;

export const FIELD_CONFLICT = "FieldConflict";

export function isRefusal(reason: string): boolean {
  return REFUSALS.includes(reason);
}

/** The size was not applied, and the write is repeated soon. */
export function isOfWrite(reason: string): boolean {
  return WRITE_REASONS.includes(reason);
}

/**
 * Returns the delay after a failed write, at least the Retry-After of the server. After a change of the object, which
 * may make a rejected size acceptable, the delay is shorter. It still grows with each write of the series, because some
 * programs change objects continuously.
 */
function failedWriteDelayMs(
  error: WriteError,
  { attempts, series, besides = 0 }: WriteRecord,
  isChanged: boolean,
  timeouts: Timeouts,
): number {
  const { reason, retryAfterMs = 0, isConflict = false, isUndone = false } = error;
  if (isConflict && series === 1) return retryAfterMs;
  const written = series + besides;
  const isSoon = isOfWrite(reason) || (isChanged && isRefusal(reason));
  const delayMs = isSoon
    ? retryDelayMs("WriteFailed", written, timeouts)
    : retryDelayMs(reason, attempts, timeouts);
  // Each commit is two writes.
  const undoneMs = isUndone ? doubled(timeouts.commitRetry, Math.ceil(written / 2)) : 0;
  return Math.max(retryAfterMs, delayMs, undoneMs);
}

/**
 * Returns the delay after a write that succeeded and was undone. If other writes of the series failed, it is at least
 * the delay after those.
 */
function undoneDelayMs({ attempts, series }: WriteRecord, timeouts: Timeouts): number {
  const haveFailed = series > attempts;
  return Math.max(
    retryDelayMs(FIELD_CONFLICT, attempts, timeouts),
    haveFailed ? retryDelayMs("WriteFailed", series, timeouts) : 0,
  );
}

interface RetryContext {
  readonly scaling: Pick<PipeScalingView, "retryRequestedAtMs"> | undefined;
  readonly nowMs: number;
  readonly timeouts: Timeouts;
}

/** An object to which a write may be repeated. */
export interface Versioned {
  readonly metadata: { readonly generation: number };
}

/**
 * When a write to an object is due again, in milliseconds since 1970; before that, it is not repeated. The next attempt
 * of every write follows from this.
 */
export function dueAtMs(
  record: WriteRecord | undefined,
  { metadata }: Versioned,
  context: RetryContext,
): number {
  if (!record) return 0;
  const { outcome, lastAtMs } = record;
  const { timeouts } = context;
  switch (outcome.type) {
    // The response, or a read, comes first.
    case "pending":
    case "unknown":
      return Number.POSITIVE_INFINITY;
    case "failed": {
      const isChanged = outcome.generation !== metadata.generation;
      return retryAtMs(lastAtMs, failedWriteDelayMs(outcome.error, record, isChanged, timeouts), context);
    }
    // The write succeeded, and something undid it.
    case "done":
      if (elapsedMs(lastAtMs, context.nowMs) > TRUCE_MS) return 0;
      return retryAtMs(lastAtMs, undoneDelayMs(record, timeouts), context);
  }
}

/** The last write of a purpose to the workload of a pipe, if it was for this subject: by default, the desired size. */
export function recordOf(
  { pipe, writes, desired }: Pick<Subject, "pipe" | "writes"> & { readonly desired?: Size | undefined },
  purpose: WritePurpose,
  subject = desired ? formatSize(desired) : "",
): WriteRecord | undefined {
  const record = writes.get(pipe.metadata.uid, purpose);
  return record?.subject === subject ? record : undefined;
}

/** Returns the error of the last attempt if it failed or got no response. */
export function errorOf(record: Pick<WriteRecord, "outcome"> | undefined): WriteError | undefined {
  return record && "error" in record.outcome ? record.outcome.error : undefined;
}

/** Like errorOf, but while another attempt is in flight, returns the error of the one before it. */
export function lastErrorOf(record: Pick<WriteRecord, "outcome"> | undefined): WriteError | undefined {
  return record?.outcome.type === "pending" ? record.outcome.before : errorOf(record);
}

/** The failure of a write; `undefined` if the last attempt that has ended did not fail. */
export function failureOf(
  record: WriteRecord | undefined,
  retryAtMs = Number.POSITIVE_INFINITY,
): Failure | undefined {
  const error = lastErrorOf(record);
  if (!record || !error) return undefined;
  const { attempts, lastAtMs: atMs } = record;
  const { reason, message, isConflict } = error;
  const repeated = isOpen(record) ? { isRepeated: true } : {};
  return retriedAt(retryAtMs, { reason, message, attempts, atMs, isConflict, ...repeated });
}

/** Number of first writes whose conflicts are not reported. Kubernetes often writes the status of a workload. */
const ORDINARY_CONFLICTS = 2;

/** Returns a failure unless it is an ordinary conflict, after which the write soon succeeds. */
export function unlessOrdinary(failure: Failure | undefined): Failure | undefined {
  return failure?.isConflict && failure.attempts <= ORDINARY_CONFLICTS ? undefined : failure;
}

export function retriedAt(retryAtMs: number, failure: Failure): Failure {
  return Number.isFinite(retryAtMs) ? { ...failure, retryAtMs } : failure;
}

/** @returns the delay after this many attempts; infinite if there is no automatic retry */
export function retryDelayMs(reason: string, attempts: number, timeouts: Timeouts): number {
  if (reason === FIELD_CONFLICT) return timeouts.fieldConflictMs[attempts - 1] ?? Number.POSITIVE_INFINITY;
  return doubled(delaysAfter(reason, timeouts), attempts);
}

/** True if only a request leads to another write, because something has undone as many as are made by themselves. */
export function isUsedUp({ outcome, attempts }: WriteRecord, { timeouts }: RetryContext): boolean {
  return outcome.type === "done" && !Number.isFinite(retryDelayMs(FIELD_CONFLICT, attempts, timeouts));
}

function doubled({ firstMs, mostMs }: Doubling, attempts: number): number {
  return Math.min(mostMs, firstMs * 2 ** Math.min(20, Math.max(0, attempts - 1)));
}

function delaysAfter(reason: string, { writeRetry, rolloutRetry, roomRetry }: Timeouts): Doubling {
  if (reason === NO_ROOM) return roomRetry;
  return isOfWrite(reason) ? writeRetry : rolloutRetry;
}

/**
 * Returns the time at which a failed write or rollout is retried, in milliseconds since 1970. If people requested a
 * retry for a time after the failure (RETRY_ANNOTATION), it is at most that time. A failure in the future comes from a
 * wrong clock; the delay then starts now.
 */
export function retryAtMs(atMs: number, delayMs: number, { scaling, nowMs }: RetryContext): number {
  const { retryRequestedAtMs = 0 } = scaling ?? {};
  const dueMs = Math.min(atMs, nowMs) + delayMs;
  const isRequested = retryRequestedAtMs > beforeRequestMs(atMs, nowMs);
  return isRequested ? Math.min(retryRequestedAtMs, dueMs) : dueMs;
}

/** The clocks of a cluster that works differ by less than this. */
const WRONG_CLOCK_MS = 60_000;

/**
 * A stored time, or `otherwiseMs` if it is far in the future. That comes from a clock that was wrong, and shows only
 * that the event is over, so nothing waits until it is reached.
 */
export function unlessAhead(atMs: number, nowMs: number, otherwiseMs = 0): number {
  return atMs - nowMs > WRONG_CLOCK_MS ? otherwiseMs : atMs;
}

/**
 * The time after which a request counts for a failure, in milliseconds since 1970. The time of a failure far in the
 * future comes from a clock that was wrong then by at least as much as it is ahead now. So a request counts that may be
 * newer than the failure, but one that was made long before does not. The retry gets a right time.
 */
function beforeRequestMs(failedAtMs: number, nowMs: number): number {
  const aheadMs = Math.max(0, failedAtMs - nowMs);
  return Math.min(failedAtMs, nowMs) - (aheadMs > WRONG_CLOCK_MS ? aheadMs : 0);
}

/** Returns true if a retry was requested for a time after the failure, and that time is reached. */
export function isRetryRequested(atMs: number, { scaling, nowMs }: RetryContext): boolean {
  const { retryRequestedAtMs = 0 } = scaling ?? {};
  return retryRequestedAtMs > beforeRequestMs(atMs, nowMs) && retryRequestedAtMs <= nowMs;
}

/** Returns true if people asked for another attempt since this write failed, so that its result no longer counts. */
export function isRetried({ outcome, lastAtMs }: WriteRecord, request: RetryContext): boolean {
  return outcome.type === "failed" && isRetryRequested(lastAtMs, request);
}
