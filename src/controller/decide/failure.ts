import type { PipeFailure, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { describeSize, formatSize, parseSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { AssessContext } from "./assessment.ts";

/** Why a pipe is in the way: one word for programs, and the rest of a sentence for people. */
export interface Reason {
  readonly reason: string;
  readonly message: string;
}

/** The API server would not have the size at all. */
export const REFUSED = "Refused";

/** Of the words of others, in characters: twenty of them must fit into a status. */
const MESSAGE_LIMIT = 1024;

/** What was cut through the middle of a character would come back from the API server as another text. */
export function clipped(message: string): string {
  return message.slice(0, MESSAGE_LIMIT).toWellFormed();
}

/** That a pipe cannot have the desired size; since when is kept from what was known of the same failure. */
export function failureOf(
  pipe: DeploymentView,
  { reason, message }: Reason,
  attempts: number,
  atMs: number,
  context: AssessContext,
): PipeFailure {
  const { name } = pipe.metadata;
  const known = knownFailure(pipe, context);
  const failure = {
    pipe: name,
    size: formatSize(context.desired),
    reason,
    message: clipped(message),
    attempts,
  };
  return known?.reason === reason && known.attempts === attempts
    ? { ...known, ...failure }
    : { ...failure, at: new Date(atMs).toISOString() };
}

/** The failure at the desired size that is known of a pipe from before. */
export function knownFailure(
  { metadata, createdAtMs }: DeploymentView,
  { desired, failures }: AssessContext,
): PipeFailure | undefined {
  return failures.find(
    ({ pipe, size, generation = metadata.generation, at }) =>
      pipe === metadata.name &&
      size === formatSize(desired) &&
      // What was refused is tried again when the Deployment has changed: that may have been the cause.
      generation === metadata.generation &&
      // What a Deployment of its name that is no more could not take says nothing of this one.
      Date.parse(at) >= createdAtMs,
  );
}

/** Those that a status tells of and the one before it did not. */
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
