import { z } from "zod";
import { adminCall, explain, parseJson } from "./admin-client.ts";
import { ClusterError } from "./errors.ts";
import { waitFor } from "./wait.ts";

export interface NodeSize {
  readonly cpus: number;
  readonly memoryGib: number;
  readonly pods: number;
}

/** Large enough for the pods of any test. */
export const DEFAULT_NODE: NodeSize = { cpus: 256, memoryGib: 1024, pods: 100_000 };

type Target = { readonly dir: string; readonly server: string };
type Waiting = { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined };

/** Waits until the API server reports that it is ready; it responds before that. */
export async function apiServerReady(cluster: Target, waiting: Waiting): Promise<void> {
  await waitFor(() => isReady(cluster), { what: "the API server to be ready", intervalMs: 30, ...waiting });
}

/** @throws Error that lists what is not ready */
async function isReady(cluster: Target): Promise<true> {
  const response = await adminCall(cluster, "GET", "/readyz");
  if (response.status === 200) return true;
  throw new Error(response.body);
}

/** Creates nodes, whose kubelets kwok simulates. */
export async function createNodes(
  cluster: Target,
  count: number,
  size: NodeSize,
  prefix = "node",
): Promise<void> {
  const resources = { cpu: String(size.cpus), memory: `${size.memoryGib}Gi`, pods: String(size.pods) };
  for (let index = 0; index < count; index++) {
    const name = `${prefix}-${index}`;
    const response = await adminCall(cluster, "POST", "/api/v1/nodes", {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name, labels: { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" } },
      status: { allocatable: resources, capacity: resources },
    });
    if (response.status !== 201) throw new ClusterError(`node ${name} was rejected: ${explain(response)}`);
  }
}

const nodeSchema = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({ taints: z.array(z.object({ key: z.string() })).optional() }),
  status: z.object({
    conditions: z.array(z.object({ type: z.string(), status: z.string() })).optional(),
  }),
});
const nodeListSchema = z.object({ items: z.array(nodeSchema) });

function isUp({ spec, status }: z.infer<typeof nodeSchema>, untainted: boolean): boolean {
  if (untainted && (spec.taints ?? []).length > 0) return false;
  return status.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;
}

/** Waits until pods can run on a node. */
export async function nodeReady(cluster: Target, name: string, waiting: Waiting): Promise<void> {
  await waitFor(
    async () => {
      const response = await adminCall(cluster, "GET", `/api/v1/nodes/${name}`);
      if (response.status !== 200) throw new Error(explain(response));
      return isUp(nodeSchema.parse(parseJson(response.body)), true);
    },
    { what: `node ${name} to be ready`, ...waiting },
  );
}

/** Waits until every node is Ready and, if asked, until the taints of a new node are gone. */
export async function nodesReady(
  cluster: Target,
  count: number,
  { untainted, ...waiting }: Waiting & { readonly untainted: boolean },
): Promise<void> {
  await waitFor(
    async () => {
      const response = await adminCall(cluster, "GET", "/api/v1/nodes");
      const { items } = nodeListSchema.parse(parseJson(response.body));
      const waitedFor = items.filter((node) => !isUp(node, untainted));
      if (items.length >= count && waitedFor.length === 0) return true;
      throw new Error(
        `not ready of ${items.length}: ${waitedFor.map((node) => node.metadata.name).join(", ")}`,
      );
    },
    { what: `${count} nodes to be ready`, intervalMs: 30, ...waiting },
  );
}

/** Waits until the controller manager has created the default ServiceAccount, which pods need. */
export async function defaultServiceAccountReady(cluster: Target, waiting: Waiting): Promise<void> {
  await waitFor(
    async () =>
      (await adminCall(cluster, "GET", "/api/v1/namespaces/default/serviceaccounts/default")).status === 200,
    { what: "the default ServiceAccount to exist", intervalMs: 30, ...waiting },
  );
}
