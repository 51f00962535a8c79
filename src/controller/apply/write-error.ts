import {
  isCode,
  isConflict,
  isForbiddenByRbac,
  isTerminating,
  isWithoutRoles,
  KubeApiError,
  KubeUnreachableError,
  serverMessage,
} from "../../kube/errors.ts";
import type { WriteError } from "../observe/write-record.ts";
import { withRemedy } from "../remedy.ts";

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
  // 422 from validation or an admission policy, 403 from a policy and denials of webhooks depend on the written object.
  const isRefused = [400, 403, 404, 409, 422].some((code) => isCode(error, code));
  return { reason: isRefused ? "Refused" : "WriteFailed", message, retryAfterMs };
}
