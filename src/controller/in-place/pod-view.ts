import { parseQuantity } from "../../domain/quantity.ts";
import {
  type Container,
  type ContainerStatus,
  type Identity,
  identityOf,
  type KubeObject,
  type Pod,
} from "../../kube/objects.ts";
import type { Resources } from "../observe/resources.ts";

/** The fields of a pod that in-place resizes need. */
export interface PodView extends KubeObject {
  readonly metadata: Identity;
  /** False once it is being deleted or its containers have ended, for example because it was evicted. */
  readonly isActive: boolean;
  /** UID of its ReplicaSet. */
  readonly replicaSetUid: string | undefined;
  readonly observedGeneration: number;
  readonly resize: ResizeCondition | undefined;
  /** The containers, with their statuses. */
  readonly containers: readonly ContainerView[];
}

/** The condition that the kubelet reports for a resize that is not done. */
export interface ResizeCondition {
  readonly type: "PodResizePending" | "PodResizeInProgress";
  readonly reason: string;
  readonly message: string;
}

export interface ContainerView {
  readonly name: string;
  readonly resources: Container["resources"];
  /** Resources whose change restarts the container. */
  readonly restartsFor: readonly string[];
  readonly isRunning: boolean;
  readonly restartCount: number;
  readonly containerId: string | undefined;
  readonly allocated: ContainerStatus["allocatedResources"];
  /** The resources with which the container runs; absent if the node cannot resize pods. */
  readonly actual: ContainerStatus["resources"];
}

const ENDED: readonly (string | undefined)[] = ["Failed", "Succeeded"];

export function toPodView({ metadata, spec, status }: Pod): PodView {
  const resize = status?.conditions?.find(
    ({ type, status: is }) =>
      is === "True" && (type === "PodResizePending" || type === "PodResizeInProgress"),
  );
  return {
    metadata: identityOf(metadata),
    isActive: metadata.deletionTimestamp === undefined && !ENDED.includes(status?.phase),
    replicaSetUid: metadata.ownerReferences?.find(({ kind }) => kind === "ReplicaSet")?.uid,
    observedGeneration: status?.observedGeneration ?? 0,
    resize: resize && {
      type: resize.type === "PodResizePending" ? "PodResizePending" : "PodResizeInProgress",
      reason: resize.reason ?? "",
      message: resize.message ?? "",
    },
    containers: spec.containers.map(({ name, resources, resizePolicy }) => {
      const own = status?.containerStatuses?.find((each) => each.name === name);
      return {
        name,
        resources,
        restartsFor: (resizePolicy ?? [])
          .filter(({ restartPolicy }) => restartPolicy === "RestartContainer")
          .map(({ resourceName }) => resourceName),
        isRunning: own?.state?.running !== undefined,
        restartCount: own?.restartCount ?? 0,
        containerId: own?.containerID,
        allocated: own?.allocatedResources,
        actual: own?.resources,
      };
    }),
  };
}

/** Returns true if a container has these requests and limits. */
export function hasResources(resources: Container["resources"], target: Resources): boolean {
  const { requests, limits } = target;
  return (
    isEqual(resources?.requests?.["cpu"], requests.cpu) &&
    isEqual(resources?.requests?.["memory"], requests.memory) &&
    isEqual(resources?.limits?.["memory"], limits.memory) &&
    (limits.cpu === undefined || isEqual(resources?.limits?.["cpu"], limits.cpu))
  );
}

function isEqual(quantity: string | undefined, other: string | null): boolean {
  if (quantity === undefined || other === null) return (quantity ?? null) === other;
  return parseQuantity(quantity) === parseQuantity(other);
}
