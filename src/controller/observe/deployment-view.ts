import { parseQuantity, sizeOfQuantities } from "../../domain/quantity.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import { memoized } from "../../kube/memoized.ts";
import {
  type Container,
  type Deployment,
  type Identity,
  identityOf,
  type KubeObject,
} from "../../kube/objects.ts";
import { parseTime } from "../../kube/time.ts";
import { CONTAINER_ANNOTATION, REVISION_ANNOTATION, SERVICE_LABEL } from "../names.ts";
import {
  isGuaranteedByOwner,
  otherManagersOf,
  ownLastRollout,
  pausedByControllerAtMs,
  resizedAtMs,
} from "./field-owners.ts";
import { appliedSize, type LastRollout, type WrittenRollout } from "./last-rollout.ts";
import { effectiveRequests, isGuaranteed, isSize, type Resources, resourcesOf } from "./resources.ts";
import { type RolloutProgress, rolloutProgressOf } from "./rollout-progress.ts";
import { stopsOldPodsFirst } from "./strategy.ts";

/** The fields of a Deployment that decisions need; the cache keeps only these. */
export interface DeploymentView extends KubeObject {
  readonly metadata: Identity;
  readonly serviceId: string;
  readonly createdAtMs: number;
  readonly isBeingDeleted: boolean;
  /** Name of the container to resize, or the reason why it cannot be determined. */
  readonly container: { readonly name: string } | { readonly problem: string };
  /** The size of that container, if its requests and its memory limit are consistent. */
  readonly size: Size | undefined;
  /** The resources of that container if they are not a valid size, so that a rollback can restore them. */
  readonly otherResources?: Resources | undefined;
  /** True if the owner made the container Guaranteed. The CPU limit then follows the size, to keep the QoS class. */
  readonly cpuLimitFollows: boolean;
  /** A CPU limit that does not follow the size, in millicores. */
  readonly cpuLimitMillicores?: number | undefined;
  /** Field managers other than ours that own a field of the size. */
  readonly otherManagers: readonly string[];
  readonly replicas: number;
  readonly isPaused: boolean;
  /** Paused by the controller, to commit a resize in place. */
  readonly isPausedByUs: boolean;
  /** During such a pause: when the controller last wrote to the Deployment, in milliseconds since 1970. */
  readonly pausedByUsAtMs: number | undefined;
  /** A rollout stops old pods before their replacements run. */
  readonly stopsOldPodsFirst: boolean;
  /** Revision of the pod template; 0 until Kubernetes sets it. */
  readonly revision: number;
  readonly rollout: RolloutProgress;
  /** Absent unless the controller itself wrote it to exactly this Deployment. */
  readonly lastRollout: LastRollout | undefined;
  /**
   * Only without a last rollout, and only if the Deployment shows that the controller resized the pipe before: when
   * that was, in milliseconds since 1970.
   */
  readonly resizedAtMs?: number | undefined;
}

/** @param written the last rollout that the controller just wrote, if this is the response */
export function toDeploymentView(deployment: Deployment, written?: WrittenRollout): DeploymentView {
  const { metadata, spec } = deployment;
  const annotations = metadata.annotations ?? {};
  const container = chooseContainer(spec.template.spec.containers, annotations[CONTAINER_ANNOTATION]);
  const lastRollout = ownLastRollout(metadata, written);
  const sized = containerView(container, metadata);
  const pausedByUsAtMs = spec.paused ? pausedByControllerAtMs(metadata) : undefined;
  // Objects with the same properties in the same order take the least memory, so none is left out.
  return {
    metadata: identityOf(metadata),
    serviceId: shared(metadata.labels?.[SERVICE_LABEL] ?? ""),
    createdAtMs: parseTime(metadata.creationTimestamp),
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    container: sized.container,
    size: sized.size,
    otherResources: sized.otherResources,
    cpuLimitFollows: sized.cpuLimitFollows,
    cpuLimitMillicores: sized.cpuLimitMillicores,
    otherManagers: sized.otherManagers,
    replicas: spec.replicas ?? 1,
    isPaused: spec.paused ?? false,
    isPausedByUs: pausedByUsAtMs !== undefined,
    pausedByUsAtMs,
    stopsOldPodsFirst: stopsOldPodsFirst(spec),
    revision: Number.parseInt(annotations[REVISION_ANNOTATION] ?? "", 10) || 0,
    rollout: rolloutProgressOf(deployment, lastRollout),
    lastRollout,
    resizedAtMs: lastRollout
      ? undefined
      : resizedAtMs("problem" in container ? undefined : container.name, metadata),
  };
}

