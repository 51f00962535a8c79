import { sameSize } from "../../domain/size.ts";
import { parseTime } from "../../kube/time.ts";
import type { DeploymentCondition } from "../../kube/workloads.ts";
import type { ActivePod, Cause, Subject } from "../assessment.ts";
import { isChangedByOwner, type PipeView } from "../observe/pipe-view.ts";
import { sizeOf } from "../observe/resources.ts";
import { awaitedOldPod, seesPods } from "../pods.ts";
import { withRemedy } from "../remedy.ts";
import { isOfLastRollout, startedAtMs, stepsOf, timeoutMsOf } from "./phase.ts";

/** A way in which a rollout fails, and the time at which it has failed unless it makes progress before. */
interface RolloutEnd extends Cause {
  readonly atMs: number;
}

/** The end of the controller's last rollout of a pipe if nothing changes. */
interface Outlook {
  /** Why it failed; `undefined` if it has not. */
  readonly cause: Cause | undefined;
  /** When it may fail without an event, in milliseconds since 1970. */
  readonly recheckAtMs: number;
  /** The message of the scheduler if a pod with the size of the template is unschedulable. */
  readonly unschedulable: string | undefined;
}

export function rolloutOutlook(subject: Subject): Outlook {
  const { pipe, active, nowMs } = subject;
  const waiting = active.find((each) => each.pod.unschedulable !== undefined && hasSizeOf(pipe, each));
  const unschedulable = waiting?.pod.unschedulable;
  const because = unschedulable === undefined ? "" : `: ${unschedulable}`;
  const ends = [
    withoutRoom(subject, unschedulable),
    withoutProgress(subject, because),
    withoutPods(subject),
    timedOut(subject, because),
    neverReady(subject, because),
  ].filter((each) => each !== undefined);
  return {
    cause: ends.find(({ atMs }) => atMs <= nowMs),
    recheckAtMs: Math.min(...ends.map(({ atMs }) => atMs)),
    unschedulable,
  };
}

/**
 * Old pods are gone already, and a new pod is unschedulable. Other pipes keep their old pods, so they can wait for
 * a new node. While a replaced pod terminates, and until the scheduler has tried again, the new pod may still get its
 * room.
 */
function withoutRoom(
  { pipe, pods, endedPod, timeouts }: Subject,
  message: string | undefined,
): RolloutEnd | undefined {
  if (!pipe.stopsOldPodsFirst || message === undefined) return undefined;
  const isEnding = pods.some(({ isTerminating }) => isTerminating);
  const atMs = isEnding ? Number.POSITIVE_INFINITY : (endedPod?.atMs ?? 0) + timeouts.rescheduleMs;
  return { reason: "Unschedulable", message, atMs };
}

function withoutProgress({ pipe }: Subject, because: string): RolloutEnd | undefined {
  const { progressing } = pipe.rollout;
  if (progressing?.reason !== "ProgressDeadlineExceeded" || !isOfLastRollout(pipe)) return undefined;
  return { reason: "ProgressDeadlineExceeded", message: `${progressing.message ?? ""}${because}`, atMs: 0 };
}

/**
 * A ReplicaFailure has a grace period, unless the pipe has no pod left. A quota counts the pods that terminate, so the
 * end of one may make room for the new pod.
 */
function withoutPods(subject: Subject): RolloutEnd | undefined {
  const { pipe, nowMs, timeouts } = subject;
  const { replicaFailure, isWithoutPods } = pipe.rollout;
  if (replicaFailure?.status !== "True") return undefined;
  const sinceMs = parseTime(replicaFailure.lastTransitionTime);
  const startedMs = startedAtMs(pipe, nowMs);
  // The condition may be from the previous size. Times of conditions are whole seconds.
  const isOfThis = sinceMs > startedMs - 1000;
  const beganMs = Math.max(sinceMs, startedMs);
  const graceEndsAtMs = isWithoutPods && isOfThis ? sinceMs : beganMs + timeouts.replicaFailureMs;
  return {
    reason: replicaFailure.reason === "FailedCreate" ? "FailedCreate" : "ReplicaFailure",
    message: withRemedy(replicaFailure.message ?? ""),
    atMs: Math.max(graceEndsAtMs, triedAgainAtMs(subject, beganMs)),
  };
}

/**
 * When a ReplicaSet that cannot create a pod has tried that again after the last pod ended, in milliseconds since 1970;
 * infinite while one terminates. The delay between two tries doubles, so it is at most the time since the first one.
 *
 * @param beganMs time of the first try
 */
function triedAgainAtMs({ pipe, pods, endedPod, timeouts }: Subject, beganMs: number): number {
  const isEnding = pods.some(({ isTerminating }) => isTerminating) || pipe.rollout.terminatingReplicas > 0;
  if (isEnding) return Number.POSITIVE_INFINITY;
  const failedMs = (endedPod?.atMs ?? 0) - beganMs;
  return failedMs > 0 ? beganMs + 2 * failedMs + timeouts.rescheduleMs : 0;
}

/**
 * A resumed rollout gets the whole timeout again, and a rollout that its owner changed gets it from the last progress.
 * Until Kubernetes observes a rollout, the timeout does not start.
 */
