import { resourcesFor, resourcesOf } from "../observe/resources.ts";
import { beginCommit, commitStep, inUse, unsettled } from "./commit.ts";
import { podProblem } from "./pod-problem.ts";
import { containerOf, type PodState, podState } from "./pod-state.ts";
import { type ContainerView, hasResources, type PodView } from "./pod-view.ts";
import { restartProblem } from "./restarted-pod.ts";
import type { InPlaceContext, InPlaceStep, PodResources } from "./steps.ts";
import type { Fallback, InPlaceView } from "./view.ts";

/** After the first pod has proven the size. */
const MAX_CONCURRENT_PODS = 10;

/**
 * Decides the next step from the Deployment, its ReplicaSets and its pods only, so that a controller can continue after
 * a crash at any point. Only the timeouts start again.
 */
export function nextStep(context: InPlaceContext): InPlaceStep {
  if (context.pipe.isPausedByUs) return commitStep(context);
  // It may give a pod another size than the desired one.
  if (context.view.isWriting)
    return { type: "wait", untilMs: context.view.nowMs + context.timeouts.resizeMs };
  const pods = resizePods(context);
  if (pods.type !== "done" || context.isTemplateSized) return pods;
  const problem = unsettled(context);
  if (!problem) {
    const step = beginCommit(context);
    const { failedDeletion } = context;
    return step.type === "delete-replica-set" && failedDeletion ? fallBack(context, failedDeletion) : step;
  }
  // A Deployment that is being scaled, or that replaces a pod, is soon stable again.
  return context.pipe.replicas === 0 ? fallBack(context, problem) : waitOrFallBack(context, problem);
}

interface PodWithState {
  readonly pod: PodView;
  readonly state: PodState;
}

function resizePods(context: InPlaceContext): InPlaceStep {
  const { view } = context;
  const pods = podsOf(context);
  const unchanged = pods.flatMap(({ pod, state }) => (state === "unchanged" ? [pod] : []));
  const changed = changedOf(pods);

  if (view.failure) return fallBack(context, view.failure);
  if (isCommitTakenBack(context)) return fallBack(context, TAKEN_BACK);
  const restart = pods.map((each) => restartOf(each, view)).find((each) => each !== undefined);
  if (restart) return fallBack(context, restart);
  const ends = pods.map(({ pod, state }) => endOf(pod, state, context));
  const failure = ends.find((end) => end && end.atMs <= view.nowMs);
  if (failure) return fallBack(context, failure);
  const untilMs = Math.min(...ends.map((end) => end?.atMs ?? Number.POSITIVE_INFINITY));
  if (Number.isFinite(untilMs)) return { type: "wait", untilMs };
  if (unchanged.length === 0) return allResized(context);

  const reverted = unchanged.find(({ metadata }) => view.resizedAtMs.has(metadata.uid));
  if (reverted) {
    const message = `pod ${reverted.metadata.name}: another writer set it back to its old size`;
    return fallBack(context, { reason: "Reverted", message });
  }
  const problem =
    (context.isTemplateSized ? undefined : unsettled(context)) ??
    unchanged.map((pod) => podProblem(pod, context)).find((each) => each !== undefined) ??
    notWritten(unchanged, context);
  if (!problem) {
    return { type: "resize-pods", pods: unchanged.slice(0, changed.length === 0 ? 1 : MAX_CONCURRENT_PODS) };
  }
  const isWaiting = changed.length > 0 || isSettling(context, problem, unchanged);
  return isWaiting ? waitOrFallBack(context, problem) : fallBack(context, problem);
}

/** After the commit, a Deployment looks as if it were in a rollout until the Deployment controller has seen it. */
function allResized(context: InPlaceContext): InPlaceStep {
  const { pipe, view, isTemplateSized, timeouts } = context;
  if (isTemplateSized && !pipe.rollout.isSeen)
    return { type: "wait", untilMs: view.nowMs + timeouts.commitMs };
  return isRolledOut(context) ? { type: "fall-back", restore: [], ...ROLLED_OUT } : { type: "done" };
}

/** A Deployment that was scaled just now soon settles again. */
function isSettling({ pipe }: InPlaceContext, { reason }: Fallback, pods: readonly PodView[]): boolean {
  if (reason === "NotSettled") return !pipe.isPaused;
  const stopped = pods.flatMap(({ containers }) => containers.filter(({ isRunning }) => !isRunning));
  return reason === "ContainerNotRunning" && stopped.every(({ restartCount }) => restartCount === 0);
}

function podsOf({ container, target, view }: InPlaceContext): readonly PodWithState[] {
  return view.pods.map((pod) => ({ pod, state: podState(pod, container, target) }));
}

function changedOf(pods: readonly PodWithState[]): readonly PodView[] {
  return pods.flatMap(({ pod, state }) => (state === "unchanged" ? [] : [pod]));
}

/** Pods that are created meanwhile have the time of a resize to start. */
function waitOrFallBack(context: InPlaceContext, problem: Fallback): InPlaceStep {
  const untilMs = lastWriteMs(context.view) + context.timeouts.resizeMs;
  return untilMs > context.view.nowMs ? { type: "wait", untilMs } : fallBack(context, problem);
}

function fallBack(context: InPlaceContext, fallback: Fallback): InPlaceStep {
  if (context.isTemplateSized) return replacePods(context, fallback);
  return { type: "fall-back", restore: toRestore(context), ...fallback };
}

/**
 * Before a rollout, each pod gets the size of its ReplicaSet. Otherwise a larger or a deferred one takes the room of the
 * new pods, and if the rollout fails, the old pods stay and do not have the size that the status reports. A rollout can
 * also return to an earlier ReplicaSet, and keeps its pods.
 */
