import { MAX_MESSAGE_LENGTH } from "../../crd/fields.ts";
import type { PipeFailure, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { describedSize } from "../../crd/size-fields.ts";
import { describeSize, type Size } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import { parseTime } from "../../kube/time.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Assessment, Failure, Subject } from "../assessment.ts";
import type { Sizing } from "../decide/decision.ts";
import { isHindered, notResized } from "../in-place/fall-back.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { isOfWrite, isRefusal, NO_ROOM } from "../retry.ts";
import { ROLLBACK_FAILED } from "../rollout/rules.ts";
import { comparableMessage, desiredSinceMs } from "./status-content.ts";

/**
 * Returns the failures of all pipes, those that stall the service first: people see the first one before the others,
 * and a status has room for only some. A failure that the previous status has keeps its time.
 */
export function failuresOf(assessments: readonly Assessment[], previous: PipeScalingStatus): PipeFailure[] {
  const sorted = assessments.toSorted((a, b) => Number(stalls(b)) - Number(stalls(a)));
  return sorted.flatMap(({ pipe, failure, subject }): PipeFailure[] => {
    if (!failure) return [];
    const { reason, message, attempts, atMs, retryAtMs, isRepeated } = failure;
    const current = {
      pipe: nameOf(pipe),
      size: describedSize(failedSize(failure, subject)),
      reason,
      attempts,
      message: clipped(message, MAX_MESSAGE_LENGTH),
      at: new Date(atMs).toISOString(),
      ...(retryAtMs === undefined ? {} : { nextRetryAt: new Date(retryAtMs).toISOString() }),
    };
    const alike = previous.failures?.find((each) => isAlike(each, current));
    if (alike && isRepeated) return [alike];
    const known = alike?.attempts === attempts ? alike : undefined;
    return [{ ...current, at: known?.at ?? current.at }];
  });
}

/** True if the service needs intervention because of this pipe. Failed writes are retried automatically. */
export function stalls({ state, failure }: Assessment): boolean {
  return state === "failed" || state === "unsizable" || failure?.reason === "NotResizedInPlace";
}

/** The failure OutOfMemory is about the size with too little memory. Others are about the size that pipes get now. */
function failedSize({ reason }: Failure, { desired, outOfMemory }: Subject): Size {
  return (reason === "OutOfMemory" ? outOfMemory?.size : undefined) ?? desired;
}

/** True if both are about the same pipe, size and reason, whatever the attempt. */
function isAlike(a: PipeFailure, b: PipeFailure): boolean {
  return a.pipe === b.pipe && a.size.summary === b.size.summary && a.reason === b.reason;
}

/** Returns the failures that the previous status did not have. */
export function newFailures(before: PipeScalingStatus, after: PipeScalingStatus): PipeFailure[] {
  return (after.failures ?? []).filter((failure) => !before.failures?.some((each) => isKnown(each, failure)));
}

/**
 * Each failed rollout is new, because each attempt interrupts the pipe. A refused write is new if its message is, apart
 * from numbers, such as what a quota has left. A write that fails for another reason is repeated soon, and its message
 * may differ, so only its reason counts.
 */
function isKnown(before: PipeFailure, failure: PipeFailure): boolean {
  if (!isAlike(before, failure)) return false;
  // The message of NO_ROOM also changes often, because it says how much room is free.
  if (isOfWrite(failure.reason) || failure.reason === NO_ROOM) return true;
  if (isRefusal(failure.reason))
    return comparableMessage(before.message) === comparableMessage(failure.message);
  const isRollbackFailed = ({ message }: PipeFailure) => message.includes(ROLLBACK_FAILED);
  return before.attempts === failure.attempts && isRollbackFailed(before) === isRollbackFailed(failure);
}

/** For people, without a full stop. */
export function describeFailure({ pipe, size, message }: PipeFailure): string {
  return `${pipe} could not be resized to ${size.summary}: ${message}`;
}

/*
 * A pipe that cannot be resized in place, and whose pods must not be replaced, waits. After the time that a rollout may
 * take, it is reported as failed. That changes only the report, so it is enough that a process remembers since when the
 * pipe has waited, and that the status shows the next process which pipes were reported.
 */

interface Reported {
  readonly scaling: Pick<PipeScalingView, "status">;
  readonly sizing: Sizing;
  readonly policy: Pick<RolloutPolicy, "rolloutTimeoutMs">;
  readonly nowMs: number;
}

/** The pipes that have waited for too long, with a failure. */
export function overdueHindrances(reported: Reported): readonly Assessment[] {
  const { sizing, policy, nowMs } = reported;
  return sizing.assessments.flatMap((each) => {
    if (!isHindered(each) || each.failure) return [];
    const hinderedAtMs = sinceMs(each, reported);
    if (hinderedAtMs + policy.rolloutTimeoutMs > nowMs) return [];
    return [{ ...each, failure: notResized(each.hindrance, hinderedAtMs) }];
  });
}

/** When the next pipe that waits counts as failed, in milliseconds since 1970; infinite if none will. */
export function hindrancesFailAtMs(reported: Reported): number {
  const { sizing, policy, nowMs } = reported;
  const times = sizing.assessments
    .filter(isHindered)
    .map((each) => sinceMs(each, reported) + policy.rolloutTimeoutMs);
  return Math.min(...times.filter((atMs) => atMs > nowMs), Number.POSITIVE_INFINITY);
}

/** Since when the service is not ready with this size, and the pipe waits because of its hindrance. */
function sinceMs({ pipe, subject }: Assessment, { scaling: { status }, sizing, nowMs }: Reported): number {
  const size = describeSize(sizing.desired.size);
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status !== "False" || status.desired?.summary !== size) return nowMs;
  const first = subject.writes.get(pipe.metadata.uid, "hindered");
  const hinderedAtMs = first?.subject === size ? first.lastAtMs : 0;
  const readyAtMs = parseTime(ready.lastTransitionTime);
  return Math.min(nowMs, Math.max(readyAtMs, desiredSinceMs(status), hinderedAtMs));
}

/** True if the status has the failure of a pipe that waited for too long. */
export function isOverdueIn({ failures }: PipeScalingStatus, pipe: PipeView, size: string): boolean {
  const known = failures?.find((each) => each.pipe === nameOf(pipe) && each.size.summary === size);
  return known?.reason === "NotResizedInPlace";
}