function timedOut(subject: Subject, because: string): RolloutEnd | undefined {
  const { pipe, nowMs } = subject;
  const { rollout, lastRollout } = pipe;
  // The rollout has ended, or there was nothing to roll out. Pods that start now belong to a later scale-up.
  const isOver = rollout.progressing?.reason === "NewReplicaSetAvailable" && isOfLastRollout(pipe);
  if (isOver || lastRollout?.replicas === 0) return undefined;
  const begunMs = rollout.isSeen ? startedAtMs(pipe, nowMs) : nowMs;
  const sinceMs = Math.max(resumedAtMs(rollout.progressing, nowMs), renewedAtMs(subject), begunMs);
  const timeoutMs = timeoutMsOf(pipe, subject);
  // A pod that is created again and again makes no progress, so all steps together have a limit.
  const allStepsMs = stepsOf(pipe) * timeoutMs;
  const [stepEndsAtMs, endsAtMs] = [stepBeganAtMs(subject, sinceMs) + timeoutMs, sinceMs + allStepsMs];
  const late =
    stepEndsAtMs < endsAtMs
      ? `, and has replaced no pod for ${describeDuration(timeoutMs)}`
      : ` in ${describeDuration(allStepsMs)}`;
  const message = `the rollout has not completed${late}${because || awaited(subject)}`;
  return { reason: "RolloutTimeout", message, atMs: Math.min(stepEndsAtMs, endsAtMs) };
}

/** When the owner changed or resumed a rollout, in milliseconds since 1970. A StatefulSet does not show which it was. */
function renewedAtMs({ pipe, nowMs, timeouts }: Subject): number {
  const { inTurn, rollout, lastRollout, metadata } = pipe;
  if (!inTurn) return isChangedByOwner(pipe) ? rollout.progressedAtS * 1000 : 0;
  // Otherwise, the controller was the last to change the spec, and later writes changed only annotations or labels.
  const isSpecChanged = lastRollout !== undefined && metadata.generation > lastRollout.generation;
  return isSpecChanged ? Math.min(inTurn.writtenAtMs, startedAtMs(pipe, nowMs) + timeouts.renewalMs) : 0;
}

/**
 * A pipe that got its size without replicas has no rollout that could time out. But if none of its pods is ready for
 * the time of a rollout, the size does not work.
 */
function neverReady(subject: Subject, because: string): RolloutEnd | undefined {
  const { pipe, nowMs } = subject;
  const unreadyMs = pipe.lastRollout?.replicas === 0 ? unreadySinceMs(subject) : undefined;
  if (unreadyMs === undefined) return undefined;
  const timeoutMs = timeoutMsOf(pipe, subject);
  const message = `no pod has become ready in ${describeDuration(timeoutMs)} after the pipe was scaled up${because}`;
  return {
    reason: "RolloutTimeout",
    message,
    atMs: Math.max(unreadyMs, startedAtMs(pipe, nowMs)) + timeoutMs,
  };
}

/**
 * Since when all pods have the size of the template and none is ready, in milliseconds since 1970; `undefined` if that
 * is not so. If the pods are not seen, the status of the workload shows it.
 */
function unreadySinceMs(subject: Subject): number | undefined {
  const { pipe, active } = subject;
  if (!seesPods(subject)) return pipe.rollout.unavailableSinceMs;
  const isReadyOrOther = (each: ActivePod) => each.pod.isReady || !hasSizeOf(pipe, each);
  if (active.length === 0 || active.some(isReadyOrOther)) return undefined;
  return Math.max(...active.map(({ pod }) => pod.readyChangedAtMs));
}

/** The pod has the size of the template. */
function hasSizeOf({ size }: PipeView, { own }: ActivePod): boolean {
  return own !== undefined && sameSize(sizeOf(own), size);
}

/** For people: the pod that keeps a StatefulSet from replacing the next one, and what to do about it. */
function awaited(subject: Subject): string {
  const { pod } = awaitedOldPod(subject) ?? {};
  if (!pod) return "";
  return `: Kubernetes waits for the pod ${pod.metadata.name}, which is not ready and has an earlier template; repair or delete it`;
}

/**
 * When the present step of a rollout began, because a pod is created when the one before it is available; infinite if
 * that is not known.
 */
function stepBeganAtMs(subject: Subject, sinceMs: number): number {
  const { pipe, active } = subject;
  if (!pipe.inTurn || !seesPods(subject)) return Number.POSITIVE_INFINITY;
  const replaced = active.filter((each) => hasSizeOf(pipe, each));
  return Math.max(sinceMs, ...replaced.map(({ pod }) => pod.createdAtMs));
}

/**
 * Pausing sets the status of the condition to Unknown. Resuming leaves it so, and the transition time is still that of
 * the pause.
 */
function resumedAtMs(progressing: DeploymentCondition | undefined, nowMs: number): number {
  const { reason, lastTransitionTime, lastUpdateTime } = progressing ?? {};
  // The Deployment controller has not observed yet that the rollout is resumed.
  if (reason === "DeploymentPaused") return nowMs;
  return Math.min(nowMs, parseTime(reason === "DeploymentResumed" ? lastUpdateTime : lastTransitionTime));
}

function describeDuration(ms: number): string {
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}
