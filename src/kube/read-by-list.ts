import type { KubeClient } from "./client.ts";
import type { Identity, KubeObject } from "./objects.ts";
import { collectionPath, type Resource } from "./paths.ts";

/**
 * Reads an object as JSON with a list of one, for which the permission to list is enough.
 *
 * @returns `undefined` if it is gone, or if its name belongs to another object now
 */
export async function readByList<T extends KubeObject>(
  client: Pick<KubeClient, "json">,
  resource: Resource,
  { name, namespace, uid }: Identity,
): Promise<T | undefined> {
  const { items } = await client.json<{ readonly items: readonly T[] }>({
    path: collectionPath(resource, namespace),
    query: { fieldSelector: `metadata.name=${name}` },
  });
  return items.find(({ metadata }) => metadata.uid === uid);
}
