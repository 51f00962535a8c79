import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { HORIZONTAL_AUTOSCALERS } from "../../src/controller/observe/autoscaler-view.ts";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { CONFIG_MAPS, collectionPath, DEPLOYMENTS, PODS } from "../../src/kube/paths.ts";
import { RESOURCE_LABEL } from "../../src/records/labels.ts";

/**
 * The baseline of the controller's start, a process of its own: it only makes the paged lists that the
 * controller begins with (src/controller/observe/caches.ts), all at once as it does, keeps nothing of them, says when
 * it was done, and ends.
 */
const [kubeconfig, records = "", pipes = ""] = process.argv.slice(2);

/** As the controller asks for them (src/runtime/reflector.ts). */
const PAGE_SIZE = 500;

interface Page {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly unknown[];
}

const LISTS = [
  { path: collectionPath(CONFIG_MAPS, records), labelSelector: `${RESOURCE_LABEL}=organization` },
  { path: collectionPath(CONFIG_MAPS, records), labelSelector: `${RESOURCE_LABEL}=service` },
  { path: collectionPath(PIPE_SCALINGS, pipes) },
  {
    path: collectionPath(DEPLOYMENTS, pipes),
    labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`,
  },
  { path: collectionPath(PODS, pipes), fieldSelector: "spec.nodeName=" },
  { path: collectionPath(HORIZONTAL_AUTOSCALERS, pipes) },
];

const client = new KubeClient(await connect(kubeconfig));
const listed = await Promise.all(
  LISTS.map(async ({ path, ...selectors }) => {
    let count = 0;
    let next: string | undefined;
    do {
      const page = await client.json<Page>({
        path,
        query: { ...selectors, limit: PAGE_SIZE, continue: next },
      });
      count += page.items.length;
      next = page.metadata.continue || undefined;
    } while (next !== undefined);
    return count;
  }),
);
console.log(JSON.stringify({ msg: "listed", time: new Date().toISOString(), listed }));
await client.close();
