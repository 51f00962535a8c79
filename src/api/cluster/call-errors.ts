import {
  isDeniedByPolicy,
  isDeniedByWebhook,
  isOutcomeUnknown,
  KubeApiError,
  KubeUnreachableError,
} from "../../kube/errors.ts";
import { type ApiError, apiError } from "../errors.ts";

/**
 * Returns the error for the caller after a write that the cluster rejected or did not confirm.
 *
 * @param what the object of the sentence "The cluster's policy does not allow …"
 */
export function toWriteError(error: unknown, what: string): unknown {
  if (error instanceof KubeApiError && isDenied(error))
    return apiError("PolicyDenied", what).with({ cause: error });
  return isOutcomeUnknown(error) ? unavailable("NotConfirmed", error) : toReadError(error);
}

/** Returns the error for the caller after a read that the cluster rejected or did not respond to. */
export function toReadError(error: unknown): unknown {
  const isOfCluster = error instanceof KubeUnreachableError || error instanceof KubeApiError;
  return isOfCluster ? unavailable("Unavailable", error) : error;
}

function unavailable(reason: "Unavailable" | "NotConfirmed", cause: unknown): ApiError {
  const retryAfterMs = cause instanceof KubeApiError ? cause.retryAfterMs : undefined;
  return apiError(reason).with({ cause, retryAfterMs });
}

/**
 * Returns true if admission denied the write. A 422 never comes from the CRD schema, because our own schema is as
 * strict. A webhook can choose any status, even that of a missing permission, and a policy one of several, so the
 * message of the API server identifies their denials. A 5xx of a webhook counts as unavailable.
 */
function isDenied(error: KubeApiError): boolean {
  if (error.code === 422 || isDeniedByPolicy(error)) return true;
  return error.code < 500 && isDeniedByWebhook(error);
}
