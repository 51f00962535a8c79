import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isForbiddenByRbac, isWithoutRoles, type KubeApiError } from "../../kube/errors.ts";
import { collectionPath, DEPLOYMENTS, type Resource } from "../../kube/paths.ts";
import { isTransient } from "../../kube/reachable.ts";
import { type Clock, pause } from "../../runtime/clock.ts";

type Client = Pick<KubeClient, "json">;

/** Without these, the controller can do nothing in a namespace. */
const KINDS: readonly Resource[] = [DEPLOYMENTS, PIPE_SCALINGS];

/** Namespaces that are read at a time. A controller can have hundreds. */
const MOST_AT_ONCE = 16;

/**
 * Finds the namespaces that this account may not read, for example because they were deleted, and their Roles with
 * them. The caches of a controller that watched them would never be complete. If it may read none, the result is empty:
 * without the Roles of all namespaces, a controller must not become ready.
 *
 * @returns the refusal for each namespace
 * @throws an error after which the call can be repeated (isTransient), or the reason of the signal
 */
export async function findUnreadable(
  client: Client,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, KubeApiError>> {
  const found = new Map<string, KubeApiError>();
  if (namespaces.length < 2 || !(await refusalIn(client, undefined, signal))) return found;
  for (let index = 0; index < namespaces.length; index += MOST_AT_ONCE) {
    const next = namespaces.slice(index, index + MOST_AT_ONCE);
    await Promise.all(
      next.map(async (namespace) => {
        const refusal = await refusalIn(client, namespace, signal);
        if (!refusal) return;
        // This refusal does not show whether the account has the permission.
        if (isWithoutRoles(refusal)) throw refusal;
        found.set(namespace, refusal);
      }),
    );
  }
  return found.size < namespaces.length ? found : new Map();
}

/** Returns the first refusal, in all namespaces if none is given. The informers report other lasting errors. */
async function refusalIn(
  client: Client,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<KubeApiError | undefined> {
  try {
    await list(client, namespace, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (isForbiddenByRbac(error)) return error;
    if (isTransient(error)) throw error;
  }
  return undefined;
}

/**
 * Resolves to the first of these namespaces that can be read, or to `undefined` when the signal is aborted.
 *
 * @param retryMs delay before each of them is tried again
 */
export async function whenReadable(
  client: Client,
  clock: Clock,
  namespaces: readonly string[],
  retryMs: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  while (namespaces.length > 0 && !signal.aborted) {
    await pause(clock, retryMs, signal);
    for (const namespace of namespaces) {
      const isReadable = await list(client, namespace, signal).then(
        () => true,
        () => false,
      );
      if (isReadable) return namespace;
    }
  }
  return undefined;
}

async function list(client: Client, namespace: string | undefined, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  for (const kind of KINDS)
    await client.json({ path: collectionPath(kind, namespace), query: { limit: 1 }, signal });
}
