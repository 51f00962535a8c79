import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import { sizeOfQuantities } from "../../domain/quantity.ts";
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
  ATTEMPT_ANNOTATION,
  COMPLETED_SIZE_ANNOTATION,
  CONTAINER_ANNOTATION,
  GIVEN_SIZE_ANNOTATION,
  SERVICE_LABEL,
} from "../names.ts";
import { type LastRollout, parseLastRollout } from "./last-rollout.ts";
import { type Allotment, parseAllotment, type Resources, resourcesOf } from "./resources.ts";

/** What is read of a pipe's Deployment, and all that is kept of it in memory. */
export interface DeploymentView extends KubeObject {
  readonly metadata: Identity;
  readonly serviceId: string;
  readonly createdAtMs: number;
  readonly isBeingDeleted: boolean;
  /** Name of the container to size, or why none can be told. */
  readonly container: { readonly name: string } | { readonly problem: string };
  /** The size of that container, if its requests and its memory limit agree on one. */
  readonly size: Size | undefined;
  /** What that container has where that is no size: it can still be put back to it. */
  readonly oddResources?: Resources | undefined;
  /** Field managers other than ours that own one of the fields that make the size. */
  readonly otherWriters: readonly string[];
  readonly replicas: number;
  readonly isPaused: boolean;
  /** Strategy Recreate: a rollout stops the old pods before it starts new ones. */
  readonly isRecreated: boolean;
  readonly rollout: Rollout;
  /** What it was given last: the desired size, or what it was put back to. */
  readonly given: Allotment | undefined;
  /** The last that it was seen to run when it was given another. */
  readonly completed: Allotment | undefined;
  readonly attempt: LastRollout | undefined;
}

/** How far the Deployment controller is with the template as it stands. */
interface Rollout {
  readonly isComplete: boolean;
  /** The status is of the newest generation. */
  readonly isSeen: boolean;
  /** No pod is there, of whatever template, by a status that is of the template as it stands. */
  readonly isWithoutPods: boolean;
  readonly terminatingReplicas: number;
  /** These two only while it is not complete: then nobody asks how it goes, and pipes are many. */
  readonly progressing: DeploymentCondition | undefined;
  readonly replicaFailure: DeploymentCondition | undefined;
}

const SIZE_FIELDS = [
  ["f:requests", "f:cpu"],
  ["f:requests", "f:memory"],
  ["f:limits", "f:memory"],
];

export function toDeploymentView(deployment: Deployment): DeploymentView {
  const { metadata, spec, status } = deployment;
  const annotations = metadata.annotations ?? {};
  const container = chooseContainer(spec.template.spec.containers, annotations[CONTAINER_ANNOTATION]);
  const attempt = parseLastRollout(annotations[ATTEMPT_ANNOTATION]);
  const isComplete = isRolloutComplete(deployment, attempt?.startedAtMs ?? 0);
  const conditions = isComplete ? [] : (status?.conditions ?? []);
  const holding = (type: string) => conditions.find((each) => each.type === type);
  return {
    metadata: identityOf(metadata),
    serviceId: metadata.labels?.[SERVICE_LABEL] ?? "",
    createdAtMs: Date.parse(metadata.creationTimestamp ?? ""),
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    container: "problem" in container ? container : { name: container.name },
    ...("problem" in container ? { size: undefined } : sizeIn(container)),
    otherWriters: "problem" in container ? [] : otherWritersOf(container.name, metadata.managedFields),
    replicas: spec.replicas ?? 1,
    isPaused: spec.paused ?? false,
    isRecreated: spec.strategy?.type === "Recreate",
    rollout: {
      isComplete,
      isSeen: isSeen(deployment),
      isWithoutPods: isSeen(deployment) && !status?.replicas && !status?.terminatingReplicas,
      terminatingReplicas: status?.terminatingReplicas ?? 0,
      progressing: holding("Progressing"),
      replicaFailure: holding("ReplicaFailure"),
    },
    given: parseAllotment(annotations[GIVEN_SIZE_ANNOTATION]),
    completed: parseAllotment(annotations[COMPLETED_SIZE_ANNOTATION]),
    attempt,
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
    problem: `it has the containers ${names}: set the annotation ${CONTAINER_ANNOTATION} to the one to size`,
  };
}

function otherWritersOf(container: string, managedFields: Deployment["metadata"]["managedFields"]): string[] {
  const item = `k:${JSON.stringify({ name: container })}`;
  const resources = ["f:spec", "f:template", "f:spec", "f:containers", item, "f:resources"];
  const ways = SIZE_FIELDS.map((way) => [...resources, ...way]);
  return managersOf(managedFields, ways).filter((manager) => manager !== CONTROLLER_FIELD_MANAGER);
}

function sizeIn(container: Container): Pick<DeploymentView, "size" | "oddResources"> {
  const size = sizeOf(container);
  return size ? { size } : { size, oddResources: resourcesOf(container) };
}

/** The size that a container's requests and memory limit make, if they agree on one. */
export function sizeOf(container: Container): Size | undefined {
  const requests = container.resources?.requests ?? {};
  const limit = sizeOfQuantities(requests["cpu"], container.resources?.limits?.["memory"]);
  const request = sizeOfQuantities(requests["cpu"], requests["memory"]);
  return limit?.memoryGib === request?.memoryGib ? request : undefined;
}

/**
 * Whether every replica runs the template as it stands. Once the Deployment controller has said
 * NewReplicaSetAvailable that holds, also when a pod dies later; but in a Recreate Deployment the word
 * survives from the rollout before, hence the counts and its time (kubernetes-facts.md).
 */
function isRolloutComplete(deployment: Deployment, begunAtMs: number): boolean {
  const { spec, status } = deployment;
  const wanted = spec.replicas ?? 1;
  const replicas = status?.replicas ?? 0;
  if (!isSeen(deployment) || replicas !== (status?.updatedReplicas ?? 0) || replicas < wanted) return false;
  const isAnnounced = status?.conditions?.some(
    ({ type, reason, lastUpdateTime = "" }) =>
      type === "Progressing" && reason === "NewReplicaSetAvailable" && Date.parse(lastUpdateTime) > begunAtMs,
  );
  return isAnnounced === true || (status?.availableReplicas ?? 0) >= wanted;
}

/** Whether the status is of the Deployment's newest generation. */
function isSeen({ metadata, status }: Deployment): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
}

/** Whether a size that we gave is on its way to the pipe's pods. */
export function isRollingOurs({ size, attempt, rollout, isPaused, replicas }: DeploymentView): boolean {
  const isOurs = size !== undefined && sameSize(size, attempt?.size);
  return isOurs && !rollout.isComplete && !isPaused && replicas > 0;
}

/** Whether somebody else has changed the Deployment's spec since its size was given. */
export function isChangedSince({ metadata }: DeploymentView, attempt: LastRollout): boolean {
  return metadata.generation > attempt.pipeGeneration;
}
