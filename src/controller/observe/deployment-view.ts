import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import { parseQuantity, sizeOfQuantities } from "../../domain/quantity.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import { managersOf } from "../../kube/managers.ts";
import {
  type Container,
  type Deployment,
  type DeploymentCondition,
  type Identity,
  identityOf,
  type KubeObject,
} from "../../kube/objects.ts";
import {
  CONTAINER_ANNOTATION,
  LAST_ROLLOUT_ANNOTATION,
  REVISION_ANNOTATION,
  SERVICE_LABEL,
} from "../names.ts";
import { appliedSize, type LastRollout, parseLastRollout } from "./last-rollout.ts";
import { effectiveRequests, isGuaranteed, isSize, type Resources, resourcesOf } from "./resources.ts";
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
  readonly cpuLimitMillicores?: number;
  /** Field managers other than ours that own a field of the size. */
  readonly otherManagers: readonly string[];
  readonly replicas: number;
  readonly isPaused: boolean;
  /** A rollout stops old pods before their replacements run. */
  readonly stopsOldPodsFirst: boolean;
  /** Revision of the pod template; 0 until Kubernetes sets it. */
  readonly revision: number;
  readonly rollout: RolloutProgress;
  /** Absent unless the controller itself wrote it to exactly this Deployment. */
  readonly lastRollout: LastRollout | undefined;
}

/** Progress of the rollout of the current template, as the Deployment controller reports it. */
export interface RolloutProgress {
  readonly isComplete: boolean;
  /** The status is of the newest generation. */
  readonly isSeen: boolean;
  /** A current status reports no pods of any template. */
  readonly isWithoutPods: boolean;
  readonly terminatingReplicas: number;
  /** `lastUpdateTime` of the condition Progressing, in seconds since 1970; 0 for none. */
  readonly progressedAtS: number;
  /** Only set while the rollout is not complete, to save memory. */
  readonly progressing: DeploymentCondition | undefined;
  readonly replicaFailure: DeploymentCondition | undefined;
}

const SIZE_FIELDS = [
  ["f:requests", "f:cpu"],
  ["f:requests", "f:memory"],
  ["f:limits", "f:memory"],
];

const LAST_ROLLOUT_FIELD = ["f:metadata", "f:annotations", `f:${LAST_ROLLOUT_ANNOTATION}`];

export function toDeploymentView(deployment: Deployment): DeploymentView {
  const { metadata, spec, status } = deployment;
  const annotations = metadata.annotations ?? {};
  const container = chooseContainer(spec.template.spec.containers, annotations[CONTAINER_ANNOTATION]);
  const lastRollout = ownLastRollout(metadata);
  const conditionOf = (type: string) => status?.conditions?.find((each) => each.type === type);
  const progressing = conditionOf("Progressing");
  const progressedAtS = Math.floor(timeOf(progressing?.lastUpdateTime) / 1000);
  const isComplete = isRolloutComplete(deployment, progressedAtS, lastRollout);
  return {
    metadata: identityOf(metadata),
    serviceId: metadata.labels?.[SERVICE_LABEL] ?? "",
    createdAtMs: timeOf(metadata.creationTimestamp),
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    ...containerView(container, metadata),
    replicas: spec.replicas ?? 1,
    isPaused: spec.paused ?? false,
    stopsOldPodsFirst: stopsOldPodsFirst(spec),
    revision: Number.parseInt(annotations[REVISION_ANNOTATION] ?? "", 10) || 0,
    rollout: {
      isComplete,
      isSeen: isSeen(deployment),
      isWithoutPods: isSeen(deployment) && !status?.replicas && !status?.terminatingReplicas,
      terminatingReplicas: status?.terminatingReplicas ?? 0,
      progressedAtS,
      progressing: isComplete ? undefined : progressing,
      replicaFailure: isComplete ? undefined : conditionOf("ReplicaFailure"),
    },
    lastRollout,
  };
}

