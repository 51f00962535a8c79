import type { KubeClient } from "./client.ts";
import {
  isCode,
  isForbiddenByRbac,
  isWithoutRoles,
  KubeApiError,
  KubeConfigError,
  KubeUnreachableError,
  messageOf,
} from "./errors.ts";

/** The API server does not respond, or is busy. The configuration may be right, so a later call can succeed. */
export class ClusterUnreachableError extends KubeConfigError {
  override readonly name = "ClusterUnreachableError";
}

/**
 * Makes one call, so that a process or command with an unusable kubeconfig fails at startup with a sentence for the
 * user.
 *
 * @throws KubeConfigError if only the user can change the result, such as rejected credentials or an untrusted
 *   certificate
 * @throws ClusterUnreachableError if a later call can succeed
 */
export async function checkReachable(client: KubeClient, signal: AbortSignal): Promise<void> {
  try {
    await client.json({ path: "/version", signal });
  } catch (cause) {
    signal.throwIfAborted();
    // The server responds. Later calls report missing permissions.
    if (isForbiddenByRbac(cause)) return;
    if (isCode(cause, 401)) {
      throw new KubeConfigError(`The cluster at ${client.server} rejects ${whatIsRejected(client.server)}.`, {
        cause,
      });
    }
    const why = messageOf(cause);
    const sentence = `The cluster cannot be reached (${why}): check that it is running and that the kubeconfig has the address of its server.`;
    throw isTransient(cause)
      ? new ClusterUnreachableError(sentence, { cause })
      : new KubeConfigError(sentence, { cause });
  }
}

function whatIsRejected(server: string): string {
  return server.startsWith("https:")
    ? "the credentials of the kubeconfig or of the service account of the pod: renew them, or use another kubeconfig"
    : "a request without credentials, which are not sent without TLS: set server in the kubeconfig to an https:// URL";
}

/** Returns true for an error that the API server, the network or a restart can cause, whatever the configuration is. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ClusterUnreachableError) return true;
  if (isWithoutRoles(error)) return true;
  if (error instanceof KubeApiError) return error.code === 429 || error.code >= 500;
  return error instanceof KubeUnreachableError && !isUnusable(error.cause);
}

/** The credentials cannot be read, or a certificate or the TLS handshake was rejected. */
function isUnusable(cause: unknown): boolean {
  if (cause instanceof KubeConfigError) return true;
  return cause instanceof Error && "code" in cause && TLS_ERROR.test(String(cause.code));
}

/** The codes with which Node.js and OpenSSL reject a certificate or a handshake. */
const TLS_ERROR = /^(ERR_TLS|ERR_SSL|CERT|UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|INVALID_CA|HOSTNAME_MISMATCH)_?/;
