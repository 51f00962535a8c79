import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { sameSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { isSize } from "../observe/resources.ts";
import type { AssessContext } from "./assessment.ts";
import { failureOf, knownFailure, REFUSED } from "./failure.ts";
import { CONTEST, contestDelayMs } from "./field-conflict.ts";

export const CONTAINER_UNCLEAR = "ContainerUnclear";

const RETRY_FIRST_MS = 5 * 60_000;
const RETRY_MOST_MS = 60 * 60_000;

/** A failure at the desired size of a pipe that does not have it: refused outright, or put back since. */
export function pastFailure(pipe: DeploymentView, context: AssessContext): PipeFailure | undefined {
  const { desired } = context;
  const known = knownFailure(pipe, context);
  if (known && isOfAttempt(known)) return known;
  const { attempt, given } = pipe;
  // Put back, and crashed before that was reported: the annotations tell.
  const isPutBack = given !== undefined && !(isSize(given) && sameSize(given, desired));
  if (!attempt || !sameSize(attempt.size, desired) || !isPutBack) return undefined;
  const reason = { reason: "RolloutFailed", message: "the rollout did not complete" };
  return failureOf(pipe, reason, attempt.attempts, attempt.startedAtMs, context);
}

/** Others stand or fall with what is seen now. */
function isOfAttempt({ reason }: PipeFailure): boolean {
  return reason !== CONTEST && reason !== CONTAINER_UNCLEAR;
}

/** A time that is asked for counts once, when it has come: clocks differ, and so do people's time zones. */
export function retryAt(
  pipe: DeploymentView,
  failure: PipeFailure,
  { scaling, nowMs }: AssessContext,
): number {
  const failedAtMs = Date.parse(failure.at);
  const delayMs = retryDelayMs(pipe, failure);
  // Stamped by a clock that was wrong: to wait for that time could take years.
  const isAhead = failedAtMs > nowMs + RETRY_MOST_MS && delayMs <= RETRY_MOST_MS;
  const dueAtMs = isAhead ? nowMs : failedAtMs + delayMs;
  const askedAtMs = scaling.retryRequestedAtMs ?? 0;
  return askedAtMs > failedAtMs ? Math.min(askedAtMs, dueAtMs) : dueAtMs;
}

/**
 * 5 minutes after the first failure, doubling to an hour; a contest sooner, but only a few times. A rollout
 * that stops the old pod first is not tried again by itself: each try costs the pipe's data freshness.
 */
function retryDelayMs({ isRecreated }: DeploymentView, { reason, attempts }: PipeFailure): number {
  if (reason === CONTEST) return contestDelayMs(attempts);
  if (isRecreated && reason !== REFUSED) return Number.POSITIVE_INFINITY;
  return Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** Math.min(20, attempts - 1));
}
