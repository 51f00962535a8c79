import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import { isUnmanaged, managersOf } from "../../kube/managers.ts";
import { shared } from "../../kube/memoized.ts";
import {
  type Identity,
  identityOf,
  isBeingDeleted,
  type KubeObject,
  type ManagedFields,
  type ObjectMeta,
} from "../../kube/objects.ts";
import type { Container, ContainerStatus, Pod } from "../../kube/pods.ts";
import { parseTime } from "../../kube/time.ts";
import { CONTAINER_ANNOTATION, REVISION_HASH_LABEL, TEMPLATE_HASH_LABEL } from "../names.ts";
import { pipeName } from "./workloads/kinds.ts";

/** The fields of a pod of a pipe that decisions need; the cache keeps only these. */
export interface PodView extends KubeObject {
  readonly metadata: Identity;
  /** Name of its workload as a pipe (nameOf); `undefined` if it belongs to neither a Deployment nor a StatefulSet. */
  readonly pipeName: string | undefined;
  /** Identifies the pod template: the label that the Deployment or StatefulSet controller sets; empty without one. */
  readonly templateHash: string;
  readonly createdAtMs: number;
  /** Empty until the pod is scheduled. */
  readonly nodeName: string;
  /** The pod is being deleted, and its containers may still run. */
  readonly isTerminating: boolean;
  readonly isReady: boolean;
  /** When it last became ready, or ceased to be, in milliseconds since 1970; until then, when it was created. */
  readonly readyChangedAtMs: number;
  /** False once it is being deleted or its containers have ended, for example because it was evicted. */
  readonly isActive: boolean;
  readonly observedGeneration: number;
  readonly resize: ResizeCondition | undefined;
  /** When the controller last changed the resources of the pod, in milliseconds since 1970. */
  readonly resizedAtMs: number | undefined;
  /** The message of the scheduler if the pod is unschedulable. */
  readonly unschedulable: string | undefined;
  /** The container to resize, by the annotation of the pod. */
  readonly namedContainer: string | undefined;
  /** The containers, with their statuses. Those that a webhook added are among them. */
  readonly containers: readonly ContainerView[];
}

/** The condition that the kubelet reports for a resize that is not done. */
export interface ResizeCondition {
  readonly type: "PodResizePending" | "PodResizeInProgress";
  readonly reason: string;
  readonly message: string;
  /** The resize is pending, and the kubelet has not finished an earlier one. */
  readonly isAfterAnother?: boolean;
}

export interface ContainerView {
  readonly name: string;
  readonly resources: Container["resources"];
  /** The field manager that last resized it, unless that was the controller. */
  readonly resizedBy: string | undefined;
  /** When another writer last resized it, unless the controller did so later; in milliseconds since 1970. */
  readonly otherResizedAtMs: number | undefined;
  /** No writer has resized it since its pod was created. False if nothing shows that. */
  readonly isAsCreated: boolean;
  /** Resources whose change restarts the container. */
  readonly restartsFor: readonly string[];
  readonly isRunning: boolean;
  readonly restartCount: number;
  readonly containerId: string | undefined;
  /** When its previous run ended, in milliseconds since 1970; 0 if it never restarted. */
  readonly restartedAtMs: number;
  /** The previous run ended because the container used more memory than its limit. */
  readonly isOomKilled: boolean;
  readonly allocated: ContainerStatus["allocatedResources"];
  /** The resources with which the container runs; absent if the kubelet does not report them. */
  readonly actual: ContainerStatus["resources"];
}

const ENDED: readonly (string | undefined)[] = ["Failed", "Succeeded"];

export function toPodView({ metadata, spec, status }: Pod): PodView {
  const { labels = {} } = metadata;
  const templateHash = shared(labels[TEMPLATE_HASH_LABEL] ?? labels[REVISION_HASH_LABEL] ?? "");
  const isTerminating = isBeingDeleted(metadata);
  const createdAtMs = parseTime(metadata.creationTimestamp);
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const resizes = resizesOf(metadata);
  return {
    metadata: identityOf(metadata),
    pipeName: pipeNameOf(metadata, templateHash),
    templateHash,
    createdAtMs,
    nodeName: shared(spec.nodeName ?? ""),
    isTerminating,
    isReady: ready?.status === "True",
    readyChangedAtMs: parseTime(ready?.lastTransitionTime) || createdAtMs,
    isActive: !isTerminating && !ENDED.includes(status?.phase),
    observedGeneration: status?.observedGeneration ?? 0,
    resize: resizeConditionOf(status),
    resizedAtMs: resizes.own && parseTime(resizes.own.time),
    unschedulable: unschedulableMessage(status),
    namedContainer: shared(metadata.annotations?.[CONTAINER_ANNOTATION]),
    containers: spec.containers.map((container) => toContainerView(container, resizes, status)),
  };
}

export function isOfStatefulSet({ pipeName: name }: PodView): boolean {
  return name?.startsWith(pipeName("StatefulSet", "")) ?? false;
}