type ContainerView = Pick<
  DeploymentView,
  "container" | "size" | "otherResources" | "cpuLimitFollows" | "cpuLimitMillicores" | "otherManagers"
>;

function containerView(
  container: Container | { readonly problem: string },
  { managedFields }: Deployment["metadata"],
): ContainerView {
  if ("problem" in container)
    return { container, size: undefined, cpuLimitFollows: false, otherManagers: [] };
  const size = sizeOf(container);
  const cpuLimit = parseQuantity(container.resources?.limits?.["cpu"] ?? "");
  const cpuLimitFollows =
    cpuLimit !== undefined && isGuaranteed(container) && isGuaranteedByOwner(container.name, managedFields);
  return {
    container: named(container.name),
    size,
    otherResources: size ? undefined : resourcesOf(container),
    cpuLimitFollows,
    cpuLimitMillicores: cpuLimit === undefined || cpuLimitFollows ? undefined : Number(cpuLimit / 1_000_000n),
    otherManagers: otherManagersOf(container.name, managedFields),
  };
}

function chooseContainer(
  containers: readonly Container[],
  named: string | undefined,
): Container | { readonly problem: string } {
  const names = containers.map((each) => each.name).join(", ");
  if (named !== undefined) {
    const container = containers.find((each) => each.name === named);
    return (
      container ?? {
        problem: `the annotation ${CONTAINER_ANNOTATION} names "${named}"; its containers are ${names}`,
      }
    );
  }
  const [only, ...others] = containers;
  if (only && others.length === 0) return only;
  return {
    problem: `it has the containers ${names}: set the annotation ${CONTAINER_ANNOTATION} to the container to resize`,
  };
}

/** Returns the size of a container, if its requests and memory limit are consistent. */
export function sizeOf(container: Container): Size | undefined {
  const { cpu, memory } = effectiveRequests(container);
  return sizeOfResources(cpu, memory, container.resources?.limits?.["memory"]);
}

// The pipes of a service usually come one after the other.
const shared = memoized((serviceId: string) => serviceId);

// Thousands of pipes share the same few sizes and names.
const sizeOfResources = memoized((cpu?: string, memory?: string, memoryLimit?: string) => {
  const limit = sizeOfQuantities(cpu, memoryLimit);
  const request = sizeOfQuantities(cpu, memory);
  return limit?.memoryGib === request?.memoryGib ? request : undefined;
});
const named = memoized((name: string) => ({ name }));

/** Returns true if a resize or a rollback of the controller is in progress. */
export function isRollingOut({
  size,
  otherResources,
  lastRollout,
  rollout,
  isPaused,
  replicas,
}: DeploymentView): boolean {
  if (!lastRollout || lastRollout.generation === 0 || rollout.isComplete || isPaused || replicas === 0)
    return false;
  const applied = appliedSize(lastRollout);
  return isSize(applied) ? sameSize(size, applied) : otherResources !== undefined;
}

/**
 * True if a rollout of the controller may be on its way. If another writer removed the last rollout, any rollout of a
 * pipe that the controller resized counts.
 */
export function mayBeRollingOut(pipe: DeploymentView): boolean {
  const { lastRollout, resizedAtMs, rollout, isPaused, replicas } = pipe;
  if (lastRollout || resizedAtMs === undefined) return isRollingOut(pipe);
  return !rollout.isComplete && !isPaused && replicas > 0;
}

/** Returns true if another writer changed the pod template since the controller's last rollout. */
export function isChangedByOwner({ revision, lastRollout }: DeploymentView): boolean {
  return lastRollout !== undefined && revision > lastRollout.revision;
}
