import type { KubeClient } from "./client.ts";
import { isCode, KubeConfigError } from "./errors.ts";

/**
 * Makes one call, so that a process with a wrong kubeconfig fails at its start with a sentence for the user.
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
        `The cluster at ${client.server} does not accept the kubeconfig's credentials: renew them or use another kubeconfig.`,
        { cause },
      );
    }
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new KubeConfigError(
      `The cluster cannot be reached (${why}): check that it runs and that the kubeconfig names its server.`,
      { cause },
    );
  }
}
