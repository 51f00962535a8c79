import {
  isCode,
  isConflict,
  isDeniedByPolicy,
  isDeniedByWebhook,
  isForbiddenByRbac,
  isTerminating,
  isWithoutRoles,
  KubeApiError,
  KubeUnreachableError,
  messageOf,
  serverMessage,
} from "../../kube/errors.ts";
import type { WriteError } from "../observe/write-record.ts";
import { withRemedy } from "../remedy.ts";

export const CONFLICT: WriteError = {
  reason: "WriteFailed",
  message: "the object was changed at the same time",
  isConflict: true,
};

/** Status codes that depend on the written object. A webhook that denies a write chooses the code. */
const REFUSALS = [400, 403, 404, 409, 413, 422];

/**
 * Returns the reason why a write to a pipe failed, with the message of the server and what people can do.
 *
 * @returns `undefined` if our view is outdated, or if the error is not about this object
 */
export function writeErrorOf(error: unknown): WriteError | undefined {
  if (error instanceof KubeUnreachableError) return { reason: "WriteFailed", message: error.message };
  if (!(error instanceof KubeApiError) || isConflict(error) || isTerminating(error)) return undefined;
  const message = withRemedy(serverMessage(error));
  const { retryAfterMs } = error;
  if (isWithoutRoles(error)) return { reason: "WriteFailed", message, retryAfterMs };
  if (isForbiddenByRbac(error)) return { reason: "Forbidden", message };
  const isRefused = isDeniedByPolicy(error) || REFUSALS.some((code) => isCode(error, code));
  return { reason: isRefused ? "Refused" : "WriteFailed", message, retryAfterMs };
}

/** The record of a failed write for any error, also one that is not about the written object. */
export function writeFailed(error: unknown): WriteError {
  const retryAfterMs = error instanceof KubeApiError ? error.retryAfterMs : undefined;
  return { reason: "WriteFailed", message: messageOf(error), retryAfterMs };
}

/**
 * Returns why a dry run or a list failed.
 *
 * @throws the error itself if our view is outdated, or if the server is busy (429)
 */
export function problemIn(error: unknown): WriteError {
  const isBusy = isCode(error, 429) && !isDeniedByWebhook(error);
  const problem = isBusy ? undefined : writeErrorOf(error);
  if (problem === undefined) throw error;
  return problem;
}

/**
 * Returns why a template cannot follow its pods, which is a reason to roll the pipe out; `undefined` if the same write
 * may succeed later.
 */
export function fallbackOf(error: unknown): WriteError | undefined {
  const problem = writeErrorOf(error);
  if (problem?.reason !== "Refused" && problem?.reason !== "Forbidden") return undefined;
  return { ...problem, fallback: problem.reason };
}
