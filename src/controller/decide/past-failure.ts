import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { formatSize, sameSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { WriteError, WriteRecord } from "../observe/write-record.ts";
import type { AssessContext } from "./assessment.ts";
import { type Cause, failureOf, reportedFailure, rollbackFailed } from "./failure.ts";
import { fieldConflict } from "./field-conflict.ts";
import { isOfRollout, isRefusal, retryAtMs, writeDelayMs } from "./retry.ts";

/** Returns the reason why the pipe does not have the desired size: a write, a rollout, or another writer. */
export function pastFailure(
  pipe: DeploymentView,
  write: WriteRecord | undefined,
  context: AssessContext,
): PipeFailure | undefined {
  const { metadata } = pipe;
  // Another writer may have removed the annotation with the rollback.
  const lastRollout =
    pipe.lastRollout ?? (write?.outcome.type === "done" ? write.outcome.lastRollout : undefined);
  if (
    write?.purpose === "resize" &&
    write.size === formatSize(context.desired) &&
    write.outcome.type === "failed"
  )
    return writeFailure(pipe, write, write.outcome.error, context);
  if (lastRollout?.isRollback && sameSize(lastRollout.size, context.desired)) {
    const cause: Cause = lastRollout.failure ?? {
      reason: "RolloutFailed",
      message: "the rollout did not complete",
    };
    return failureOf(pipe, cause, Math.max(1, lastRollout.attempts), lastRollout.startedAtMs, context);
  }
  const conflict = fieldConflict(pipe, context);
  if (conflict) return conflict;
  const reported = reportedFailure(pipe, context);
  if (!reported) return undefined;
  // After a restart of the controller, only the status has it.
  if (isOfRollout(reported.reason)) return reported;
  const isStillRefused = isRefusal(reported.reason) && reported.generation === metadata.generation;
  return isStillRefused && !write ? reported : undefined;
}

/** The failure of the last write, which may still succeed if its outcome is unknown. */
export function writeFailure(
  pipe: DeploymentView,
  { attempts, lastAtMs, outcome }: WriteRecord,
  error: WriteError,
  context: AssessContext,
): PipeFailure {
  const failure = failureOf(pipe, error, attempts, lastAtMs, context);
  const isRefused = outcome.type === "failed" && isRefusal(error.reason);
  return { ...failure, ...(isRefused ? { generation: outcome.generation } : {}) };
}

interface FailedRollback {
  readonly message: string;
  readonly retryAtMs: number;
}

/** Absent unless the last write was a rollback from the desired size, and failed. */
export function failedRollback(
  { metadata }: DeploymentView,
  write: WriteRecord | undefined,
  { desired, nowMs, scaling, timeouts }: AssessContext,
): FailedRollback | undefined {
  if (write?.purpose !== "roll-back" || write.size !== formatSize(desired)) return undefined;
  if (write.outcome.type !== "failed") return undefined;
  const { error, generation } = write.outcome;
  const isChanged = generation !== metadata.generation;
  const delayMs = writeDelayMs(error.reason, write.attempts, isChanged, timeouts);
  const atMs = retryAtMs(write.lastAtMs, delayMs, scaling, nowMs);
  const next = `attempt ${write.attempts}, next at ${new Date(atMs).toISOString()}`;
  return { message: rollbackFailed(`${error.message} (${next})`), retryAtMs: atMs };
}
