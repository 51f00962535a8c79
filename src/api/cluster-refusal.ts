import { isCode, isReplaced, KubeApiError, KubeUnreachableError } from "../kube/errors.ts";
import { invalid, unavailable } from "./problem.ts";

/** The object is not the one that the write was decided on: it is gone, replaced, or was written at the same moment. */
export function isOther(error: unknown): boolean {
  return isCode(error, 409) || isCode(error, 404) || isReplaced(error);
}

/** Whether a write that failed so may have been made all the same. */
export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof KubeUnreachableError || (error instanceof KubeApiError && error.code >= 500);
}

/**
 * What a write that the cluster did not take is to the caller.
 *
 * @param what was to be written, as it reads in "does not allow …"
 */
export function refusal(error: unknown, what: string): unknown {
  if (error instanceof KubeUnreachableError) {
    return unavailable("The change could not be made. It is safe to repeat it.", { cause: error });
  }
  if (!(error instanceof KubeApiError)) return error;
  if (isDenied(error)) return invalid(`The cluster's policy does not allow ${what}.`, error);
  return unavailable("The change could not be made. It is safe to repeat it.", {
    cause: error,
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  });
}

/**
 * Somebody's admission policy has said no. 422 is not the schema's, which our own is as strict as; a webhook
 * chooses its code, also that of a right that we have not, so it is known by the API server's words.
 */
function isDenied({ code, message }: KubeApiError): boolean {
  return code === 422 || (code < 500 && / admission webhook "[^"]*" denied the request\b/.test(message));
}
