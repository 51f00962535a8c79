import { type Size, sameSize } from "../../domain/size.ts";
import { type Identity, identityOf, type KubeObject, type Pod } from "../../kube/objects.ts";
import { type DeploymentView, sizeOf } from "./deployment-view.ts";

/** The fields of a pod without a node that decisions need. */
export interface PendingPodView extends KubeObject {
  readonly metadata: Identity;
  /** Name of the Deployment of the pod; `undefined` if it has none. */
  readonly pipeName: string | undefined;
  /** The sizes of its containers, by name. */
  readonly sizes: ReadonlyMap<string, Size | undefined>;
  /** The message of the scheduler if the pod is unschedulable. */
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

/** The name of a ReplicaSet is the name of its Deployment and the template hash, which is also a label of its pods. */
function deploymentOf({ ownerReferences, labels }: Pod["metadata"]): string | undefined {
  const replicaSet = ownerReferences?.find(({ kind }) => kind === "ReplicaSet")?.name ?? "";
  const suffix = `-${labels?.[HASH_LABEL] ?? ""}`;
  return replicaSet.endsWith(suffix) ? replicaSet.slice(0, -suffix.length) : undefined;
}

/** Returns the reason why a pod with the current size of the pipe's template is unschedulable. */
export function unschedulableReason(
  pipe: DeploymentView,
  pods: readonly PendingPodView[],
): string | undefined {
  const { container, size } = pipe;
  if ("problem" in container || size === undefined) return undefined;
  const isOfNow = (pod: PendingPodView) => sameSize(pod.sizes.get(container.name), size);
  return pods.find((pod) => pod.unschedulable !== undefined && isOfNow(pod))?.unschedulable;
}
