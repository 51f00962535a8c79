import type { KubeClient, KubeRequest } from "../../../kube/client.ts";
import { formatLabelSelector, type LabelSelector } from "../../../kube/label-selector.ts";
import type { Deployment, ReplicaSet } from "../../../kube/objects.ts";
import { collectionPath, REPLICA_SETS } from "../../../kube/paths.ts";
import type { CommitFacts } from "../../in-place/commit.ts";
import { type ReplicaSetView, toReplicaSetView, toTemplateView } from "../../in-place/replica-set-view.ts";
import type { Resources } from "../../observe/resources.ts";
import { patchRequest, templatePatch } from "../requests.ts";

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

export function replicaSetRequest(
  { metadata }: ReplicaSetView,
  container: string,
  resources: Resources,
): KubeRequest {
  return patchRequest(REPLICA_SETS, metadata, { spec: templatePatch(container, resources) });
}
