import type { Resources } from "../observe/resources.ts";
import { type ContainerView, hasResources, type PodView } from "./pod-view.ts";

/** The state of a pod relative to the target resources of its pipe container. */
export type PodState =
  /** Its spec does not have them. */
  | "unchanged"
  /** The kubelet has not finished, or not seen the change yet. */
  | "resizing"
  /** No room on the node at present. */
  | "deferred"
  /** Never possible on this node. */
  | "infeasible"
  /** The kubelet tries again, for example until memory usage falls. */
  | "error"
  | "done";

export function podState(pod: PodView, container: string, target: Resources): PodState {
  const own = containerOf(pod, container);
  if (!own || !hasResources(own.resources, target)) return "unchanged";
  const { resize } = pod;
  if (resize?.type === "PodResizePending") return resize.reason === "Infeasible" ? "infeasible" : "deferred";
  if (resize) return resize.reason === "Error" ? "error" : "resizing";
  // A pod that was created with them needs no resize. Its start is the concern of its Deployment.
  if (pod.metadata.generation <= 1) return "done";
  return isApplied(pod, own, target) ? "done" : "resizing";
}

/** After a restart of the kubelet, only the applied values show that it has not missed the resize. */
function isApplied(
  { metadata, observedGeneration }: PodView,
  { allocated, actual }: ContainerView,
  target: Resources,
) {
  const isAllocated = hasResources({ requests: allocated ?? {}, limits: actual?.limits ?? {} }, target);
  return observedGeneration >= metadata.generation && isAllocated && hasResources(actual, target);
}

export function containerOf({ containers }: PodView, name: string): ContainerView | undefined {
  return containers.find((each) => each.name === name);
}
