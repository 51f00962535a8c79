import { NEVER_READY_LABEL } from "@pipe-scaling/local-cluster/stages";
import { DATABASE_TYPE, TYPE_LABEL } from "../../../src/controller/names.ts";
import type { Kinds } from "./history.ts";
import { sizeOf } from "./sized-object.ts";

type Pod = Kinds["Pod"];

/** True if the kubelet reports that the container runs with the size of its spec. */
export function isResized({ metadata, spec, status = {} }: Pod, container: string | undefined): boolean {
  const wanted = sizeOf(spec.containers.find(({ name }) => name === container)?.resources);
  const own = status.containerStatuses?.find(({ name }) => name === container);
  const isPending = status.conditions?.some(({ type }) => type.startsWith("PodResize")) ?? false;
  const { limits = {} } = own?.resources ?? {};
  return (
    (status.observedGeneration ?? 0) >= (metadata.generation ?? 0) &&
    !isPending &&
    sizeOf(own?.resources) === wanted &&
    sizeOf({ requests: own?.allocatedResources ?? {}, limits }) === wanted
  );
}

export function isReady({ status = {} }: Pod): boolean {
  return status.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
}

/** False for a pod that has lost the label with which the controller watches it. */
export function isWatched({ metadata }: Pod): boolean {
  return metadata.labels?.[TYPE_LABEL] === DATABASE_TYPE;
}

/** The size that the container runs with. */
export function runningSize({ status }: Pod, container: string | undefined): string {
  return sizeOf(status?.containerStatuses?.find(({ name }) => name === container)?.resources);
}

/** The size of a pod: that in its spec, or the one that the container still runs with. */
export function sizeInUse(pod: Pod, container: string | undefined): string | undefined {
  const wanted = pod.spec.containers.find(({ name }) => name === container);
  const reported = pod.status?.containerStatuses?.find(({ name }) => name === container)?.resources;
  const size = wanted && sizeOf(wanted.resources);
  if (reported?.requests === undefined || sizeOf(reported) === size) return size;
  return `${size}, and runs with ${sizeOf(reported)}`;
}

/** False for a pod that ends or has ended. */
export function isActive({ metadata, status = {} }: Pod): boolean {
  const hasEnded = status.phase === "Succeeded" || status.phase === "Failed";
  return metadata.deletionTimestamp === undefined && !hasEnded;
}

/** True if a container was replaced or restarted, unless a test caused that. */
export function hasRestarted(before: Pod, { metadata, status }: Pod): boolean {
  if (metadata.labels?.[NEVER_READY_LABEL] !== undefined) return false;
  const known = new Map(before.status?.containerStatuses?.map((each) => [each.name, each]));
  return (status?.containerStatuses ?? []).some(({ name, containerID, restartCount, lastState }) => {
    const was = known.get(name);
    if (lastState?.terminated?.reason === "OOMKilled") return false;
    return was !== undefined && (was.containerID !== containerID || was.restartCount !== restartCount);
  });
}

/** True if a ReplicaSet has pods, or should have some. */
export function hasPods({ spec, status }: Kinds["ReplicaSet"]): boolean {
  return (spec.replicas ?? 1) > 0 || (status?.replicas ?? 0) > 0;
}
