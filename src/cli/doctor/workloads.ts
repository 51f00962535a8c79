import { SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import { isCode } from "../../kube/errors.ts";
import type { Resource } from "../../kube/paths.ts";
import { PODS, REPLICA_SETS } from "../../kube/paths.ts";
import { type Cluster, OF_PIPES } from "./cluster.ts";
import { notChecked, type Result, warning } from "./result.ts";

const KINDS: readonly (readonly [kind: string, Resource])[] = [
  ["DaemonSet", { apiVersion: "apps/v1", plural: "daemonsets" }],
  ["ReplicaSet", REPLICA_SETS],
  ["Job", { apiVersion: "batch/v1", plural: "jobs" }],
  ["CronJob", { apiVersion: "batch/v1", plural: "cronjobs" }],
  ["Pod", PODS],
];

/** Finds workloads of other kinds with the labels of pipes, because they are not resized. */
export async function checkWorkloads(cluster: Cluster): Promise<Result[]> {
  return (await Promise.all(KINDS.map((each) => checkKind(cluster, ...each)))).flat();
}

async function checkKind(cluster: Cluster, kind: string, resource: Resource): Promise<Result[]> {
  try {
    const objects = await cluster.list({ resource, query: OF_PIPES });
    // A workload that a Deployment or another owner creates has the labels of the template of its owner.
    const unowned = objects.filter(({ metadata }) => (metadata.ownerReferences ?? []).length === 0);
    return unowned.map(({ metadata: { namespace, name } }) => {
      const removal = cluster.kubectl(
        `label ${kind.toLowerCase()} ${name} --namespace ${namespace} ${SERVICE_LABEL}- ${TYPE_LABEL}-`,
      );
      return warning(
        `The ${kind} ${namespace}/${name} has the labels of a pipe, but only Deployments and StatefulSets are resized.`,
        `Run the pipe as a Deployment or a StatefulSet, or remove the labels: ${removal}`,
      );
    });
  } catch (cause) {
    // The other kinds may be readable.
    if (isCode(cause, 403)) return [notChecked(cause)];
    throw cause;
  }
}
