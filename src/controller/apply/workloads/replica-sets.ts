import type { KubeClient } from "../../../kube/client.ts";
import { formatLabelSelector, type LabelSelector } from "../../../kube/label-selector.ts";
import type { Deployment, ReplicaSet } from "../../../kube/objects.ts";
import { collectionPath, objectPath, REPLICA_SETS } from "../../../kube/paths.ts";
import {
  type CommitFacts,
  type ReplicaSetView,
  toReplicaSetView,
  toTemplateView,
} from "../../in-place/commit.ts";
import type { Resources } from "../../observe/resources.ts";
import { patchOf, WRITE_TIMEOUT_MS } from "../pipe-patch.ts";

type Client = Pick<KubeClient, "json">;

/** A Deployment with all of its fields, as in JSON. */
export interface WholeDeployment extends Deployment {
  readonly spec: Deployment["spec"] & { readonly selector: LabelSelector };
}

/** Reads the ReplicaSets of a Deployment, for a step of a commit. */
export async function readCommitFacts(
  client: Client,
  { metadata, spec }: WholeDeployment,
  container: string,
): Promise<CommitFacts> {
  const { items } = await client.json<{ readonly items: readonly ReplicaSet[] }>({
    path: collectionPath(REPLICA_SETS, metadata.namespace),
    query: { labelSelector: formatLabelSelector(spec.selector) },
  });
  const replicaSets = items
    .map(toReplicaSetView)
    .filter(({ deploymentUid }) => deploymentUid === metadata.uid);
  return { container, template: toTemplateView(spec.template), replicaSets };
}

export async function deleteReplicaSet(client: Client, { metadata }: ReplicaSetView): Promise<void> {
  const { name, namespace, uid, resourceVersion } = metadata;
  await client.json({
    method: "DELETE",
    path: objectPath(REPLICA_SETS, namespace, name),
    body: { preconditions: { uid, resourceVersion }, propagationPolicy: "Background" },
    timeoutMs: WRITE_TIMEOUT_MS,
  });
}

export async function patchReplicaSet(
  client: Client,
  { metadata }: ReplicaSetView,
  container: string,
  resources: Resources,
  query: { readonly dryRun?: "All" } = {},
): Promise<void> {
  const spec = { template: { spec: { containers: [{ name: container, resources }] } } };
  const request = patchOf(REPLICA_SETS, metadata, { spec });
  await client.json<ReplicaSet>({ ...request, query: { ...request.query, ...query } });
}
