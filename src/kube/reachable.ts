import type { KubeClient } from "./client.ts";
import { isCode, KubeConfigError } from "./errors.ts";

/**
 * Makes one call, so that a process with an invalid kubeconfig fails at startup with a sentence for the user.
 *
 * @throws KubeConfigError
 */
export async function checkReachable(client: KubeClient, signal: AbortSignal): Promise<void> {
  try {
    await client.json({ path: "/version", signal });
  } catch (cause) {
    signal.throwIfAborted();
    if (isCode(cause, 401)) {
      throw new KubeConfigError(
        `The cluster at ${client.server} rejects the credentials of the kubeconfig: renew them or use another kubeconfig.`,
        { cause },
      );
    }
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new KubeConfigError(
      `The cluster cannot be reached (${why}): check that it is running and that the kubeconfig has the address of its server.`,
      { cause },
    );
  }
}
