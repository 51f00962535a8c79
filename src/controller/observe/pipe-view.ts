import { type Size, sameSize } from "../../domain/size.ts";
import type { Identity, KubeObject } from "../../kube/objects.ts";
import type { DeploymentCondition } from "../../kube/workloads.ts";
import { appliedSize, type Fallback, type LastRollout } from "./last-rollout.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";
import {
  type Allotment,
  isSize,
  type Resources,
  resourcesFor,
  resourcesOfPods,
  type SomeResources,
} from "./resources.ts";
import type { PipeKind } from "./workloads/kinds.ts";
import type { StartupRead } from "./workloads/startup-reads.ts";

/** The fields of a workload that decisions need; the cache keeps only these. */
export interface PipeView extends KubeObject {
  readonly kind: PipeKind;
  readonly metadata: Identity;
  /** Empty if the workload does not have the labels of a pipe. */
  readonly serviceId: string;
  /** In milliseconds since 1970. */
  readonly createdAtMs: number;
  /** When the writer of its service label last wrote to it, in milliseconds since 1970. */
  readonly labeledAtMs: number;
  readonly isBeingDeleted: boolean;
  /** Name of the container to resize, or why it cannot be determined, with the resources of each container. */
  readonly container:
    | { readonly name: string }
    | { readonly problem: string; readonly resources?: readonly Resources[] };
  /** The size of that container; `undefined` if its resources are not a valid size. */
  readonly size: Size | undefined;
  /** The resources of that container if they are not a valid size, so that a rollback can restore them. */
  readonly otherResources: Resources | undefined;
  /**
   * The resources of that container if the controller would write its size in another form. With them, exactly the same
   * template can be restored.
   */
  readonly otherForm: Resources | undefined;
  /** True if the owner made the container Guaranteed. The CPU limit then follows the size, to keep the QoS class. */
  readonly cpuLimitFollows: boolean;
  /** A CPU limit that does not follow the size, in millicores. */
  readonly cpuLimitMillicores: number | undefined;
  /** Field managers other than ours that own a field of the size. */
  readonly otherManagers: readonly string[];
  /**
   * The controller is an owner of each field of the size that the container has, or nothing shows owners. Then each of
   * these fields stays if another owner no longer applies it.
   */
  readonly ownsSize: boolean;
  readonly replicas: number;
  /** The pod template has the label by which the controller sees pods. */
  readonly hasLabelledPods: boolean;
  /** Why its pod template does not allow resizes in place. */
  readonly templateProblem: Fallback | undefined;
  /** Resources that programs of the pipe read only when they start. If one changes, a restart is necessary. */
  readonly startupReads: readonly StartupRead[];
  /** The time without progress that the owner chose for rollouts; 0 for none. */
  readonly deadlineMs: number;
  /** The time for which a pod must be ready before it counts as available. */
  readonly minReadyMs: number;
  /** A Deployment is paused, or the owner of a StatefulSet keeps all of its pods from rollouts. */
  readonly isPaused: boolean;
  /** To commit a resize in place, the controller has paused the Deployment, or holds the pods of the StatefulSet. */
  readonly isPausedForCommit: boolean;
  /** During such a pause: when the controller last wrote to the workload, in milliseconds since 1970. */
  readonly pausedForCommitAtMs: number | undefined;
  /** A rollout stops old pods before their replacements run. If these cannot start, the pipe has lost a running pod. */
  readonly stopsOldPodsFirst: boolean;
  /** Absent for workloads whose pods have no numbers. */
  readonly inTurn: InTurn | undefined;
  /** Revision of the pod template: 0 for a Deployment until Kubernetes sets it. For a StatefulSet, see `revisionOf`. */
  readonly revision: number;
  readonly rollout: RolloutProgress;
  /** Absent unless the controller itself wrote it to exactly this object. */
  readonly lastRollout: LastRollout | undefined;
  /**
   * Only without a last rollout, and only if the workload shows that the controller resized the pipe before: when
   * that was, in milliseconds since 1970.
   */
  readonly resizedAtMs: number | undefined;
}

/**
 * A workload whose pods have numbers. A rollout replaces them from the last one to the first, each in its own place.
 */
export interface InTurn {
  /** Number of steps in which a rollout replaces the pods. Each has the whole timeout. */
  readonly steps: number;
  /** Identifies the pod template without the size. If it differs, the owner changed the template. */
  readonly template: string;
  /** The `templateHash` of pods that have the newest template; outdated until Kubernetes has seen that template. */
  readonly templateHash: string;
  /** No pod is available, and Kubernetes has no pods of an earlier template. */
  readonly isFirst: boolean;
  /** Kubernetes has no pods of an earlier template, so it creates every pod with the newest one. */
  readonly isOfOneRevision: boolean;
  /**
   * When the spec was last written, unless only an autoscaler set the number of replicas, in milliseconds since 1970; 0
   * if nothing shows it.
   */
  readonly writtenAtMs: number;
  readonly hold: Hold | undefined;
  /** The partition of the owner: that many of the first pods are not replaced. Absent with the strategy OnDelete. */
  readonly partition: number | undefined;
  /** False if the owner keeps all pods from rollouts, however many there are. Then a commit holds nothing. */
  readonly needsHold: boolean;
  /** The controller is still an owner of the partition after a commit, so the owner could not apply another one. */
  readonly ownsPartition: boolean;
}

