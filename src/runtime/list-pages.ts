import type { KubeClient, KubeRequest } from "../kube/client.ts";
import type { List } from "../kube/protobuf/envelope.ts";

const PAGE_SIZE = 500;

/** Lists all objects at one version, page by page, so that only one page of unreduced objects is in memory. */
export async function listPages<Raw, T>(
  client: Pick<KubeClient, "json">,
  request: KubeRequest,
  read: (raw: Raw) => readonly T[],
): Promise<{ readonly objects: T[]; readonly version: string }> {
  const objects: T[] = [];
  let next: string | undefined;
  for (;;) {
    const query = { ...request.query, limit: PAGE_SIZE, continue: next };
    const page = await client.json<List<Raw>>({ ...request, query });
    for (const item of page.items ?? []) objects.push(...read(item));
    next = page.metadata.continue || undefined;
    if (next === undefined) return { objects, version: page.metadata.resourceVersion };
  }
}
