import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import { sameSize } from "../../domain/size.ts";
import type { FailedStep } from "../in-place/failed-step.ts";
import type { InPlaceStep } from "../in-place/steps.ts";
import { type DeploymentView, isChangedByOwner, isRollingOut } from "../observe/deployment-view.ts";
import type { WriteRecord } from "../observe/write-record.ts";
import type { AssessContext, Assessment } from "./assessment.ts";
import { hasComeUp, isProven } from "./came-up.ts";
import { failsTooLong, failureOfStep, stepRetryAtMs } from "./failed-step.ts";
import { failureOf } from "./failure.ts";
import { autoscalerConflict, strippedAnnotation } from "./field-conflict.ts";
import { inPlaceStep, isInProgress } from "./in-place.ts";
import { failedRollback, pastFailure, writeFailure } from "./past-failure.ts";
import { remarkOn } from "./remark.ts";
import { isOfRollout, isOfWrite, isRetryRequested, retryAtMs, retryDelayMs, writeDelayMs } from "./retry.ts";
import { rolloutFailure, rolloutRecheckAtMs } from "./rollout-failure.ts";
import { rolloutPhase } from "./rollout-phase.ts";

type Result = Omit<Assessment, "pipe" | "phase"> & Partial<Pick<Assessment, "phase">>;

/** The state of a pipe, and the reason for it, is decided only here. */
export function assess(pipe: DeploymentView, context: AssessContext): Assessment {
  const phase = rolloutPhase(pipe, context);
  const result = unsizable(pipe, context) ?? assessSizable(pipe, context);
  const { abandoned, recheckAtMs = Number.POSITIVE_INFINITY } = abandonedRollout(pipe, context);
  const atMs = Math.min(recheckAtMs, result.recheckAtMs ?? Number.POSITIVE_INFINITY);
  return {
    ...{ pipe, phase, ...result },
    abandoned,
    recheckAtMs: Number.isFinite(atMs) ? atMs : undefined,
    remark: remarkOn(pipe, result.state, context),
  };
}

/**
 * Such a rollout has stopped the old pods, even if another size is desired now. Other pipes still have their old pods.
 */
function abandonedRollout(
  pipe: DeploymentView,
  context: AssessContext,
): Pick<Assessment, "abandoned" | "recheckAtMs"> {
  const isWanted = sameSize(pipe.size, context.desired) || pipe.lastRollout?.isRollback;
  if (isWanted || !pipe.stopsOldPodsFirst || !isRollingOut(pipe)) return {};
  if (hasComeUp(pipe, context.scaling)) return {};
  const cause = rolloutFailure(pipe, context);
  return cause ? { abandoned: cause } : { recheckAtMs: rolloutRecheckAtMs(pipe, context) };
}

/** Problems that someone must fix before the pipe can be resized. */
function unsizable(pipe: DeploymentView, context: AssessContext): Result | undefined {
  const { container, cpuLimitMillicores, size } = pipe;
  const failing = (reason: FailureReason, message: string): Result => ({
    state: "unsizable",
    failure: failureOf(pipe, { reason, message }, 1, context.nowMs, context),
  });
  if ("problem" in container) return failing("ContainerUnclear", container.problem);
  const autoscalers = context.autoscalers.get(pipe.metadata.name);
  const vertical = autoscalers?.find(({ kind }) => kind === "VerticalPodAutoscaler");
  if (vertical) {
    const { reason, message } = autoscalerConflict(vertical);
    return failing(reason, message);
  }
  const { desired } = context;
  if (
    cpuLimitMillicores === undefined ||
    sameSize(size, desired) ||
    cpuLimitMillicores >= desired.cpuMillicores
  )
    return undefined;
  return failing(
    "CpuLimitTooLow",
    `the container "${container.name}" has a CPU limit of ${cpuLimitMillicores}m, which is below the ${desired.cpuMillicores}m of the size: remove limits.cpu, or set it to at least that`,
  );
}

function assessSizable(pipe: DeploymentView, context: AssessContext): Result {
  const write = context.writes.get(pipe.metadata.uid);
  const isSized = sameSize(pipe.size, context.desired);
  // A response or a read soon shows the outcome of the last write. Until then it counts as a rollout.
  if (write?.outcome.type === "pending" && write.purpose === "roll-back" && isSized)
    return { ...assessSized(pipe, write, context), phase: "rolling-out" };
  if (write?.outcome.type === "pending")
    return { state: "rolling", phase: "rolling-out", ...resizeInProgress(pipe, context) };
  if (write?.outcome.type === "unknown") {
    const failure = writeFailure(pipe, write, write.outcome.error, context);
    return { state: "retrying", phase: "rolling-out", failure, ...resizeInProgress(pipe, context) };
  }
  const next = inPlaceStep(pipe, context);
  if (next) return inPlaceResult(pipe, next, context);
  return isSized ? assessSized(pipe, write, context) : assessUnsized(pipe, write, context);
}

/** The resize in place goes on after the write. If it ended, another pipe would be the canary beside this one. */
function resizeInProgress(pipe: DeploymentView, context: AssessContext): Pick<Result, "inPlace"> {
  return isInProgress(pipe, context) ? { inPlace: { type: "wait", untilMs: Number.POSITIVE_INFINITY } } : {};
}

