import { sameSize } from "../../domain/size.ts";
import type { Container } from "../../kube/pods.ts";
import type { ActivePod, Problem, Subject } from "../assessment.ts";
import { CONTAINER_ANNOTATION } from "../names.ts";
import type { Fallback, InPlaceFailure } from "../observe/last-rollout.ts";
import { isChangedByOwner, isPausedForAll, type PipeView, presentAllotment } from "../observe/pipe-view.ts";
import { isRunning, namedContainerOf, type PodView } from "../observe/pod-view.ts";
import { isSameQuantity, type Resources, resourcesFor } from "../observe/resources.ts";
import type { StartupRead } from "../observe/workloads/startup-reads.ts";
import type { WriteRecord } from "../observe/write-record.ts";
import { areOfOneTemplate, areUpdated, mayReplacePods, seesAllPods, seesPods, unseenPods } from "../pods.ts";
import { dueAtMs, errorOf, isRetried, isRetryRequested, lastErrorOf } from "../retry.ts";
import { hasComeUp } from "../rollout/annotation.ts";
import { timeoutMsOf } from "../rollout/phase.ts";
import { dryRunRecord } from "../rollout/way.ts";
import { isRemembered } from "./fall-back.ts";

/** Returns why the pods of a pipe cannot be resized in place; `undefined` if they can be. */
export function inPlaceProblem(subject: Subject): Problem | undefined {
  // The dry run of the commit may show that the template cannot follow the pods.
  const failed = failedBefore(subject) ?? refusalOf(dryRunRecord(subject, true), subject);
  if (failed) return failed;
  const read = startupRead(subject);
  return read
    ? { reason: read.reason, message: read.message }
    : (presentProblem(subject) ?? podProblem(subject));
}

/**
 * Returns why no pod of the pipe can be resized now, whatever failed before, and whatever their program reads when it
 * starts.
 */
export function presentProblem(subject: Subject): Problem | undefined {
  const { pipe, podsProblem } = subject;
  if (podsProblem !== undefined) return { reason: "Forbidden", message: podsProblem };
  if (pipe.templateProblem) return pipe.templateProblem;
  if (!seesPods(subject)) return { reason: "PodsNotLabeled", message: "its pods do not have the labels" };
  return unsettledProblem(subject) ?? unseenProblem(subject);
}

/** Returns why this size failed in place before, unless people asked for another attempt since then. */
export function failedBefore(subject: Subject): InPlaceFailure | undefined {
  const { pipe, desired } = subject;
  const { inPlaceFailure: failure, startedAtMs = 0, isRollback } = pipe.lastRollout ?? {};
  if (!failure || !sameSize(failure.size, desired)) return undefined;
  // The rollout failed too, and its node may have room by now. The next attempt begins in place.
  if (isRollback && failure.reason === "Deferred" && failure.atMs < startedAtMs) return undefined;
  // The reason with which a rollout began says nothing about pods that changed after it.
  if (failure.atMs === startedAtMs && sameSize(pipe.size, desired)) return undefined;
  if (!mayReplacePods(subject) && !isRemembered(failure, subject)) return undefined;
  return isRetryRequested(failure.atMs, subject) ? undefined : failure;
}

/** Why a refused write is a reason to roll the pipe out, unless people asked for another attempt since then. */
export function refusalOf(record: WriteRecord | undefined, subject: Subject): Fallback | undefined {
  // A retry that is in flight may be accepted. Until then, a pipe whose pods are not replaced waits as before.
  const error = mayReplacePods(subject) ? errorOf(record) : lastErrorOf(record);
  const { fallback, message = "" } = error ?? {};
  if (!record || !fallback || isRetried(record, subject)) return undefined;
  // With the strategy InPlace, nothing else can apply the size, so the write is repeated.
  if (!mayReplacePods(subject) && dueAtMs(record, subject.pipe, subject) <= subject.nowMs) return undefined;
  return { reason: fallback, message };
}

/**
 * A program that would not use the size before it starts again. If the template has the size already, the program
 * started with it, and only the pod was changed since then.
 */
function startupRead({ pipe, target }: Subject): StartupRead | undefined {
  const present = presentAllotment(pipe);
  if (!present) return undefined;
  const resources = resourcesFor(present, pipe.cpuLimitFollows);
  return pipe.startupReads.find(({ resource }) => changes(resources, target, resource));
}

