import type { KubeClient } from "../../kube/client.ts";
import { formatLabelSelector, type LabelSelector } from "../../kube/label-selector.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { collectionPath, type Resource } from "../../kube/paths.ts";
import type { Workload } from "../../kube/workloads.ts";

/** A workload that was read as JSON, so with all of its fields. */
export interface WholeWorkload extends Workload {
  readonly spec: Workload["spec"] & { readonly selector: LabelSelector };
  readonly status?: { readonly updatedReplicas?: number };
}

/** Reads the objects that the selector of a workload selects. Some of them may belong to another workload. */
export async function listSelected<T extends KubeObject>(
  client: Pick<KubeClient, "json">,
  resource: Resource<T>,
  { metadata, spec }: WholeWorkload,
): Promise<readonly T[]> {
  const { items } = await client.json<{ readonly items: readonly T[] }>({
    path: collectionPath(resource, metadata.namespace),
    query: { labelSelector: formatLabelSelector(spec.selector) },
  });
  return items;
}