/** A resize in place counts as a rollout until it ends. */
function inPlaceResult(pipe: DeploymentView, next: InPlaceStep | "begin", context: AssessContext): Result {
  const { inPlace, nowMs } = context;
  const failed = failureOfStep(pipe, next, context);
  if (failed) return failedStepResult(pipe, next, failed, context);
  const view = inPlace.get(pipe.metadata.uid);
  const waitMs = next !== "begin" && next.type === "wait" && view ? next.untilMs - view.nowMs : undefined;
  const recheck = waitMs === undefined ? {} : { recheckAtMs: nowMs + waitMs };
  return { state: "rolling", phase: "rolling-out", inPlace: next, ...recheck };
}

/** Other pipes wait for it as for a rollout, but not for ever. */
function failedStepResult(
  pipe: DeploymentView,
  inPlace: InPlaceStep | "begin",
  failed: FailedStep,
  context: AssessContext,
): Result {
  const failure = failureOf(pipe, failed.error, failed.attempts, failed.lastAtMs, context);
  const result = {
    ...withRetry(failure, stepRetryAtMs(failed, context)),
    state: "retrying",
    inPlace,
  } as const;
  return failsTooLong(failed, context) ? result : { ...result, phase: "rolling-out" };
}

/** The template has the desired size. A failed rollout takes precedence, because the pipe may have no pod left. */
function assessSized(pipe: DeploymentView, write: WriteRecord | undefined, context: AssessContext): Result {
  const ofRollout = assessRollout(pipe, write, context);
  const stripped = strippedAnnotation(pipe, context);
  if (ofRollout.failure || !stripped) return ofRollout;
  const delayMs = retryDelayMs(stripped.reason, stripped.attempts, context.timeouts);
  const retry = withRetry(
    stripped,
    retryAtMs(Date.parse(stripped.at), delayMs, context.scaling, context.nowMs),
  );
  const times = [retry.recheckAtMs, ofRollout.recheckAtMs].filter((atMs) => atMs !== undefined);
  return { ...retry, state: "failed", ...(times.length > 0 ? { recheckAtMs: Math.min(...times) } : {}) };
}

function assessRollout(pipe: DeploymentView, write: WriteRecord | undefined, context: AssessContext): Result {
  if (isProven(pipe, context.scaling) || hasComeUp(pipe, context.scaling)) return { state: "done" };
  if (pipe.isPaused) return { state: "paused" };
  if (!hasOwnRollout(pipe)) return { state: "rolling" };
  const failed = rolloutFailure(pipe, context);
  if (failed) {
    const attempts = Math.max(1, pipe.lastRollout?.attempts ?? 1);
    const rollback = failedRollback(pipe, write, context);
    const message = [failed.message, ...(rollback ? [rollback.message] : [])].join("; ");
    const failure = failureOf(pipe, { ...failed, message }, attempts, context.nowMs, context);
    return { state: "failed", failure, ...(rollback ? { recheckAtMs: rollback.retryAtMs } : {}) };
  }
  const obstacle = context.unschedulable.get(pipe.metadata.name);
  const atMs = rolloutRecheckAtMs(pipe, context);
  return {
    state: "rolling",
    ...(Number.isFinite(atMs) ? { recheckAtMs: atMs } : {}),
    ...(obstacle === undefined ? {} : { obstacle }),
  };
}

/** Only rollouts of the controller can fail; owners monitor their own rollouts. */
function hasOwnRollout(pipe: DeploymentView): boolean {
  const { lastRollout } = pipe;
  return (
    lastRollout !== undefined && lastRollout.generation > 0 && (isRollingOut(pipe) || isChangedByOwner(pipe))
  );
}

/** The template does not have the desired size. */
function assessUnsized(pipe: DeploymentView, write: WriteRecord | undefined, context: AssessContext): Result {
  const failure = pastFailure(pipe, write, context);
  if (!failure) return { state: "waiting" };
  const askedMs = write?.outcome.type === "failed" ? (write.outcome.error.retryAfterMs ?? 0) : 0;
  const delayMs = Math.max(delayAfter(pipe, failure, context), askedMs);
  const { scaling, nowMs } = context;
  const failedAtMs = Date.parse(failure.at);
  const dueAtMs = retryAtMs(failedAtMs, delayMs, scaling, nowMs);
  if (dueAtMs <= nowMs)
    return {
      state: "waiting",
      priorAttempts: failure.attempts,
      isRetryRequested: isRetryRequested(failedAtMs, scaling, nowMs),
    };
  return { state: isOfWrite(failure.reason) ? "retrying" : "failed", ...withRetry(failure, dueAtMs) };
}

function withRetry(failure: PipeFailure, dueAtMs: number): Pick<Result, "failure" | "recheckAtMs"> {
  if (!Number.isFinite(dueAtMs)) return { failure };
  return { failure: { ...failure, nextRetryAt: new Date(dueAtMs).toISOString() }, recheckAtMs: dueAtMs };
}

/** A rollout that stopped old pods is not retried automatically, because each attempt interrupts the pipe. */
function delayAfter(
  { stopsOldPodsFirst, metadata }: DeploymentView,
  failure: PipeFailure,
  { timeouts }: AssessContext,
): number {
  if (stopsOldPodsFirst && isOfRollout(failure.reason)) return Number.POSITIVE_INFINITY;
  const isChanged = failure.generation !== metadata.generation;
  return writeDelayMs(failure.reason, failure.attempts, isChanged, timeouts);
}