/** Only a Deployment whose pods are all of its template can keep its ReplicaSet. */
function unsettledProblem(subject: Subject): Problem | undefined {
  const { pipe, nowMs, timeouts } = subject;
  if (isPausedForAll(pipe)) return { reason: "NotSettled", message: "the Deployment is paused by its owner" };
  const { isSeen, isComplete } = pipe.rollout;
  // Every write to a Deployment counts, even of an annotation. A rollout would have to wait for its controller, too.
  if (!isSeen) {
    const message = `the ${pipe.kind} controller has not observed the last change of the ${pipe.kind}`;
    return { reason: "NotSettled", message, untilMs: nowMs + timeouts.resizeMs };
  }
  // Kubernetes creates the next pods when these have ended, and those can be resized in place.
  if (areTerminating(subject))
    return { reason: "NotSettled", message: "its pods are terminating", untilMs: nowMs + timeouts.resizeMs };
  const hasSize = sameSize(pipe.size, subject.desired);
  // Containers that run out of memory are not available. If no commit is to come, no container needs to be.
  const isKnown = hasSize || subject.outOfMemory !== undefined || hasCompleted(pipe);
  const isSettled = isComplete || (isKnown && areUpdated(subject));
  // Pods that the owner keeps from rollouts have an earlier template. That matters only if a commit is still to come.
  const isKept = pipe.inTurn?.hold !== undefined && hasSize;
  if (isSettled && (isKept || areOfOneTemplate(subject))) return undefined;
  const problem = {
    reason: "NotSettled",
    message: `a rollout of the ${pipe.kind} has not completed`,
  } as const;
  // Kubernetes replaces or creates the next pod only when the last one has been ready for this time.
  return passing(problem, subject, pipe.minReadyMs);
}

/** A Deployment replaces such pods at once. */
function areTerminating({ pipe, pods, active }: Subject): boolean {
  return pipe.inTurn !== undefined && active.length === 0 && pods.some(({ isTerminating }) => isTerminating);
}

/**
 * True if all pods were ready with the template before, or with another size of it. Then a pod that is not ready says
 * nothing about a rollout. A Deployment shows this in its condition Progressing only until its first commit.
 */
export function hasCompleted(pipe: PipeView): boolean {
  const isOwn = hasComeUp(pipe) && !isChangedByOwner(pipe);
  const { inTurn } = pipe;
  return inTurn ? inTurn.isOfOneRevision || inTurn.hold?.isOnDelete || isOwn : isOwn;
}

/** Somebody removed the label from a pod, or the watch of pods is behind the status of the workload. */
export function unseenProblem(subject: Subject): Problem | undefined {
  if (seesAllPods(subject)) return undefined;
  return passing({ reason: "PodsNotLabeled", message: unseenPods(subject) }, subject);
}

/**
 * A workload that was scaled, or whose pods were replaced or are not ready for a moment, is soon stable again, so the
 * problem may last as long as a resize.
 */
function passing(problem: Fallback, subject: Subject, moreMs = 0): Problem {
  const { pipe, active, endedPod, timeouts, nowMs } = subject;
  const created = active.map(({ pod }) => pod.createdAtMs);
  const times = [pipe.rollout.progressedAtS * 1000, endedPod?.atMs ?? 0, readinessAtMs(subject)];
  const sinceMs = Math.max(...times, ...created);
  // A time in the future comes from a wrong clock.
  const untilMs = Math.min(sinceMs, nowMs) + timeouts.resizeMs + moreMs;
  return untilMs > nowMs ? { ...problem, untilMs } : problem;
}

/** Since when a pod is not ready, or since when all are. Other pods that crash again and again do not renew it. */
function readinessAtMs({ active }: Subject): number {
  const changed = (pods: readonly ActivePod[]) => pods.map(({ pod }) => pod.readyChangedAtMs);
  const unready = active.filter(({ pod }) => !pod.isReady);
  return unready.length > 0 ? Math.min(...changed(unready)) : Math.max(0, ...changed(active));
}

/**
 * The pods that can be resized get the size first, unless the pipe needs a rollout anyway: a problem that may pass is
 * one only for the last pods, and so is a container that does not run, if no pod may be replaced.
 */
function podProblem(subject: Subject): Problem | undefined {
  // Nothing happens to a pod that has the size, and a restart of it is judged by other rules.
  const others = subject.active.filter(({ state }) => state !== "done");
  const problems = others.map((each) => problemOfPod(each, subject));
  const isLast = ({ reason, untilMs }: Problem) =>
    untilMs !== undefined || (!mayReplacePods(subject) && reason === "ContainerNotRunning");
  const first = problems.find((problem) => problem && !isLast(problem));
  if (first) return first;
  const isAnyResizable = problems.some((problem, at) => !problem && others[at]?.state === "unchanged");
  return isAnyResizable ? undefined : problems.find((problem) => problem);
}