/** The name of the container that the pod itself names to be resized, or of its only one; `undefined` otherwise. */
export function namedContainerOf({ containers, namedContainer }: PodView): string | undefined {
  const [only, second] = containers;
  return namedContainer ?? (second ? undefined : only?.name);
}

/** True if all containers of the pod run. */
export function isRunning({ containers }: PodView): boolean {
  return containers.every((each) => each.isRunning);
}

/** An evicted pod stays, and is no replica any more. One that is being deleted may still be counted as a replica. */
export function isReplica({ isActive, isTerminating }: PodView): boolean {
  return isActive || isTerminating;
}

function toContainerView(
  { name, resources, resizePolicy }: Pod["spec"]["containers"][number],
  resizes: Resizes,
  status: Pod["status"],
): ContainerView {
  const own = status?.containerStatuses?.find((each) => each.name === name);
  const { reason, finishedAt } = own?.lastState?.terminated ?? {};
  const restarting = (resizePolicy ?? []).filter(({ restartPolicy }) => restartPolicy === "RestartContainer");
  return {
    name: shared(name),
    resources: shared(resources),
    ...lastResizeOf(name, resizes),
    restartsFor: shared(restarting.map(({ resourceName }) => resourceName)),
    isRunning: own?.state?.running !== undefined,
    restartCount: own?.restartCount ?? 0,
    containerId: own?.containerID,
    restartedAtMs: parseTime(finishedAt),
    isOomKilled: reason === "OOMKilled",
    allocated: shared(own?.allocatedResources),
    actual: shared(own?.resources),
  };
}

/** The name of a ReplicaSet is the name of its Deployment and the template hash, which is also a label of its pods. */
function pipeNameOf({ ownerReferences }: Pod["metadata"], templateHash: string): string | undefined {
  const nameOfOwner = (of: string) => ownerReferences?.find(({ kind }) => kind === of)?.name;
  const statefulSet = nameOfOwner("StatefulSet");
  if (statefulSet !== undefined) return shared(pipeName("StatefulSet", statefulSet));
  const replicaSet = nameOfOwner("ReplicaSet") ?? "";
  const suffix = `-${templateHash}`;
  return replicaSet.endsWith(suffix)
    ? shared(pipeName("Deployment", replicaSet.slice(0, -suffix.length)))
    : undefined;
}

function resizeConditionOf(status: Pod["status"]): ResizeCondition | undefined {
  const [first, second] = (["PodResizePending", "PodResizeInProgress"] as const).flatMap((type) => {
    const found = status?.conditions?.find((each) => each.type === type && each.status === "True");
    return found ? [{ type, reason: found.reason ?? "", message: found.message ?? "" }] : [];
  });
  return first && { ...first, ...(second ? { isAfterAnother: true } : {}) };
}

function unschedulableMessage(status: Pod["status"]): string | undefined {
  const scheduled = status?.conditions?.find((each) => each.type === "PodScheduled");
  const isUnschedulable = scheduled?.status === "False" && scheduled.reason === "Unschedulable";
  return isUnschedulable ? (scheduled.message ?? "") : undefined;
}

/*
 * The API server records in managedFields which writer last changed the resources of each container by the subresource
 * `resize`, and when, in whole seconds. Nothing else can change them after the pod was created.
 */

interface Resizes {
  /** That of the controller. */
  readonly own: ManagedFields | undefined;
  readonly others: readonly ManagedFields[];
  /** Nothing shows whether there were resizes. */
  readonly isUnknown: boolean;
}

function resizesOf({ managedFields = [] }: Pick<ObjectMeta, "managedFields">): Resizes {
  const resizes = managedFields.filter(({ subresource }) => subresource === "resize");
  return {
    own: resizes.find(isOwn),
    others: resizes.filter((entry) => !isOwn(entry)),
    isUnknown: isUnmanaged(managedFields),
  };
}

function lastResizeOf(
  container: string,
  { own, others, isUnknown }: Resizes,
): Pick<ContainerView, "resizedBy" | "otherResizedAtMs" | "isAsCreated"> {
  // Usually there are none, and the function is called for every version of every pod.
  const found = others.length === 0 ? undefined : newestOf(others, container);
  const isOlder = found && own && parseTime(found.time) < parseTime(own.time);
  const last = isOlder ? undefined : found;
  return {
    resizedBy: shared(last?.manager),
    otherResizedAtMs: last && parseTime(last.time),
    isAsCreated: !own && !found && !isUnknown,
  };
}

function newestOf(resizes: readonly ManagedFields[], container: string): ManagedFields | undefined {
  const resources = [["f:spec", "f:containers", `k:${JSON.stringify({ name: container })}`, "f:resources"]];
  return resizes
    .filter((entry) => managersOf([entry], resources).length > 0)
    .toSorted((a, b) => parseTime(b.time) - parseTime(a.time))[0];
}

function isOwn({ manager }: ManagedFields): boolean {
  return manager === CONTROLLER_FIELD_MANAGER;
}
