import type { ActivePod, PodState, Subject } from "./assessment.ts";
import { DATABASE_TYPE, TYPE_LABEL } from "./names.ts";
import { isHeld, isOfTemplate, numberOf } from "./observe/pipe-view.ts";
import { type ContainerView, isReplica, type PodView } from "./observe/pod-view.ts";
import { formatAllotment, hasResources, type Resources, resourcesFor } from "./observe/resources.ts";
import { isOpen } from "./observe/write-record.ts";
import { isRetried } from "./retry.ts";

type Target = Omit<Subject, "active" | "endedPod">;

/** Returns the pods that need the desired size: those that are neither terminating nor ended. */
export function activePods(about: Target): readonly ActivePod[] {
  const { pods, container, target, writes } = about;
  const size = formatAllotment(target);
  return pods
    .filter(({ isActive }) => isActive)
    .map((pod) => {
      const own = pod.containers.find(({ name }) => name === container);
      const last = writes.get(pod.metadata.uid, "resize-pod");
      const record = last?.subject === size && !isRetried(last, about) ? last : undefined;
      const known = { pod, own, record };
      return { ...known, state: stateOf(known, about) };
    });
}

type Known = Omit<ActivePod, "state">;

function stateOf(known: Known, about: Target): PodState {
  const { pod, own } = known;
  if (!own || !hasResources(own.resources, about.target)) return "unchanged";
  if (isApplied(own, about.target)) return isConfirmed(known, about) ? "done" : "resizing";
  const { resize } = pod;
  if (resize?.type === "PodResizePending") return resize.reason === "Infeasible" ? "infeasible" : "deferred";
  if (resize) return resize.reason === "Error" ? "error" : "resizing";
  // The start of a pod that was created with these resources is the concern of its workload.
  const isStarting = own.isAsCreated && !own.actual;
  return isStarting || isOfFirstGeneration(known) ? "done" : "resizing";
}

/**
 * True if the kubelet reports that it has granted these resources to a container, and that the container runs with
 * them. After a restart of the kubelet, only this shows that it has not missed a resize.
 */
export function isApplied({ allocated: requests = {}, actual }: ContainerView, target: Resources): boolean {
  return hasResources({ requests, limits: actual?.limits ?? {} }, target) && hasResources(actual, target);
}

/**
 * False while the report about a container may be outdated because its resources were changed, and changed back. Any
 * other change of its pod, such as a resize of a sidecar, says nothing about it, however long the kubelet needs for
 * that.
 */
function isConfirmed(known: Known, about: Target): boolean {
  if (isAsCreated(known)) return true;
  const { metadata, observedGeneration, resize } = known.pod;
  // The kubelet grants the resize of a pod as a whole, so one that is pending is not about this container.
  const isInProgress = resize?.type === "PodResizeInProgress" || resize?.isAfterAnother;
  if (observedGeneration >= metadata.generation && !isInProgress) return true;
  return begunAtMs(known, about) + about.timeouts.resizeMs <= about.nowMs;
}

/** True if no writer has resized the container of a pod since the pod was created. */
export function isAsCreated(each: Pick<ActivePod, "pod" | "own">): boolean {
  return isOfFirstGeneration(each) || (each.own?.isAsCreated ?? false);
}

/** A pod that was created before Kubernetes 1.33 has no generation, and gets the first one when it is resized. */
function isOfFirstGeneration({ pod, own }: Pick<ActivePod, "pod" | "own">): boolean {
  const isResized = pod.resizedAtMs !== undefined || own?.otherResizedAtMs !== undefined;
  return pod.metadata.generation <= 1 && !isResized;
}

/**
 * When the last resize of the container of a pod began, in milliseconds since 1970. Changes of other containers do not
 * count, so they extend no timeout. A time in the future comes from a wrong clock.
 */
export function begunAtMs(
  { pod, own, record }: Known,
  { nowMs, leadingSinceMs }: Pick<Subject, "nowMs" | "leadingSinceMs">,
): number {
  const times = [record?.lastAtMs ?? pod.resizedAtMs, own?.otherResizedAtMs].filter(
    (each) => each !== undefined,
  );
  return Math.min(nowMs, times.length === 0 ? leadingSinceMs : Math.max(...times));
}

/**
 * False if the pods of the pipe lack the label by which the controller sees them, or if it may not watch pods. Then
 * only the workload counts.
 */
export function seesPods({ pipe, podsProblem }: Pick<Subject, "pipe" | "podsProblem">): boolean {
  return pipe.hasLabelledPods && podsProblem === undefined;
}

/** True for a StatefulSet whose view is outdated, because the permission to watch it was lost. */
export function isUnwatched({
  pipe,
  statefulSetsProblem,
}: Pick<Subject, "pipe" | "statefulSetsProblem">): boolean {
  return pipe.kind === "StatefulSet" && statefulSetsProblem !== undefined;
}