/** The owner keeps pods from rollouts. */
export interface Hold {
  readonly pods: number;
  /** Pods with a smaller number are kept. */
  readonly below: number;
  /** Only its owner replaces pods, by deleting them. */
  readonly isOnDelete: boolean;
  /** For people: the end of a sentence. */
  readonly message: string;
}

/** Progress of the rollout of the current template, as Kubernetes reports it. */
export interface RolloutProgress {
  /**
   * All pods that the owner allows to be replaced have the current template, and all pods are available, or were when
   * Kubernetes announced a complete rollout of the Deployment. If the owner allows none, all pods must have the
   * template.
   */
  readonly isComplete: boolean;
  /** Every wanted replica is available, of whatever template. */
  readonly isAvailable: boolean;
  /** At least one pod is available, of whatever template. */
  readonly isAnyAvailable: boolean;
  /** Every wanted pod exists, and all pods are of the current template, whatever their states. */
  readonly isUpdated: boolean;
  /** The status is of the newest generation. */
  readonly isSeen: boolean;
  /** A current status reports no pods of any template. */
  readonly isWithoutPods: boolean;
  /** Pods of any template: those of a Deployment that are not terminating, and all of a StatefulSet. */
  readonly replicas: number;
  /** 0 for a StatefulSet. */
  readonly terminatingReplicas: number;
  /**
   * `lastUpdateTime` of the condition Progressing of a Deployment, or the last write to the spec of a StatefulSet, in
   * seconds since 1970; 0 for none.
   */
  readonly progressedAtS: number;
  /**
   * Since when too few pods of a Deployment are available, in milliseconds since 1970, if all of its pods have the
   * current template and none is available; otherwise, and if it is not known, `undefined`.
   */
  readonly unavailableSinceMs: number | undefined;
  /** A condition of a Deployment. Only set while the rollout is not complete, to save memory. */
  readonly progressing: DeploymentCondition | undefined;
  readonly replicaFailure: DeploymentCondition | undefined;
}

/** The resources of the template; `undefined` if it is unclear which container is meant. */
export function presentAllotment({ size, otherResources }: PipeView): Allotment | undefined {
  return size ?? otherResources;
}

/** The resources of a pod that has those of its template; `undefined` if it is unclear which container is meant. */
export function templateResources(pipe: PipeView): SomeResources | undefined {
  const allotment = presentAllotment(pipe);
  return allotment && resourcesOfPods(resourcesFor(allotment, pipe.cpuLimitFollows));
}

/** Name of the container to resize; empty if it is unclear which one that is. */
export function containerNameOf({ container }: PipeView): string {
  return "problem" in container ? "" : container.name;
}

/** The resources of the template in the form that it has; `undefined` if it is unclear which container is meant. */
export function presentForm({ size, otherResources, otherForm }: PipeView): Allotment | undefined {
  return otherForm ?? size ?? otherResources;
}

/** True if the template has a request or a memory limit. */
export function hasAnyResource({ size, otherResources }: PipeView): boolean {
  return size !== undefined || amountsOf(otherResources).some((amount) => amount !== null);
}

/** True if running pods can get another size, and the present one again, without an added or a removed field. */
export function hasAllResources({ size, otherResources }: PipeView): boolean {
  return size !== undefined || amountsOf(otherResources).every((amount) => amount !== null);
}

function amountsOf(resources: Resources = NO_RESOURCES): readonly (string | null)[] {
  const { requests, limits } = resources;
  return [requests.cpu, requests.memory, limits.memory];
}

const NO_RESOURCES: Resources = { requests: { cpu: null, memory: null }, limits: { memory: null } };

/** The service of a workload, or that in its annotation if it no longer has the labels of a pipe; empty if unknown. */
export function lastServiceOf({ serviceId, lastRollout }: PipeView): string {
  return serviceId || (lastRollout?.serviceId ?? "");
}

/** Returns true if a rollout or a rollback of the controller is in progress. */
export function isRollingOut(pipe: PipeView): boolean {
  const { lastRollout, rollout, isPaused, replicas } = pipe;
  if (!lastRollout || lastRollout.generation === 0 || lastRollout.cameUp) return false;
  if (rollout.isComplete || isPaused || replicas === 0) return false;
  return hasAppliedSize(pipe);
}

/** True if our view of the PipeScaling is older than a rollout of the pipe, or etcd was restored from a snapshot. */
export function isFromLaterGeneration(
  { lastRollout }: PipeView,
  { metadata }: Pick<PipeScalingView, "metadata">,
): boolean {
  return lastRollout?.scalingUid === metadata.uid && lastRollout.scalingGeneration > metadata.generation;
}

