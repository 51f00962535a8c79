import type { Pod } from "../../../src/kube/objects.ts";

/** Returns true if a ReplicaSet counts the pod. */
export function isActive({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase !== "Failed";
}

export function isRunning({ status }: Pod): boolean {
  return status?.containerStatuses?.[0]?.state?.running !== undefined;
}

/** Returns the container statuses of a pod that runs with the resources in its spec. */
export function runningWith(
  { spec, status }: Pod,
  restartCount = status?.containerStatuses?.[0]?.restartCount ?? 0,
) {
  const containerStatuses = spec.containers.map(({ name, resources = {} }) => ({
    ...{ name, state: { running: {} }, restartCount, containerID: `${restartCount}` },
    ...{ resources, allocatedResources: resources.requests ?? {} },
  }));
  return { containerStatuses };
}