/** Returns why one pod cannot be resized in place now; `undefined` if it can be. */
export function problemOfPod(each: ActivePod, subject: Subject): Problem | undefined {
  const found = unnamedContainer(each.pod, subject.container) ?? problemOf(each, subject.target);
  if (!found) return undefined;
  const problem = { reason: found.reason, message: `pod ${each.pod.metadata.name}: ${found.message}` };
  const restartsAtMs = restartAtMs(each, subject);
  if (restartsAtMs !== undefined) return { ...problem, untilMs: restartsAtMs };
  return isStarting(each.pod) ? passing(problem, subject, moreStartMs(each, subject)) : problem;
}

/**
 * The time until which a container that ran out of memory is expected to start again, so that it can get its old size
 * back, in milliseconds since 1970; `undefined` if none is awaited.
 */
function restartAtMs({ pod }: ActivePod, { outOfMemory, nowMs, timeouts }: Subject): number | undefined {
  if (!outOfMemory || isRunning(pod)) return undefined;
  const endedAtMs = Math.max(...pod.containers.map(({ restartedAtMs }) => restartedAtMs));
  const untilMs = Math.min(endedAtMs, nowMs) + timeouts.crashLoopMs;
  return untilMs > nowMs ? untilMs : undefined;
}

/**
 * The admission policies of the chart allow a resize of the only container of a pod, or of the one that the pod names.
 * A webhook may have added containers, such as the proxy of a service mesh, to a pod whose template has one.
 */
function unnamedContainer(pod: PodView, container: string): Fallback | undefined {
  if (namedContainerOf(pod) === container) return undefined;
  const names = pod.containers.map(({ name }) => name).join(", ");
  const message = `it has the containers ${names}, and no annotation ${CONTAINER_ANNOTATION}=${container}: add it to the pod template`;
  return { reason: "ContainerNotNamed", message };
}

/**
 * How much longer a new pod may take to start while the other pods run, and have the size or get it. In a rollout, it
 * would start no sooner, and they would be replaced. But the size of a rollout may fit a node if that of the pod does not.
 */
function moreStartMs({ pod }: ActivePod, subject: Subject): number {
  if (!mayReplacePods(subject) || pod.unschedulable !== undefined) return 0;
  const others = subject.active.filter((each) => !isStarting(each.pod));
  const areRunning = others.every((each) => each.state !== "unchanged" || isRunning(each.pod));
  // If no pod of a Deployment runs, a rollout may start others on other nodes.
  const isUseful = others.length > 0 || subject.pipe.inTurn !== undefined;
  return isUseful && areRunning ? timeoutMsOf(subject.pipe, subject) : 0;
}

function isStarting(pod: PodView): boolean {
  return pod.containers.every(({ restartCount }) => restartCount === 0) && !isRunning(pod);
}

/** Why a pod must not be resized in place. */
function problemOf({ pod, own }: ActivePod, target: Resources): Fallback | undefined {
  // The kubelet keeps the old limits of a container that is not running, and reports success.
  if (!own || !isRunning(pod))
    return { reason: "ContainerNotRunning", message: "a container is not running" };
  if (!own.actual)
    return { reason: "NotSupported", message: "its node does not report the resources of containers" };
  // A kubelet before Kubernetes 1.34 does not report it, so nothing would show that a resize is finished.
  if (pod.observedGeneration === 0 && pod.metadata.generation > 0) {
    const message = "its node does not report the generation of the pod that it has observed";
    return { reason: "NotSupported", message };
  }
  const restarting = own.restartsFor.find((resource) => changes(own.resources, target, resource));
  if (restarting === undefined) return undefined;
  const message = `its resizePolicy restarts the container when ${restarting} changes`;
  return { reason: "ContainerRestarts", message };
}

function changes(current: Container["resources"] | Resources, target: Resources, resource: string): boolean {
  if (resource !== "cpu" && resource !== "memory") return false;
  const limit = target.limits[resource];
  if (!isSameQuantity(current?.requests?.[resource] ?? undefined, target.requests[resource])) return true;
  // Without one, the limit stays as it is.
  return limit !== undefined && !isSameQuantity(current?.limits?.[resource] ?? undefined, limit);
}
