import { SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import { isCode, unlessCode } from "../../kube/errors.ts";
import type { KubeObject, ObjectMeta } from "../../kube/objects.ts";
import { objectPath, PODS, REPLICA_SETS, type Resource } from "../../kube/paths.ts";
import { type Cluster, OF_PIPES } from "./cluster.ts";
import { notChecked, type Result, warning } from "./result.ts";

const JOBS: Resource = { apiVersion: "batch/v1", plural: "jobs" };

const KINDS: readonly (readonly [kind: string, Resource])[] = [
  ["DaemonSet", { apiVersion: "apps/v1", plural: "daemonsets" }],
  ["ReplicaSet", REPLICA_SETS],
  ["Job", JOBS],
  ["CronJob", { apiVersion: "batch/v1", plural: "cronjobs" }],
  ["Pod", PODS],
];

/**
 * Owners of pods that are not reported here: pipes, the ReplicaSets of Deployments, and those that other checks report.
 * A ReplicaSet that a Deployment or a Rollout creates has the labels of its pods.
 */
const KNOWN_OWNERS: readonly string[] = ["Deployment", "StatefulSet", "ReplicaSet", "Rollout"];

interface Listed {
  readonly kind: string;
  readonly objects: readonly KubeObject[];
  readonly problems: readonly Result[];
}

type Owner = NonNullable<ObjectMeta["ownerReferences"]>[number] & { readonly namespace: string };

/** Finds workloads of other kinds with the labels of pipes, or with pods that have them, because they are not resized. */
export async function checkWorkloads(cluster: Cluster): Promise<Result[]> {
  const listed = await Promise.all(KINDS.map((each) => listLabeled(cluster, ...each)));
  return [
    ...listed.flatMap((each) => reportLabeled(cluster, each)),
    ...(await reportOwners(cluster, listed)),
  ];
}

async function listLabeled(cluster: Cluster, kind: string, resource: Resource): Promise<Listed> {
  try {
    const objects = await cluster.list({ resource, query: OF_PIPES });
    return { kind, objects, problems: [] };
  } catch (cause) {
    // The other kinds may be readable.
    if (isCode(cause, 403)) return { kind, objects: [], problems: [notChecked(cause)] };
    throw cause;
  }
}

function reportLabeled(cluster: Cluster, { kind, objects, problems }: Listed): Result[] {
  // A workload that a Deployment or another owner creates has the labels of the template of its owner.
  const results = objects.filter(isUnowned).map(({ metadata: { namespace, name } }) => {
    const removal = cluster.kubectl(
      `label ${kind.toLowerCase()} ${name} --namespace ${namespace} ${SERVICE_LABEL}- ${TYPE_LABEL}-`,
    );
    const inTemplate = kind === "Pod" ? "" : ", also those in the pod template";
    return warning(
      `The ${kind} ${namespace}/${name} has the labels of a pipe, but only Deployments and StatefulSets are resized.`,
      `Run the pipe as a Deployment or a StatefulSet, or remove the labels${inTemplate}: ${removal}`,
    );
  });
  return [...problems, ...results];
}

/** Some charts set labels of pods only, and any kind of object can create pods. */
async function reportOwners(cluster: Cluster, listed: readonly Listed[]): Promise<Result[]> {
  const objects = listed.flatMap((each) => each.objects);
  const labeled = new Map(objects.map((each) => [each.metadata.uid, each]));
  const reported = new Set(objects.filter(isUnowned).map(({ metadata }) => metadata.uid));
  const pods = listed.find(({ kind }) => kind === "Pod")?.objects ?? [];
  const direct = distinct(pods.flatMap(({ metadata }) => ownerOf(metadata) ?? []));
  const owners = distinct(await Promise.all(direct.map((each) => ownerOfOwner(cluster, labeled, each))));
  return owners
    .filter(({ kind, uid }) => !KNOWN_OWNERS.includes(kind) && !reported.has(uid))
    .map((owner) => ofLabeledPods(owner.kind, owner));
}

/** The result for a workload that has the labels of pipes only in its pod template. */
export function ofLabeledPods(
  kind: string,
  { namespace, name }: Pick<ObjectMeta, "namespace" | "name">,
): Result {
  return warning(
    `Pods of the ${kind} ${namespace}/${name} have the labels of a pipe, but only Deployments and StatefulSets are resized.`,
    "Run the pipe as a Deployment or a StatefulSet, or remove the labels from the pod template.",
  );
}

/** Returns the CronJob of a Job, for example. One step, because users can make a circle of owners. */
async function ownerOfOwner(
  cluster: Cluster,
  labeled: ReadonlyMap<string, KubeObject>,
  owner: Owner,
): Promise<Owner> {
  const path = objectPath(JOBS, owner.namespace, owner.name);
  // A Job can have other labels than its pods. Without the permission to read it, it is reported itself.
  const read = () => unlessCode(403, cluster.get<KubeObject>(path), undefined);
  const object = labeled.get(owner.uid) ?? (owner.kind === "Job" ? await read() : undefined);
  return (object && ownerOf(object.metadata)) ?? owner;
}

function isUnowned({ metadata }: KubeObject): boolean {
  return ownerOf(metadata) === undefined;
}

function ownerOf({ namespace = "", ownerReferences = [] }: ObjectMeta): Owner | undefined {
  const [first] = ownerReferences;
  return first && { ...first, namespace };
}

function distinct(owners: readonly Owner[]): Owner[] {
  return [...new Map(owners.map((each) => [each.uid, each])).values()];
}
