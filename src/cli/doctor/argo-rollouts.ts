import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import { keyOfPipe } from "../../controller/observe/workloads/kinds.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Cluster } from "./cluster.ts";
import { type Result, warning } from "./result.ts";
import { ofLabeledPods } from "./workloads.ts";

/** Not part of Kubernetes: its CRD may be missing. */
interface Rollout extends KubeObject {
  readonly spec?: {
    /** The workload that has the pod template in place of `template`. */
    readonly workloadRef?: { readonly kind?: string; readonly name?: string };
    readonly template?: { readonly metadata?: Pick<KubeObject["metadata"], "labels"> };
  };
}

const ROLLOUTS = { apiVersion: "argoproj.io/v1alpha1", plural: "rollouts" };

/**
 * Finds Rollouts of Argo Rollouts that have the labels of a pipe or use the pod template of one. The controller does
 * not resize their pods.
 */
export async function checkArgoRollouts(cluster: Cluster): Promise<Result[]> {
  const rollouts = await cluster.list<Rollout>({ resource: ROLLOUTS });
  const pipes = rollouts.some(({ spec }) => spec?.workloadRef) ? await cluster.pipes() : [];
  const namesOfPipes = new Set(pipes.map(({ view }) => keyOfPipe(view)));
  return rollouts.flatMap((rollout) => {
    const { name: deployment = "", kind } = rollout.spec?.workloadRef ?? {};
    const isTemplate =
      kind === "Deployment" && namesOfPipes.has(`${rollout.metadata.namespace}/${deployment}`);
    return [
      ...reportLabels(cluster, rollout),
      ...(isTemplate ? [templateOf(cluster, rollout, deployment)] : []),
    ];
  });
}

function reportLabels(cluster: Cluster, rollout: Rollout): Result[] {
  if (hasLabelsOfPipe(rollout.metadata)) return [labeled(cluster, rollout)];
  return hasLabelsOfPipe(rollout.spec?.template?.metadata)
    ? [ofLabeledPods("Rollout", rollout.metadata)]
    : [];
}

function hasLabelsOfPipe({ labels = {} }: Pick<KubeObject["metadata"], "labels"> = {}): boolean {
  return labels[TYPE_LABEL] === DATABASE_TYPE && labels[SERVICE_LABEL] !== undefined;
}

function labeled(cluster: Cluster, { metadata: { namespace, name } }: KubeObject): Result {
  return warning(
    `The Rollout ${namespace}/${name} has the labels of a pipe, but only Deployments and StatefulSets are resized.`,
    `Run the pipe as a Deployment or a StatefulSet, or remove the labels, also those in the pod template: ${removal(cluster, "rollouts.argoproj.io", name, namespace)}`,
  );
}

function templateOf(
  cluster: Cluster,
  { metadata: { namespace, name } }: KubeObject,
  deployment: string,
): Result {
  return warning(
    `The pipe ${namespace}/${deployment} is the pod template of the Rollout ${name}: each resize makes Argo Rollouts replace the pods by its own strategy, and the status does not show when they have the size.`,
    `Delete the Rollout and run the pipe as a Deployment, or remove the labels from the Deployment: ${removal(cluster, "deployment", deployment, namespace)}`,
  );
}

function removal(cluster: Cluster, kind: string, name: string, namespace: string | undefined): string {
  return cluster.kubectl(`label ${kind} ${name} --namespace ${namespace} ${SERVICE_LABEL}- ${TYPE_LABEL}-`);
}
