import { type Size, sameSize } from "../../domain/size.ts";
import { type Identity, identityOf, type KubeObject, type Pod } from "../../kube/objects.ts";
import { type DeploymentView, sizeOf } from "./deployment-view.ts";

/** What is read of a pod that has no node yet. */
export interface PendingPodView extends KubeObject {
  readonly metadata: Identity;
  /** Name of the Deployment that it is of; `undefined` if it is of none. */
  readonly pipeName: string | undefined;
  /** The sizes of its containers, by their names. */
  readonly sizes: ReadonlyMap<string, Size | undefined>;
  /** The scheduler's words on why no node will do, if none does. */
  readonly unschedulable: string | undefined;
}

const HASH_LABEL = "pod-template-hash";

export function toPendingPodView({ metadata, spec, status }: Pod): PendingPodView {
  const scheduled = status?.conditions?.find((each) => each.type === "PodScheduled");
  const isUnschedulable = scheduled?.status === "False" && scheduled.reason === "Unschedulable";
  return {
    metadata: identityOf(metadata),
    pipeName: metadata.deletionTimestamp === undefined ? deploymentOf(metadata) : undefined,
    sizes: new Map(spec.containers.map((container) => [container.name, sizeOf(container)])),
    unschedulable: isUnschedulable ? (scheduled.message ?? "") : undefined,
  };
}

/** A Deployment's ReplicaSets are named after it and the hash of their template, which their pods have as a label. */
function deploymentOf({ ownerReferences, labels }: Pod["metadata"]): string | undefined {
  const replicaSet = ownerReferences?.find(({ kind }) => kind === "ReplicaSet")?.name ?? "";
  const suffix = `-${labels?.[HASH_LABEL] ?? ""}`;
  return replicaSet.endsWith(suffix) ? replicaSet.slice(0, -suffix.length) : undefined;
}

/** Why no node will do for a pod of the pipe that has the size which the pipe's template has now. */
export function unschedulableReason(
  pipe: DeploymentView,
  pods: readonly PendingPodView[],
): string | undefined {
  const { container, size } = pipe;
  if ("problem" in container || size === undefined) return undefined;
  const isOfNow = (pod: PendingPodView) => sameSize(pod.sizes.get(container.name), size);
  return pods.find((pod) => pod.unschedulable !== undefined && isOfNow(pod))?.unschedulable;
}
