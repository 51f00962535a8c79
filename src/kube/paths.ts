import type { HorizontalPodAutoscaler, VerticalPodAutoscaler } from "./autoscalers.ts";
import type { ConfigMap, Node, Secret } from "./objects.ts";
import type { Pod } from "./pods.ts";
import type { Message } from "./protobuf/message.ts";
import { configMap, deployment, horizontalPodAutoscaler, node, pod, secret } from "./protobuf/messages.ts";
import type { Deployment, ReplicaSet, StatefulSet } from "./workloads.ts";

/** A kind of object, as named in the paths of the API server. */
export interface Resource<Raw = unknown> {
  /** `v1` for the core group, else `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  /** The parts of an object that are read, in protobuf; absent for kinds that are read as JSON. */
  readonly message?: Message<Raw>;
}

export const CONFIG_MAPS: Resource<ConfigMap> = {
  apiVersion: "v1",
  plural: "configmaps",
  message: configMap,
};
export const SECRETS: Resource<Secret> = { apiVersion: "v1", plural: "secrets", message: secret };
export const DEPLOYMENTS: Resource<Deployment> = {
  apiVersion: "apps/v1",
  plural: "deployments",
  message: deployment,
};
/** Read as JSON, because the whole pod template is compared. */
export const STATEFUL_SETS: Resource<StatefulSet> = { apiVersion: "apps/v1", plural: "statefulsets" };
export const NODES: Resource<Node> = { apiVersion: "v1", plural: "nodes", message: node };
export const PODS: Resource<Pod> = { apiVersion: "v1", plural: "pods", message: pod };
/** Read as JSON, because the whole pod template is compared. */
export const REPLICA_SETS: Resource<ReplicaSet> = { apiVersion: "apps/v1", plural: "replicasets" };
export const HORIZONTAL_AUTOSCALERS: Resource<HorizontalPodAutoscaler> = {
  apiVersion: "autoscaling/v2",
  plural: "horizontalpodautoscalers",
  message: horizontalPodAutoscaler,
};
export const VERTICAL_AUTOSCALERS: Resource<VerticalPodAutoscaler> = {
  apiVersion: "autoscaling.k8s.io/v1",
  plural: "verticalpodautoscalers",
};
export const EVENTS: Resource = { apiVersion: "events.k8s.io/v1", plural: "events" };
export const LEASES: Resource = { apiVersion: "coordination.k8s.io/v1", plural: "leases" };

/** Returns the path of a collection, in all namespaces if none is given. */
export function collectionPath(resource: Resource, namespace: string | undefined): string {
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${groupPath(resource)}${scope}/${resource.plural}`;
}

/** Returns the path of the API group and version of a kind, such as `/apis/apps/v1`; a GET lists the kinds there. */
export function groupPath({ apiVersion }: Resource): string {
  return apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}

export function objectPath(resource: Resource, namespace: string, name: string): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}