/**
 * Parses the annotation only while the controller is its field manager. `kubectl rollout undo`, a restored backup, and
 * a writer that replaces whole objects bring back an older annotation, and then become its manager.
 */
function ownLastRollout({
  uid,
  annotations,
  managedFields,
}: Deployment["metadata"]): LastRollout | undefined {
  const lastRollout = parseLastRollout(annotations?.[LAST_ROLLOUT_ANNOTATION], uid);
  if (!lastRollout) return undefined;
  const isOurs = managersOf(managedFields, [LAST_ROLLOUT_FIELD]).includes(CONTROLLER_FIELD_MANAGER);
  return isOurs ? lastRollout : undefined;
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
    container: { name: container.name },
    size,
    ...(size ? {} : { otherResources: resourcesOf(container) }),
    cpuLimitFollows,
    ...(cpuLimit === undefined || cpuLimitFollows
      ? {}
      : { cpuLimitMillicores: Number(cpuLimit / 1_000_000n) }),
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

type AllManagedFields = Deployment["metadata"]["managedFields"];

function resourcesField(container: string, field: readonly string[]): string[] {
  const item = `k:${JSON.stringify({ name: container })}`;
  return ["f:spec", "f:template", "f:spec", "f:containers", item, "f:resources", ...field];
}

function otherManagersOf(container: string, managedFields: AllManagedFields): string[] {
  const fields = SIZE_FIELDS.map((field) => resourcesField(container, field));
  return managersOf(managedFields, fields).filter((manager) => manager !== CONTROLLER_FIELD_MANAGER);
}

/**
 * A container is also Guaranteed if our size happens to equal the owner's CPU limit. Then we manage the request but not
 * the limit, and the limit must not change.
 */
function isGuaranteedByOwner(container: string, managedFields: AllManagedFields): boolean {
  const isOurs = (field: readonly string[]) =>
    managersOf(managedFields, [resourcesField(container, field)]).includes(CONTROLLER_FIELD_MANAGER);
  return isOurs(["f:limits", "f:cpu"]) || !isOurs(["f:requests", "f:cpu"]);
}

/** Returns the size of a container, if its requests and memory limit are consistent. */
export function sizeOf(container: Container): Size | undefined {
  const requests = effectiveRequests(container);
  const limit = sizeOfQuantities(requests["cpu"], container.resources?.limits?.["memory"]);
  const request = sizeOfQuantities(requests["cpu"], requests["memory"]);
  return limit?.memoryGib === request?.memoryGib ? request : undefined;
}

/**
 * Returns true if the rollout of the current template completed. The reason NewReplicaSetAvailable remains even if a
 * pod fails later. But a Recreate Deployment keeps the condition of the previous rollout for a while, and a Deployment
 * without replicas gets it without running a pod; for these, only the replica counts are reliable.
 */
function isRolloutComplete(
  deployment: Deployment,
  progressedAtS: number,
  lastRollout: LastRollout | undefined,
): boolean {
  const { spec, status } = deployment;
  const wanted = spec.replicas ?? 1;
  const replicas = status?.replicas ?? 0;
  if (!isSeen(deployment) || replicas !== (status?.updatedReplicas ?? 0) || replicas < wanted) return false;
  const isAnnounced = status?.conditions?.some(
    ({ type, reason }) => type === "Progressing" && reason === "NewReplicaSetAvailable",
  );
  // Times are compared only for equality, because clocks differ.
  const isOfBefore = lastRollout?.progressedAtS === progressedAtS || lastRollout?.replicas === 0;
  return (isAnnounced === true && !isOfBefore) || (status?.availableReplicas ?? 0) >= wanted;
}

/** Returns true if the status is of the newest generation of the Deployment. */
function isSeen({ metadata, status }: Deployment): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
}

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

/** Returns true if another writer changed the pod template since the controller's last rollout. */
export function isChangedByOwner({ revision, lastRollout }: DeploymentView): boolean {
  return lastRollout !== undefined && revision > lastRollout.revision;
}

function timeOf(time: string | undefined): number {
  return Date.parse(time ?? "") || 0;
}
