import type { KubeClient } from "../../kube/client.ts";
import type { Deployment } from "../../kube/objects.ts";
import { collectionPath, DEPLOYMENTS } from "../../kube/paths.ts";
import type { PodTemplate } from "../in-place/pod-template.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";

/** A Deployment with all of its fields, as in JSON. */
export interface WholeDeployment extends Deployment {
  readonly spec: Deployment["spec"] & {
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
  };
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
    readonly values?: readonly string[];
  }[];
}

/**
 * Reads it with a list of one object, because the controller has permission to list Deployments but not to get them.
 *
 * @returns `undefined` if it is gone
 */
export async function readDeployment(
  client: Pick<KubeClient, "json">,
  { metadata: { name, namespace, uid } }: DeploymentView,
): Promise<WholeDeployment | undefined> {
  const { items } = await client.json<{ readonly items: readonly WholeDeployment[] }>({
    path: collectionPath(DEPLOYMENTS, namespace),
    query: { fieldSelector: `metadata.name=${name}` },
  });
  return items.find((item) => item.metadata.uid === uid);
}