/**
 * True if the template has the size that the last rollout or rollback set. If that did not set a size, any resources
 * that are not a size count.
 */
export function hasAppliedSize({ size, otherResources, lastRollout }: PipeView): boolean {
  const applied = appliedSize(lastRollout);
  return isSize(applied) ? sameSize(size, applied) : otherResources !== undefined;
}

/**
 * True if a rollout of the controller may be in progress. If another writer removed the annotation, any rollout of a
 * pipe that the controller resized counts.
 */
export function mayBeRollingOut(pipe: PipeView): boolean {
  const { lastRollout, resizedAtMs, rollout, isPaused, replicas } = pipe;
  if (lastRollout || resizedAtMs === undefined) return isRollingOut(pipe) || mayReplacePodsOfTemplate(pipe);
  return !rollout.isComplete && !isPaused && replicas > 0;
}

/**
 * True if the controller may be replacing pods of a Deployment that could not get the size of their template in place.
 * That gives the template another revision, and nothing but the recorded failure shows whose rollout it is.
 */
export function mayReplacePodsOfTemplate(pipe: PipeView): boolean {
  const { lastRollout, size, revision, rollout, isPaused, replicas } = pipe;
  const failure = lastRollout?.inPlaceFailure;
  if (!failure || failure.atMs === lastRollout.startedAtMs || !sameSize(failure.size, size)) return false;
  if (failure.revision === undefined || revision !== failure.revision + 1) return false;
  return !rollout.isComplete && !isPaused && replicas > 0;
}

/**
 * Returns true if the pod template has a later revision than that of the controller's last rollout, usually because
 * another writer changed it. If a resize in place failed, the pods that the controller then replaces cause one, too.
 */
export function isChangedByOwner({ revision, lastRollout }: PipeView): boolean {
  return lastRollout !== undefined && revision > lastRollout.revision;
}

/** Number of pods that a change of the template replaces. */
export function replaceablePods({ replicas, inTurn }: PipeView): number {
  return replicas - (inTurn?.hold?.pods ?? 0);
}

/** True if the pipe is scaled to zero, and its pods have ended. */
export function hasNoPods({ replicas, rollout }: PipeView): boolean {
  return replicas === 0 && rollout.isSeen && rollout.replicas === 0;
}

/**
 * True if a pause keeps the template of a Deployment from following its pods. A StatefulSet does not count, because a
 * commit holds its pods anyway.
 */
export function isPausedForAll({ isPaused, inTurn }: PipeView): boolean {
  return isPaused && !inTurn;
}

/** False for a pod of an earlier template of a StatefulSet, whose size says nothing about the present one. */
export function isOfTemplate({ inTurn }: PipeView, pod: { readonly templateHash: string }): boolean {
  return !inTurn || pod.templateHash === inTurn.templateHash;
}

/** True if the owner keeps this pod from rollouts. */
export function isHeld({ inTurn }: PipeView, pod: KubeObject): boolean {
  return inTurn?.hold !== undefined && numberOf(pod) < inTurn.hold.below;
}

/** The number of a pod of a StatefulSet. */
export function numberOf({ metadata: { name } }: KubeObject): number {
  return Number.parseInt(name.slice(name.lastIndexOf("-") + 1), 10);
}

/** True if the controller must write once more, so that the owner can change the workload as before the commit. */
export function isUnreleased({ isPausedForCommit, inTurn }: PipeView): boolean {
  return (isPausedForCommit && (inTurn?.needsHold ?? true)) || (inTurn?.ownsPartition ?? false);
}

/**
 * True for a pipe whose template follows its pods, or did so and Kubernetes has not seen the end of it. One that is
 * being deleted is not resumed.
 */
export function isInCommit(pipe: PipeView): boolean {
  return !pipe.isBeingDeleted && (pipe.isPausedForCommit || isCommitUnseen(pipe));
}

/** True if Kubernetes has not seen the end of a commit, and the owner has not changed the workload since then. */
export function isCommitUnseen({ metadata, lastRollout, rollout, size }: PipeView): boolean {
  if (rollout.isSeen || lastRollout?.inPlaceStartedAtMs === undefined) return false;
  return sameSize(lastRollout.size, size) && metadata.generation <= lastRollout.generation + 1;
}

/**
 * Returns true if the condition Progressing is older than the last rollout, or if that had no pods to replace. Then the
 * condition does not show that the rollout is complete.
 *
 * @param progressedAtS of the condition
 */
export function isAnnouncedBefore(progressedAtS: number, lastRollout: LastRollout | undefined): boolean {
  // An adoption rolled nothing out.
  if (!lastRollout || lastRollout.generation === 0) return false;
  // Times are compared only for equality, because clocks differ.
  return lastRollout.progressedAtS === progressedAtS || lastRollout.replicas === 0;
}