/** The pods of a pipe, on which a judgment about it may depend; `undefined` if only the workload counts. */
export function visiblePods(subject: Subject): readonly PodView[] | undefined {
  return seesPods(subject) ? subject.pods : undefined;
}

/** False if fewer pods are seen than the status counts: a moment after a change, or if a pod lost its label. */
export function seesAllPods({ pipe, pods }: Pick<Subject, "pipe" | "pods">): boolean {
  return pods.filter(isReplica).length >= pipe.rollout.replicas;
}

/** For people: the end of a sentence. The watch of pods may only be behind the status of the workload. */
export function unseenPods({ pipe, pods }: Pick<Subject, "pipe" | "pods">): string {
  const { replicas } = pipe.rollout;
  const unseen = replicas - pods.filter(isReplica).length;
  return `${unseen} of its ${replicas} pods are not seen yet, or lack the label ${TYPE_LABEL}=${DATABASE_TYPE}: add it if it is missing`;
}

/**
 * True if every wanted pod exists, and all pods are of the current template, whatever their states, except those that
 * their owner keeps from rollouts with a partition. For as long as a pod of a StatefulSet terminates, Kubernetes counts
 * it among all pods, but not among those of the template, and for as long as one is not ready, it may create no other.
 */
export function areUpdated({ pipe, pods, active }: Pick<Subject, "pipe" | "pods" | "active">): boolean {
  const { rollout, inTurn, replicas } = pipe;
  if (rollout.isUpdated || !inTurn || !rollout.isSeen) return rollout.isUpdated;
  const older = active.filter(({ pod }) => !isOfTemplate(pipe, pod));
  const isExplained =
    rollout.replicas < replicas
      ? active.some(({ pod }) => !pod.isReady)
      : older.length > 0 || pods.some(({ isTerminating }) => isTerminating);
  if (!isExplained || !seesAllPods({ pipe, pods })) return false;
  const isPartition = inTurn.hold !== undefined && inTurn.hold.pods < replicas;
  return older.every(({ pod }) => isPartition && isHeld(pipe, pod));
}

/** Returns true if every pod runs with the desired size, or if there are no pods. */
export function allPodsHaveSize(subject: Subject): boolean {
  return seesAllPods(subject) && subject.active.every(({ state }) => state === "done");
}

/** Returns true if every pod has the size of the template of its pipe, as after a rollout. */
export function allPodsHaveTemplate(subject: Subject): boolean {
  const { size, cpuLimitFollows } = subject.pipe;
  if (!size) return false;
  const active = activePods({ ...subject, target: resourcesFor(size, cpuLimitFollows) });
  return allPodsHaveSize({ ...subject, active });
}

/**
 * The pod of an earlier template that a StatefulSet waits for: with the policy OrderedReady, Kubernetes replaces no pod,
 * not even this one, before it is ready. `undefined` if Kubernetes waits for a pod of the newest template, or for none.
 */
export function awaitedOldPod({ pipe, active }: Pick<Subject, "pipe" | "active">): ActivePod | undefined {
  const unready = active.filter(({ pod }) => !pod.isReady);
  if (unready.some(({ pod }) => isOfTemplate(pipe, pod))) return undefined;
  return unready.toSorted((a, b) => numberOf(a.pod) - numberOf(b.pod))[0];
}

/** Pods that are resized at a time after the first one has the size. */
const MAX_CONCURRENT_PODS = 10;

/**
 * Returns how many pods may be resized now. One pod goes first, because it shows whether the size works.
 *
 * @param others the pods that do not have the size
 */
export function podsAtOnce(others: readonly ActivePod[], { active }: Subject): number {
  return others.length === active.length ? 1 : MAX_CONCURRENT_PODS;
}

export function mayReplacePods({ strategy }: Pick<Subject, "strategy">): boolean {
  return strategy !== "InPlace";
}

export function mayResizePods({ strategy }: Pick<Subject, "strategy">): boolean {
  return strategy !== "Rollout";
}

/** A write that was decided for an earlier size may still change a pod. */
export function hasPodWriteInFlight({ pods, writes }: Pick<Subject, "pods" | "writes">): boolean {
  return pods.some(({ metadata }) => PURPOSES.some((purpose) => isOpen(writes.get(metadata.uid, purpose))));
}

const PURPOSES = ["resize-pod", "return-pod"] as const;

/**
 * False if the pods have several templates: during a rollout, which the status may not show yet, or because the owner
 * keeps pods from rollouts.
 */
export function areOfOneTemplate({ active }: Pick<Subject, "active">): boolean {
  return new Set(active.map(({ pod }) => pod.templateHash)).size <= 1;
}
