import type { PipeFailure, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import { describeSize, formatSize, parseSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { AssessContext } from "./assessment.ts";

/** Why a pipe cannot have the desired size: one word for programs, and the rest of a sentence for people. */
export interface Cause {
  readonly reason: FailureReason;
  readonly message: string;
}

/** Longest message of a failure, in characters: twenty of them must fit into a status. */
const MESSAGE_LIMIT = 1024;

/** A text that is cut within a character would come back from the API server as another text. */
export function clipped(message: string): string {
  return message.slice(0, MESSAGE_LIMIT).toWellFormed();
}

/** The failure of a pipe at the desired size. Its time stays the one that the status reports of the same failure. */
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
    message: clipped(message),
    attempts,
    at: isSame ? known.at : new Date(atMs).toISOString(),
  };
}

/** The failure of this very Deployment at the desired size that the status reports. */
export function reportedFailure(
  { metadata }: DeploymentView,
  { desired, failures }: AssessContext,
): PipeFailure | undefined {
  return failures.find(({ uid, size }) => uid === metadata.uid && size === formatSize(desired));
}

/** Failures that a status reports and the status before did not. */
export function newFailures(before: PipeScalingStatus, after: PipeScalingStatus): PipeFailure[] {
  const same = (a: PipeFailure) => (b: PipeFailure) =>
    a.pipe === b.pipe && a.size === b.size && a.reason === b.reason && a.attempts === b.attempts;
  return (after.failures ?? []).filter((failure) => !before.failures?.some(same(failure)));
}

/** For people, without a full stop. */
export function describeFailure({ pipe, size, message }: PipeFailure): string {
  const parsed = parseSize(size);
  return `${pipe} could not be given ${parsed ? describeSize(parsed) : size}: ${message}`;
}
