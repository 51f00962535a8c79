import { MAX_MESSAGE_LENGTH, type PipeFailure, type PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import { describeSize, formatSize, parseSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { AssessContext } from "./assessment.ts";
import { isOfWrite, isRefusal } from "./retry.ts";

/** The reason why a pipe cannot have the desired size: one word for programs, and the end of a sentence for people. */
export interface Cause {
  readonly reason: FailureReason;
  readonly message: string;
}

/** Cuts between characters, because the API server would change a text that ends within a character. */
export function clipped(text: string, maxLength: number): string {
  return text.slice(0, maxLength).toWellFormed();
}

/** Builds the failure of a pipe at the desired size. If the status already has the same failure, its time is kept. */
export function failureOf(
  pipe: DeploymentView,
  { reason, message }: Cause,
  attempts: number,
  atMs: number,
  context: AssessContext,
): PipeFailure {
  const { name, uid } = pipe.metadata;
  const known = reportedFailure(pipe, context);
  const isSame = known?.reason === reason && known.attempts === attempts;
  return {
    pipe: name,
    uid,
    size: formatSize(context.desired),
    reason,
    message: clipped(message, MAX_MESSAGE_LENGTH),
    attempts,
    at: isSame ? known.at : new Date(atMs).toISOString(),
  };
}

/** Returns the failure of exactly this Deployment at the desired size from the status. */
export function reportedFailure(
  { metadata }: DeploymentView,
  { desired, failures }: AssessContext,
): PipeFailure | undefined {
  return failures.find(({ uid, size }) => uid === metadata.uid && size === formatSize(desired));
}

const ROLLBACK_FAILED = "the rollback failed: ";

/** @param why the message of the server, and the next attempt */
export function rollbackFailed(why: string): string {
  return `${ROLLBACK_FAILED}${why}`;
}

/** Returns the failures whose cause the previous status did not have. */
export function newFailures(before: PipeScalingStatus, after: PipeScalingStatus): PipeFailure[] {
  return (after.failures ?? []).filter((failure) => !before.failures?.some((each) => isKnown(each, failure)));
}

/**
 * Every attempt of a rollout interrupts the pipe, so it counts. A refused write counts once for each message. A write
 * that fails in another way is repeated soon, and its message may differ each time, so its reason counts.
 */
function isKnown(before: PipeFailure, failure: PipeFailure): boolean {
  const isOfSame =
    before.pipe === failure.pipe && before.size === failure.size && before.reason === failure.reason;
  if (!isOfSame) return false;
  if (isOfWrite(failure.reason)) return true;
  if (isRefusal(failure.reason)) return before.message === failure.message;
  const isRollbackFailed = ({ message }: PipeFailure) => message.includes(ROLLBACK_FAILED);
  return before.attempts === failure.attempts && isRollbackFailed(before) === isRollbackFailed(failure);
}

/** For people, without a full stop. */
export function describeFailure({ pipe, size, message }: PipeFailure): string {
  const parsed = parseSize(size);
  return `${pipe} could not be resized to ${parsed ? describeSize(parsed) : size}: ${message}`;
}
