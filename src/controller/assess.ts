import type { PipeFailure } from "../crd/pipe-scaling.ts";
import type { PipeState } from "../domain/rollout-plan.ts";
import { formatSize, type Size, sameSize } from "../domain/size.ts";
import type { DeploymentCondition } from "../kube/objects.ts";
import type { Attempt } from "./attempt.ts";
import type { Autoscaler } from "./autoscaler.ts";
import type { Pipe } from "./pipe.ts";
import type { Scaling } from "./scaling.ts";

/** How one pipe stands to the desired size, and since when it is in the way if it is. */
export interface Assessment {
  readonly pipe: Pipe;
  readonly state: PipeState;
  readonly failure?: PipeFailure;
  /** What a person should know of the pipe beside. */
  readonly remark?: string;
  /** What a rollout waits for, where that is known. */
  readonly obstacle?: string;
  /** How often a waiting pipe was tried at this size before. */
  readonly priorAttempts?: number;
  /** When time alone may change this assessment. */
  readonly recheckAtMs?: number;
}

export interface AssessContext {
  readonly desired: Size;
  readonly scaling: Scaling | undefined;
  /** Failures known from before, newest first. */
  readonly failures: readonly PipeFailure[];
  /** The scheduler's words, by the name of the pipe whose new pod fits no node. */
  readonly unschedulable: ReadonlyMap<string, string>;
  /** What else acts on the size of a pipe's container, by the pipe's name. */
  readonly autoscalers: ReadonlyMap<string, readonly Autoscaler[]>;
  readonly nowMs: number;
  readonly rolloutTimeoutMs: number;
}

/** ReplicaFailure comes and goes in healthy rollouts; one that lasts is real (kubernetes-facts.md). */
const REPLICA_FAILURE_GRACE_MS = 30_000;

const CONTEST = "FieldContest";
const UNSCHEDULABLE = "Unschedulable";
const CONTAINER_UNCLEAR = "ContainerUnclear";
/** The API server would not have the size at all. */
export const REFUSED = "Refused";
/** How long after giving a size it is given again when another writer has taken it back; then never. */
const CONTEST_PAUSES_MS = [0, 10_000, 60_000];

const RETRY_FIRST_MS = 5 * 60_000;
const RETRY_MOST_MS = 60 * 60_000;

export function assess(pipe: Pipe, context: AssessContext): Assessment {
  const { container } = pipe;
  if ("problem" in container) {
    return unsizable(pipe, { reason: CONTAINER_UNCLEAR, message: container.problem }, context);
  }
  const autoscalers = context.autoscalers.get(pipe.metadata.name) ?? [];
  const vertical = autoscalers.find(({ kind }) => kind === "VerticalPodAutoscaler");
  if (vertical) return unsizable(pipe, { reason: CONTEST, message: contestWith(vertical) }, context);
  const assessment = assessSizable(pipe, context);
  const [horizontal] = autoscalers;
  if (!horizontal) return assessment;
  const name = JSON.stringify(horizontal.metadata.name);
  const remark = `The replicas of ${pipe.metadata.name} are set by the HorizontalPodAutoscaler ${name}, which measures by its requests: another size may change how many there are.`;
  return { ...assessment, remark };
}

/** Its pods would not have what the Deployment says, however often that is written. */
function contestWith({ metadata }: Autoscaler): string {
  const name = JSON.stringify(metadata.name);
  return `the VerticalPodAutoscaler ${name} sets the size of its pods too: delete it, set its updateMode to "Off", or exempt the container from it`;
}

function assessSizable(pipe: Pipe, context: AssessContext): Assessment {
  if (sameSize(pipe.size, context.desired)) return assessGiven(pipe, context);
  const failure = contest(pipe, context) ?? pastFailure(pipe, context);
  if (!failure) return { pipe, state: "waiting" };
  const retryAtMs = Date.parse(failure.at) + retryDelayMs(pipe, failure);
  const isAsked = (context.scaling?.retryRequestedAtMs ?? 0) > Date.parse(failure.at);
  if (isAsked || retryAtMs <= context.nowMs) {
    return { pipe, state: "waiting", priorAttempts: failure.attempts };
  }
  return {
    pipe,
    state: "failed",
    failure,
    ...(retryAtMs < Number.POSITIVE_INFINITY ? { recheckAtMs: retryAtMs } : {}),
  };
}

