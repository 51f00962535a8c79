import { sameSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Assessment, Begin, Failure, PipeDecision, Subject } from "../assessment.ts";
import { hasAppliedSize, type PipeView } from "../observe/pipe-view.ts";
import type { WritePurpose, WriteRecord } from "../observe/write-record.ts";
import {
  dueAtMs,
  FIELD_CONFLICT,
  failureOf,
  isOfWrite,
  isRetryRequested,
  lastErrorOf,
  recordOf,
  retriedAt,
  retryAtMs,
  retryDelayMs,
  TRUCE_MS,
  unlessAhead,
} from "../retry.ts";
import { dryRunRecord, roomRecord, searchedAtMs } from "./way.ts";

export function failedBefore(subject: Subject): PipeDecision | undefined {
  const repeated = repeatedCheck(subject);
  if (repeated) return { state: isOfWrite(repeated.reason) ? "retrying" : "failed", failure: repeated };
  const failure = priorFailure(subject);
  if (!failure || (failure.retryAtMs ?? Number.POSITIVE_INFINITY) <= subject.nowMs) return undefined;
  return { state: isOfWrite(failure.reason) ? "retrying" : "failed", failure };
}

/** The last dry run or search for room failed, and the next one is in flight. */
function repeatedCheck(subject: Subject): Failure | undefined {
  const records = [dryRunRecord(subject, true), dryRunRecord(subject, false), roomRecord(subject)];
  return failureOf(records.find((record) => record?.outcome.type === "pending" && holdsBack(record)));
}

/** The number of the next attempt at the desired size, and whether people asked for it. */
export function nextAttempt(subject: Subject): Pick<Begin, "attempts" | "isRequested"> {
  const prior = priorFailure(subject);
  // Failed writes are repeated soon and often, so their number must not delay a later rollout.
  const isCounted = prior !== undefined && !isOfWrite(prior.reason);
  const { attempts = 0 } = (isCounted ? prior : (rolledBack(subject) ?? fieldConflict(subject))) ?? {};
  return {
    attempts: attempts + 1,
    isRequested: prior ? isRetryRequested(prior.atMs, subject) : isTriedOnRequest(subject),
  };
}

/** The dry run of a requested retry has just succeeded, so there is no failure any more that would show the request. */
function isTriedOnRequest(subject: Subject): boolean {
  const { isRequested = false, outcome, lastAtMs } = dryRunRecord(subject, false) ?? {};
  const { nowMs, timeouts } = subject;
  return isRequested && outcome?.type === "done" && elapsedMs(lastAtMs ?? 0, nowMs) < timeouts.roomFoundMs;
}

/** The failure of a write that is due again while the pipe waits for its turn. It is not reported again until then. */
export function failureUntilTurn(subject: Subject): Failure | undefined {
  const failure = failedWrite(subject);
  return failure && { ...failure, isRepeated: true };
}

/** Why the pipe does not have the desired size although it was tried: a write, a rollout, or another writer. */
function priorFailure(subject: Subject): Failure | undefined {
  return failedWrite(subject) ?? rolledBack(subject) ?? fieldConflict(subject);
}

/**
 * The failure of the write itself, of its dry run, or of the search for room. Each of them holds the pipe back, so the
 * one that is due last counts. A rollback shows that the writes before it succeeded after all, and after a commit, the
 * size was applied by other means.
 */
function failedWrite(subject: Subject): Failure | undefined {
  const records = [recordOf(subject, "resize"), dryRunRecord(subject, true), dryRunRecord(subject, false)];
  const failed = records.filter((record) => record?.outcome.type === "failed" && holdsBack(record));
  const failures = [
    ...failed.map((record) => failureOf(record, dueAtMs(record, subject.pipe, subject))),
    failedSearchBeforeResize(subject),
  ].filter((failure) => failure !== undefined);
  const commit = recordOf(subject, "commit");
  const committedAtMs = commit?.outcome.type === "done" ? commit.lastAtMs : 0;
  const rolledBackAtMs = unlessAhead(rolledBack(subject)?.atMs ?? 0, subject.nowMs);
  const appliedAtMs = Math.max(rolledBackAtMs, committedAtMs);
  const [last] = failures.filter(({ atMs }) => atMs >= appliedAtMs).toSorted(byLastRetry);
  return last;
}

/**
 * The failed writes, dry runs and searches for other sizes, if all pods have the present one. They are forgotten: when
 * one of those sizes is requested again, that is a new attempt. A failure with the present size still counts, because
 * another writer may change that.
 */
