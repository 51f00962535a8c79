import type { KubeClient, KubeRequest } from "../kube/client.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { listPages } from "../runtime/list-pages.ts";

/** The objects of a kind, in one namespace or in all. */
export interface Selection extends Pick<KubeRequest, "query"> {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
}

/** @param isWanted filters by what no selector can express, so that other objects are not kept in memory */
export async function listAll<O extends KubeObject>(
  client: Pick<KubeClient, "json">,
  { resource, namespace, query }: Selection,
  signal: AbortSignal | undefined,
  isWanted: (object: O) => boolean = () => true,
): Promise<readonly O[]> {
  const request = { path: collectionPath(resource, namespace), query: query ?? {}, signal };
  const { objects } = await listPages<O, O>(client, request, (object) => (isWanted(object) ? [object] : []));
  return objects;
}