/**
 * 5 minutes after the first failure, doubling to an hour; a contest sooner, but only a few times. A rollout
 * that stops the old pod first is not tried again by itself: each try costs the pipe's data freshness.
 */
function retryDelayMs({ isRecreated }: Pipe, { reason, attempts }: PipeFailure): number {
  if (reason === CONTEST) return CONTEST_PAUSES_MS[attempts - 1] ?? Number.POSITIVE_INFINITY;
  if (isRecreated && reason !== REFUSED) return Number.POSITIVE_INFINITY;
  return Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** Math.min(20, attempts - 1));
}

/** A pipe whose template has the desired size. */
function assessGiven(pipe: Pipe, context: AssessContext): Assessment {
  if (pipe.rollout.isComplete || isLatched(pipe, context)) return { pipe, state: "done" };
  if (pipe.isPaused) return { pipe, state: "paused" };
  const attempt = pipe.attempt;
  if (!attempt || !sameSize(attempt.size, context.desired)) return { pipe, state: "rolling" };
  const failed = rolloutFailure(pipe, attempt, context);
  if (failed) {
    const failure = failureOf(pipe, attempt.size, failed, attempt.attempts, context.nowMs, context);
    return { pipe, state: "failed", failure };
  }
  const obstacle = context.unschedulable.get(pipe.metadata.name);
  const recheckAtMs = recheckAt(pipe, attempt, context);
  return { pipe, state: "rolling", recheckAtMs, ...(obstacle === undefined ? {} : { obstacle }) };
}

/**
 * Ready is about size, not health: once the whole service was reported complete at this size, whatever
 * becomes of the pods afterwards does not undo it. Derived from the status, so a crash does not forget it.
 */
function isLatched(pipe: Pipe, { desired, scaling }: AssessContext): boolean {
  const completedAtMs = Date.parse(scaling?.status.propagation?.completedAt ?? "");
  const reported = scaling?.status.desired;
  const isSame =
    reported?.replicaCpuMillicores === desired.cpuMillicores &&
    reported.replicaMemoryGb === desired.memoryGib;
  const givenAtMs = sameSize(pipe.attempt?.size, desired) ? (pipe.attempt?.startedAtMs ?? 0) : 0;
  return isSame && pipe.createdAtMs < completedAtMs && givenAtMs < completedAtMs;
}

interface Reason {
  readonly reason: string;
  readonly message: string;
}

function rolloutFailure(pipe: Pipe, attempt: Attempt, context: AssessContext): Reason | undefined {
  const { progressing, replicaFailure } = pipe.rollout;
  const unschedulable = context.unschedulable.get(pipe.metadata.name);
  // It has stopped its old pods already; the others keep theirs, and a node may yet come.
  if (pipe.isRecreated && unschedulable !== undefined) {
    return { reason: UNSCHEDULABLE, message: unschedulable };
  }
  const because = unschedulable === undefined ? "" : `: ${unschedulable}`;
  // An older deadline's condition survives in a Recreate Deployment (kubernetes-facts.md).
  if (
    progressing?.reason === "ProgressDeadlineExceeded" &&
    Date.parse(progressing.lastUpdateTime ?? "") > attempt.startedAtMs
  ) {
    return { reason: "ProgressDeadlineExceeded", message: `${progressing.message ?? ""}${because}` };
  }
  if (replicaFailure?.status === "True" && graceEndsAt(pipe, attempt) <= context.nowMs) {
    return { reason: replicaFailure.reason ?? "ReplicaFailure", message: replicaFailure.message ?? "" };
  }
  if (timeoutAt(pipe, attempt, context) <= context.nowMs) {
    const minutes = Math.round(context.rolloutTimeoutMs / 60_000);
    return { reason: "RolloutTimeout", message: `the rollout has not completed in ${minutes} min${because}` };
  }
  return undefined;
}

/** When a ReplicaFailure that holds has held long enough: at once where no pod is left to wait with. */
function graceEndsAt({ rollout }: Pipe, attempt: Attempt): number {
  const since = Date.parse(rollout.replicaFailure?.lastTransitionTime ?? "");
  // It may be left from the size before; times of conditions are whole seconds.
  const isOfAttempt = since > attempt.startedAtMs - 1000;
  if (rollout.isWithoutPods && isOfAttempt) return since;
  return Math.max(since, attempt.startedAtMs) + REPLICA_FAILURE_GRACE_MS;
}

