import { elapsedMs } from "../../runtime/elapsed.ts";
import { currentFailure, type FailedStep, repeatedStepOf } from "../in-place/failed-step.ts";
import type { InPlaceStep } from "../in-place/steps.ts";
import type { Fallback } from "../in-place/view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Action } from "./actions.ts";
import { retryAtMs, retryDelayMs } from "./retry.ts";

type Context = Pick<Snapshot, "failedSteps" | "scaling" | "nowMs" | "timeouts">;

/** Returns the failure of the last attempt of a step. */
export function failureOfStep(
  { metadata }: DeploymentView,
  step: InPlaceStep | "begin",
  { failedSteps, nowMs }: Context,
): FailedStep | undefined {
  return step === "begin"
    ? undefined
    : currentFailure(failedSteps.get(metadata.uid), repeatedStepOf(step), nowMs);
}

/** Returns false for a write that is in flight, or that failed and is repeated later. */
export function isDue(action: Action, context: Context & Pick<Snapshot, "stepsInFlight">): boolean {
  const type = repeatedStepOf(action);
  if (!type || !("pipe" in action)) return true;
  if (context.stepsInFlight.has(action.pipe.metadata.uid)) return false;
  const failed = currentFailure(context.failedSteps.get(action.pipe.metadata.uid), type, context.nowMs);
  return !failed || stepRetryAtMs(failed, context) <= context.nowMs;
}

/** When a failed step is repeated, in milliseconds since 1970. Until then, a Deployment may be paused by us. */
export function stepRetryAtMs(
  { attempts, error, lastAtMs }: FailedStep,
  { scaling, nowMs, timeouts }: Pick<Context, "scaling" | "nowMs" | "timeouts">,
): number {
  const delayMs = Math.max(retryDelayMs("WriteFailed", attempts, timeouts), error.retryAfterMs ?? 0);
  return retryAtMs(lastAtMs, delayMs, scaling ?? { retryRequestedAtMs: undefined }, nowMs);
}

/** Other pipes do not wait for a step that has failed for so long. */
export function failsTooLong(
  { firstAtMs }: FailedStep,
  { nowMs, timeouts }: Pick<Context, "nowMs" | "timeouts">,
): boolean {
  return elapsedMs(firstAtMs, nowMs) >= timeouts.failedStepMs;
}

/** The pipe falls back to a rollout if a ReplicaSet cannot be deleted for so long. */
export function failedDeletion({ metadata }: DeploymentView, context: Context): Fallback | undefined {
  const { failedSteps, nowMs, timeouts } = context;
  const failed = currentFailure(failedSteps.get(metadata.uid), "delete-replica-set", nowMs);
  if (!failed || !failsTooLong(failed, context)) return undefined;
  const within = `within ${timeouts.failedStepMs / 1000} s`;
  const message = `a ReplicaSet with the size could not be deleted ${within}: ${failed.error.message}`;
  return { reason: "CommitTimeout", message };
}