export function failuresOfOtherSizes({ subject, state, isReturned }: Assessment): readonly Attempted[] {
  if (state !== "done" && !isReturned) return [];
  const { pipe, writes, active } = subject;
  const { uid } = pipe.metadata;
  const last: readonly (Attempted & { readonly record: WriteRecord | undefined })[] = [
    ...SIZED.map((purpose) => ({ uid, purpose, record: recordOf(subject, purpose) })),
    { uid, purpose: "dry-run-commit", record: dryRunRecord(subject, true) },
    { uid, purpose: "dry-run", record: dryRunRecord(subject, false) },
    { uid, purpose: "check-room", record: roomRecord(subject) },
    ...active.map(({ pod, record }) => ({ uid: pod.metadata.uid, purpose: "resize-pod", record }) as const),
  ];
  return last.filter((each) => !each.record && writes.get(each.uid, each.purpose)?.outcome.type === "failed");
}

interface Attempted {
  readonly uid: string;
  readonly purpose: WritePurpose;
}

const SIZED = ["resize", "commit", "continue-commit"] as const;

function byLastRetry(a: Failure, b: Failure): number {
  const { retryAtMs: firstMs = Number.MAX_SAFE_INTEGER } = a;
  const { retryAtMs: secondMs = Number.MAX_SAFE_INTEGER } = b;
  return secondMs - firstMs;
}

/** False for an error that leads to a rollout, because then only the checks of the rollout count. */
function holdsBack(record: WriteRecord): boolean {
  const error = lastErrorOf(record);
  return error !== undefined && !error.fallback;
}

/** A deferred resize in place may get room meanwhile, and then other pods, or the template, follow at once. */
function failedSearchBeforeResize(subject: Subject): Failure | undefined {
  return subject.active.every(({ state }) => state === "unchanged") ? failedSearch(subject) : undefined;
}

/** No node has room for new pods. */
export function failedSearch(subject: Subject): Failure | undefined {
  const record = roomRecord(subject);
  return record?.outcome.type === "failed" ? failureOf(record, searchedAtMs(subject)) : undefined;
}

/** A rollout that stopped old pods is not retried automatically, because each attempt interrupts the pipe. */
function rolledBack(subject: Subject): Failure | undefined {
  const { pipe, writes, desired, timeouts } = subject;
  // Another writer may have removed the annotation with the rollback.
  const lastRollout = pipe.lastRollout ?? writes.lastAnnotation(pipe.metadata.uid)?.lastRollout;
  if (!lastRollout?.isRollback || lastRollout.generation === 0) return undefined;
  if (!sameSize(lastRollout.size, desired)) return undefined;
  const cause =
    lastRollout.failure ?? ({ reason: "RolloutFailed", message: "the rollout did not complete" } as const);
  const attempts = Math.max(1, lastRollout.attempts);
  const delayMs = pipe.stopsOldPodsFirst
    ? Number.POSITIVE_INFINITY
    : retryDelayMs(cause.reason, attempts, timeouts);
  const atMs = lastRollout.startedAtMs;
  return retriedAt(retryAtMs(atMs, delayMs, subject), { ...cause, attempts, atMs });
}

/**
 * The template does not have the desired size although it was applied, by a rollout or by a commit. The number of
 * attempts comes from the annotation of the pipe and from the writes of this process, because another writer may have
 * removed the annotation.
 */
function fieldConflict(subject: Subject): Failure | undefined {
  const { pipe, desired, nowMs, timeouts } = subject;
  const { lastRollout } = pipe;
  // After a rollback, the template has what the controller wrote last. A clock may have been ahead before.
  const startedAtMs = hasAppliedSize(pipe) && lastRollout?.generation ? lastRollout.startedAtMs : 0;
  const rolledBackAtMs = startedAtMs <= nowMs ? startedAtMs : 0;
  const records = [recordOf(subject, "resize"), recordOf(subject, "commit")];
  const known = records.flatMap((record) =>
    record?.outcome.type === "done" && record.lastAtMs >= rolledBackAtMs
      ? [{ attempts: record.attempts, atMs: record.lastAtMs }]
      : [],
  );
  if (lastRollout && !lastRollout.isRollback && sameSize(lastRollout.size, desired))
    known.push({ attempts: Math.max(1, lastRollout.attempts), atMs: lastRollout.startedAtMs });
  if (known.length === 0) return undefined;
  const atMs = Math.max(...known.map((each) => each.atMs));
  const isOld = elapsedMs(atMs, nowMs) > TRUCE_MS;
  const attempts = isOld ? 1 : Math.max(...known.map((each) => each.attempts));
  const message = `${otherWriter(pipe)} has changed the container's resources: omit requests.cpu, requests.memory and limits.memory in the chart or manifest of this pipe`;
  const dueMs = retryAtMs(atMs, retryDelayMs(FIELD_CONFLICT, attempts, timeouts), subject);
  return retriedAt(dueMs, { reason: FIELD_CONFLICT, message, attempts, atMs });
}

function otherWriter({ otherManagers }: PipeView): string {
  const names = otherManagers.map((name) => JSON.stringify(name));
  return names.length === 0 ? "another writer" : `another writer, ${names.join(" and ")},`;
}