function recheckAt(pipe: Pipe, attempt: Attempt, context: AssessContext): number {
  const latest = timeoutAt(pipe, attempt, context);
  return pipe.rollout.replicaFailure?.status === "True"
    ? Math.min(latest, graceEndsAt(pipe, attempt))
    : latest;
}

/** A rollout that its owner paused has its whole time once it goes on. */
function timeoutAt({ rollout }: Pipe, attempt: Attempt, context: AssessContext): number {
  const { nowMs, rolloutTimeoutMs } = context;
  return Math.max(resumedAt(rollout.progressing, nowMs), attempt.startedAtMs) + rolloutTimeoutMs;
}

/** To pause and to resume leaves the condition's status as it is, so that its transition tells of neither. */
function resumedAt(progressing: DeploymentCondition | undefined, nowMs: number): number {
  // That it is to go on has not been seen yet by who rolls it.
  if (progressing?.reason === "DeploymentPaused") return nowMs;
  const { lastTransitionTime, lastUpdateTime } = progressing ?? {};
  const at = progressing?.reason === "DeploymentResumed" ? lastUpdateTime : lastTransitionTime;
  return Date.parse(at ?? "") || 0;
}

/** Somebody else has set the fields that we own: the desired size was given, and is not there. */
function contest(pipe: Pipe, context: AssessContext): PipeFailure | undefined {
  const { desired } = context;
  const { attempt, givenSize } = pipe;
  if (!attempt || !sameSize(attempt.size, desired) || !sameSize(givenSize, desired)) return undefined;
  const message = `${otherWriter(pipe)} has changed the container's resources: leave requests.cpu, requests.memory and limits.memory out of what deploys this pipe`;
  return failureOf(
    pipe,
    desired,
    { reason: CONTEST, message },
    attempt.attempts,
    attempt.startedAtMs,
    context,
  );
}

function otherWriter({ otherWriters }: Pipe): string {
  const names = otherWriters.map((name) => JSON.stringify(name));
  return names.length === 0 ? "another writer" : `another writer, ${names.join(" and ")},`;
}

/** A failure at the desired size of a pipe that does not have it: refused outright, or put back since. */
function pastFailure(pipe: Pipe, context: AssessContext): PipeFailure | undefined {
  const { desired } = context;
  const known = knownFailure(pipe, desired, context);
  if (known && isOfAttempt(known)) return known;
  const { attempt, givenSize } = pipe;
  // Put back, and crashed before that was reported: the annotations tell.
  const wasPutBack =
    sameSize(attempt?.size, desired) && givenSize !== undefined && !sameSize(givenSize, desired);
  if (!attempt || !wasPutBack) return undefined;
  const reason = { reason: "RolloutFailed", message: "the rollout did not complete" };
  return failureOf(pipe, desired, reason, attempt.attempts, attempt.startedAtMs, context);
}

/** Others stand or fall with what is seen now. */
function isOfAttempt({ reason }: PipeFailure): boolean {
  return reason !== CONTEST && reason !== CONTAINER_UNCLEAR;
}

function knownFailure(pipe: Pipe, size: Size, { failures }: AssessContext): PipeFailure | undefined {
  return failures.find(
    (each) =>
      each.pipe === pipe.metadata.name &&
      each.size === formatSize(size) &&
      // What a Deployment of its name that is no more could not take says nothing of this one.
      Date.parse(each.at) >= pipe.createdAtMs,
  );
}

function failureOf(
  pipe: Pipe,
  size: Size,
  { reason, message }: Reason,
  attempts: number,
  atMs: number,
  context: AssessContext,
): PipeFailure {
  const reported = knownFailure(pipe, size, context);
  if (reported?.reason === reason && reported.attempts === attempts) return { ...reported, message };
  const at = new Date(atMs).toISOString();
  return { pipe: pipe.metadata.name, size: formatSize(size), reason, message, attempts, at };
}

function unsizable(pipe: Pipe, reason: Reason, context: AssessContext): Assessment {
  const { desired, nowMs } = context;
  return { pipe, state: "unsizable", failure: failureOf(pipe, desired, reason, 1, nowMs, context) };
}
