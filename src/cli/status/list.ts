import type { KubeClient } from "../../kube/client.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { collectionPath, type Resource } from "../../kube/paths.ts";

/** Selects objects of a kind, in all namespaces if none is given. */
export interface Selection {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

const PAGE_SIZE = 500;

interface Page<O> {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly O[];
}

/** All of them, page by page: of many each answer comes well within its time. */
export async function listAll<O extends KubeObject>(
  client: Pick<KubeClient, "json">,
  { resource, namespace, ...selectors }: Selection,
  signal: AbortSignal,
): Promise<readonly O[]> {
  const objects: O[] = [];
  let next: string | undefined;
  do {
    const query = { ...selectors, limit: PAGE_SIZE, continue: next };
    const page: Page<O> = await client.json({ path: collectionPath(resource, namespace), query, signal });
    objects.push(...page.items);
    next = page.metadata.continue || undefined;
  } while (next !== undefined);
  return objects;
}
