import type { KubeClient, KubeRequest } from "../kube/client.ts";
import { isCode } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { listPages } from "../runtime/list-pages.ts";

/** The objects of a kind, in one namespace or in all. */
export interface Selection extends Pick<KubeRequest, "query"> {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
}

export async function listAll<O extends KubeObject>(
  client: Pick<KubeClient, "json">,
  { resource, namespace, query }: Selection,
  signal: AbortSignal | undefined,
): Promise<readonly O[]> {
  const request = { path: collectionPath(resource, namespace), query: query ?? {}, signal };
  const { objects } = await listPages<O, O>(client, request, (object) => [object]);
  return objects;
}

/** Waits for a call; if the API server rejects it with this status code, the result is `otherwise`. */
export async function unlessCode<T, U>(code: number, call: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await call;
  } catch (error) {
    if (isCode(error, code)) return otherwise;
    throw error;
  }
}
