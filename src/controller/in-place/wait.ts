import type { FallbackReason } from "../../crd/fallback-reasons.ts";
import type { Failure, PipeDecision, Subject } from "../assessment.ts";
import type { Fallback, InPlaceFailure } from "../observe/last-rollout.ts";
import { requestedSize } from "../observe/pipe-scaling-view.ts";
import { hasAnyResource } from "../observe/pipe-view.ts";

/*
 * Pipes that cannot be resized in place, and whose pods must not be replaced: with the strategy InPlace, and before
 * somebody requests a size. With InPlace, the kubelet goes on with pods that it has deferred or that had an error, so
 * they keep the size that they wait for, and nothing is remembered.
 */

/** Another attempt would do the same again, so these reasons are recorded, and the pods get their old size. */
const LASTING: readonly FallbackReason[] = ["Restarted", "Reverted"];

export function isLasting({ reason }: Pick<Fallback, "reason">): boolean {
  return LASTING.includes(reason);
}

/** True while a recorded failure keeps the pods from another attempt with the same size. Other reasons can be seen. */
export function isRemembered(failure: InPlaceFailure, subject: Subject): boolean {
  const { revision = subject.pipe.revision } = failure;
  if (!isLasting(failure) || revision !== subject.pipe.revision) return false;
  return failure.reason === "Restarted" || subject.nowMs < retriedAtMs(failure, subject);
}

/** When a size that another writer reverted is tried again, in milliseconds since 1970. */
function retriedAtMs({ atMs }: InPlaceFailure, { nowMs, timeouts }: Subject): number {
  return Math.min(atMs, nowMs) + timeouts.rolloutRetry.mostMs;
}

/** @param problem `untilMs`: when it may end without an event, in milliseconds since 1970 */
export function waitsInPlace(
  subject: Subject,
  problem: (Fallback | InPlaceFailure) & { readonly untilMs?: number },
): PipeDecision {
  const { reason, message, untilMs } = problem;
  const waiting = {
    state: "waiting",
    hindrance: { reason, message },
    activity: `it cannot be resized in place, and its strategy replaces no pod: ${message}`,
    recheckAtMs: untilMs,
  } as const;
  if (!("atMs" in problem)) return waiting;
  if (reason === "Reverted") return { ...waiting, recheckAtMs: retriedAtMs(problem, subject) };
  // The size itself may have stopped the container, so no other pipe gets it.
  const failure = notResized(waiting.hindrance, problem.atMs);
  return { ...waiting, state: "failed", failure, next: { type: "continue", actions: [] } };
}

/**
 * Labels alone restart nothing. True for a pipe that had resources when it became one of a new service, until a size is
 * requested. One that the controller resized before, or that had the size, is not one of these: its owner has moved or
 * changed it since then.
 */
export function isUnrequested({ pipe, scaling }: Subject): boolean {
  if (!scaling.isUnrequested || requestedSize(scaling) === undefined || !hasAnyResource(pipe)) return false;
  const { lastRollout, resizedAtMs } = pipe;
  if (!lastRollout) return resizedAtMs === undefined;
  // The annotation has the resources of the pipe in place of the size.
  return lastRollout.generation === 0 && lastRollout.isRollback;
}

/** @param problem why it cannot be resized in place; absent if its strategy does not allow that */
export function waitsForRequest(problem: Fallback | undefined): PipeDecision {
  const because = problem?.message ?? "its strategy is Rollout";
  const message = `no size was requested since it got its labels, so it keeps its own; another one needs a restart, because ${because}`;
  return { state: "waiting", hindrance: { reason: NOT_REQUESTED, message }, activity: message };
}

const NOT_REQUESTED = "SizeNotRequested";

/** A pipe that waited for as long as a rollout may take. */
export function notResized({ reason, message }: Fallback, atMs: number): Failure {
  const because = `it cannot be resized in place (${reason}: ${message}), and its strategy replaces no pod`;
  const text =
    reason === NOT_REQUESTED
      ? `${message}: request a size`
      : `${because}: fix that, or set the strategy InPlaceOrRollout`;
  return { reason: "NotResizedInPlace", message: text, attempts: 1, atMs };
}
