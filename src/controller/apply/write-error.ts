import {
  isCode,
  isReplaced,
  isTerminating,
  isWithoutRight,
  KubeApiError,
  KubeUnreachableError,
} from "../../kube/errors.ts";
import type { WriteError } from "../observe/write-record.ts";

/**
 * What keeps a write to a pipe from being done, in the server's own words.
 *
 * @returns `undefined` if our view is outdated, and for errors that are not about this object
 */
export function writeErrorOf(error: unknown): WriteError | undefined {
  if (error instanceof KubeUnreachableError) return { reason: "WriteFailed", message: error.message };
  if (!(error instanceof KubeApiError) || isReplaced(error) || isTerminating(error)) return undefined;
  if (isCode(error, 404) || isCode(error, 409)) return undefined;
  const message = serverMessage(error);
  const { retryAfterMs } = error;
  if (isWithoutRight(error)) return { reason: "Forbidden", message };
  // 422 of validation or an admission policy, 403 of a policy, 400 of a webhook: they depend on what is written.
  const isRefused = [400, 403, 422].some((code) => isCode(error, code));
  return { reason: isRefused ? "Refused" : "WriteFailed", message, retryAfterMs };
}

/** Without a response the write may have been done. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof KubeUnreachableError;
}

/** A webhook that has side effects lets no dry run through. */
export function isWithoutDryRun(error: unknown): boolean {
  return isCode(error, 400) && error.message.includes("does not support dry run");
}

/** The error's message has the request and the code in front of the server's words. */
function serverMessage({ message, code }: KubeApiError): string {
  const before = `: ${code} `;
  return message.slice(message.indexOf(before) + before.length);
}
