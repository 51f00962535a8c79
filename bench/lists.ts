import { KubeClient } from "../src/kube/client.ts";
import { connect } from "../src/kube/connection.ts";

/** A list of a whole collection. */
export interface Listing {
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

interface Page {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly unknown[];
}

const PAGE_SIZE = 500;

/**
 * The baseline of a start, a separate process: it makes the lists in its arguments concurrently, as pages of JSON,
 * discards the objects, logs that it is done, and exits.
 */
const [kubeconfig, listings = "[]"] = process.argv.slice(2);
const lists: readonly Listing[] = JSON.parse(listings);

const client = new KubeClient(await connect(kubeconfig));
const listed = await Promise.all(
  lists.map(async ({ path, ...selectors }) => {
    let count = 0;
    let next: string | undefined;
    do {
      const query = { ...selectors, limit: PAGE_SIZE, continue: next };
      const page = await client.json<Page>({ path, query, timeoutMs: 60_000 });
      count += page.items.length;
      next = page.metadata.continue || undefined;
    } while (next !== undefined);
    return count;
  }),
);
console.log(JSON.stringify({ msg: "listed", time: new Date().toISOString(), listed }));
await client.close();