function toRestore(context: InPlaceContext): readonly PodResources[] {
  const { pipe, view, container, target, isTemplateSized } = context;
  const sized = view.replicaSets.filter(({ resources }) => hasResources(resources.get(container), target));
  const owners = new Set(sized.map(({ metadata }) => metadata.uid));
  const former = isTemplateSized ? undefined : pipe.size && resourcesFor(pipe.size, pipe.cpuLimitFollows);
  return podsOf(context).flatMap(({ pod, state }) => {
    const isOwnerSized = owners.has(pod.replicaSetUid ?? "");
    const resources = isOwnerSized ? target : former;
    const isEqual = isOwnerSized === (state !== "unchanged");
    return isEqual || !resources ? [] : [{ pod, resources }];
  });
}

/**
 * The template has the size already, and pods of its ReplicaSet do not. If the ReplicaSet gets the resources of these
 * pods again, it is not the one of the template any more, so the Deployment controller rolls out the template.
 */
function replacePods(context: InPlaceContext, fallback: Fallback): InPlaceStep {
  const { pipe, view, container, target, timeouts } = context;
  const [replicaSet, ...others] = inUse(view);
  const isCommitted = hasResources(replicaSet?.resources.get(container), target);
  if (!replicaSet || !isCommitted || others.length > 0) {
    // The status of the Deployment is still that of the time before the rollout.
    if (pipe.rollout.isComplete) return { type: "wait", untilMs: view.nowMs + timeouts.commitMs };
    return { type: "fall-back", restore: toRestore(context), ...fallback };
  }
  const stale = podsOf(context).filter((each) => !hasResources(runningWith(each, context), target));
  const [first] = stale;
  if (!first) return { type: "done" };
  const resources = resourcesOf({ name: container, resources: runningWith(first, context) });
  const restore = changedOf(stale).map((pod) => ({ pod, resources }));
  return { type: "fall-back", restore, restoreReplicaSet: { replicaSet, resources }, ...fallback };
}

/**
 * The resources of a pod; after a restart during the resize, those before it. The node of a pod that has its old size
 * again may still report the other one.
 */
function runningWith(
  each: PodWithState,
  { view, container }: InPlaceContext,
): NonNullable<ContainerView["actual"]> {
  const before = view.podsBefore.get(each.pod.metadata.uid);
  const own = containerOf((restartOf(each, view) && before) ?? each.pod, container);
  const actual = each.state === "unchanged" ? undefined : own?.actual;
  return actual ?? own?.resources ?? {};
}

/** A pod that was created with the size is the concern of its Deployment. */
function restartOf({ pod, state }: PodWithState, view: InPlaceView): Fallback | undefined {
  if (state === "unchanged" || pod.metadata.generation <= 1) return undefined;
  return restartProblem(pod, view.podsBefore.get(pod.metadata.uid));
}

const TAKEN_BACK: Fallback = { reason: "NotSettled", message: "its ReplicaSet does not have the size" };

const ROLLED_OUT: Fallback = {
  reason: "NotSettled",
  message: "another rollout of the Deployment began meanwhile",
};

/** After the commit, the Deployment controller did not keep the ReplicaSet. Earlier rollouts do not count. */
function isRolledOut({ isTemplateSized, pipe: { lastRollout, revision }, view }: InPlaceContext): boolean {
  const isCommitted = isTemplateSized && lastRollout?.inPlaceStartedAtMs !== undefined;
  return isCommitted && revision > lastRollout.revision && revision > view.revision;
}

/** A predecessor fell back after the commit, so a rollout begins. */
function isCommitTakenBack({ isTemplateSized, view, container, target }: InPlaceContext): boolean {
  const used = inUse(view);
  return (
    isTemplateSized &&
    used.length > 0 &&
    used.every(({ resources }) => !hasResources(resources.get(container), target))
  );
}

/** When the resize of a pod fails unless it is done before; `undefined` if none is in progress. */
function endOf(
  pod: PodView,
  state: PodState,
  { view, timeouts }: InPlaceContext,
): (Fallback & { atMs: number }) | undefined {
  if (state === "unchanged" || state === "done") return undefined;
  const { name, uid } = pod.metadata;
  const message = `pod ${name}: ${pod.resize?.message ?? "the kubelet has not resized it"}`;
  if (state === "infeasible") return { atMs: view.nowMs, reason: "Infeasible", message };
  // A predecessor resized the pod at an unknown time.
  const startedAtMs = view.resizedAtMs.get(uid) ?? view.triedAtMs.get(uid) ?? view.beganAtMs;
  return {
    atMs: startedAtMs + (state === "deferred" ? timeouts.deferredMs : timeouts.resizeMs),
    reason: TIMED_OUT[state],
    message,
  };
}

const TIMED_OUT = { deferred: "Deferred", error: "ResizeError", resizing: "ResizeTimeout" } as const;

/** Each write can fail, for example because of a webhook that does not respond. */
function notWritten([pod]: readonly PodView[], { view, timeouts }: InPlaceContext): Fallback | undefined {
  if (lastWriteMs(view) + timeouts.resizeMs > view.nowMs) return undefined;
  return { reason: "ResizeTimeout", message: `pod ${pod?.metadata.name}: the API server has not resized it` };
}

/** When this process last resized a pod, or else began. */
function lastWriteMs({ beganAtMs, resizedAtMs }: InPlaceView): number {
  return Math.max(beganAtMs, ...resizedAtMs.values());
}
