import { MAX_MESSAGE_LENGTH } from "../../crd/fields.ts";
import type { PipeFailure, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { describedSize } from "../../crd/size-fields.ts";
import { clipped } from "../../kube/clipped.ts";
import type { Assessment } from "../assessment.ts";
import { nameOf } from "../observe/pipe-kind.ts";
import { isOfWrite, isRefusal, NO_ROOM } from "../retry.ts";
import { ROLLBACK_FAILED } from "../rollout/rules.ts";

/** A Deployment changes all the time, because its controller writes its status. Then the write succeeds soon. */
const ORDINARY_CONFLICTS = 2;

/**
 * Returns the failures of all pipes. A failure that the previous status has keeps its time. A conflict is a failure
 * only if it occurs again and again.
 */
export function failuresOf(assessments: readonly Assessment[], previous: PipeScalingStatus): PipeFailure[] {
  return assessments.flatMap(({ pipe, failure, subject }): PipeFailure[] => {
    if (!failure || (failure.isConflict && failure.attempts <= ORDINARY_CONFLICTS)) return [];
    const { reason, message, attempts, atMs, retryAtMs } = failure;
    const current = {
      ...{ pipe: nameOf(pipe), size: describedSize(subject.desired), reason, attempts },
      message: clipped(message, MAX_MESSAGE_LENGTH),
      at: new Date(atMs).toISOString(),
      ...(retryAtMs === undefined ? {} : { nextRetryAt: new Date(retryAtMs).toISOString() }),
    };
    const known = previous.failures?.find((each) => isAlike(each, current) && each.attempts === attempts);
    return [{ ...current, at: known?.at ?? current.at }];
  });
}

/** A pipe could not get a size for a reason, whatever the attempt. */
function isAlike(a: PipeFailure, b: PipeFailure): boolean {
  return a.pipe === b.pipe && a.size.summary === b.size.summary && a.reason === b.reason;
}

/** Returns the failures whose cause the previous status did not have. */
export function newFailures(before: PipeScalingStatus, after: PipeScalingStatus): PipeFailure[] {
  return (after.failures ?? []).filter((failure) => !before.failures?.some((each) => isKnown(each, failure)));
}

/**
 * Every attempt of a rollout interrupts the pipe, so it counts. A refused write counts once for each message. A write
 * that fails for another reason is repeated soon, and its message may differ each time, so its reason counts.
 */
function isKnown(before: PipeFailure, failure: PipeFailure): boolean {
  if (!isAlike(before, failure)) return false;
  // How much room is free changes all the time.
  if (isOfWrite(failure.reason) || failure.reason === NO_ROOM) return true;
  if (isRefusal(failure.reason)) return before.message === failure.message;
  const isRollbackFailed = ({ message }: PipeFailure) => message.includes(ROLLBACK_FAILED);
  return before.attempts === failure.attempts && isRollbackFailed(before) === isRollbackFailed(failure);
}

/** For people, without a full stop. */
export function describeFailure({ pipe, size, message }: PipeFailure): string {
  return `${pipe} could not be resized to ${size.summary}: ${message}`;
}
