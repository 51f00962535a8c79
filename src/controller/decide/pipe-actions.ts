import { failureReason } from "../../crd/reasons.ts";
import type { PipeState } from "../../domain/rollout-plan.ts";
import { formatSize, type Size, sameSize } from "../../domain/size.ts";
import { type DeploymentView, isChangedByOwner, isRollingOut } from "../observe/deployment-view.ts";
import { appliedSize, type LastRollout } from "../observe/last-rollout.ts";
import { type PipeScalingView, requestedSize } from "../observe/pipe-scaling-view.ts";
import { type Allotment, isSize } from "../observe/resources.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { WritePurpose, WriteRecord } from "../observe/write-record.ts";
import type { PipeAction } from "./actions.ts";
import type { Assessment } from "./assessment.ts";
import { hasComeUp, lastSizeThatCameUp } from "./came-up.ts";
import { type Cause, clipped } from "./failure.ts";
import { FIELD_CONFLICT, retryAtMs, retryDelayMs, writeDelayMs } from "./retry.ts";
import type { Step } from "./sizing.ts";

export function resize(assessment: Assessment, step: Step): PipeAction[] {
  const { pipe, priorAttempts = 0 } = assessment;
  if ("problem" in pipe.container) return [];
  const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, step.scaling));
  return [{ type: "resize", pipe, container: pipe.container.name, rollout }];
}

/** Returns the writes for a pipe that is not resized now. */
export function repair(assessment: Assessment, step: Step): PipeAction[] {
  const { pipe, state, failure, abandoned, recheckAtMs } = assessment;
  const { scaling, sizing, snapshot } = step;
  if (abandoned && pipe.lastRollout) return rollBack(pipe, pipe.lastRollout.size, abandoned, step);
  const isSized = sameSize(pipe.size, sizing.desired.size);
  if (isSized && isAdoptable(assessment) && !isRecorded(pipe, step) && requestedSize(scaling))
    return adopt(pipe, step);
  if (state !== "failed" || !isSized || !failure) return [];
  if (failure.reason === FIELD_CONFLICT) return restoreAnnotation(assessment, step);
  const isWaiting = recheckAtMs !== undefined && recheckAtMs > snapshot.nowMs;
  if (isWaiting) return [];
  const cause = { reason: failureReason(failure.reason), message: failure.message };
  return rollBack(pipe, sizing.desired.size, cause, step);
}

/** Writes a removed annotation again. Only a write shows whether something still removes it. */
function restoreAnnotation({ pipe, recheckAtMs }: Assessment, { snapshot }: Step): PipeAction[] {
  const isDue = recheckAtMs !== undefined && recheckAtMs <= snapshot.nowMs;
  return isDue && pipe.lastRollout ? [{ type: "adopt", pipe, rollout: pipe.lastRollout }] : [];
}

const ADOPTABLE: readonly PipeState[] = ["done", "rolling", "paused"];

/** The annotation of an adopted pipe records no rollout, so it would hide one that the controller began. */
function isAdoptable({ pipe, state }: Assessment): boolean {
  const mayBeOurs = pipe.resizedAtMs !== undefined || isRollingOut(pipe);
  return ADOPTABLE.includes(state) && !(state === "rolling" && mayBeOurs);
}

/**
 * Returns true if the annotation has the current size of the pipe, so the size survives a deletion of the PipeScaling.
 */
function isRecorded({ lastRollout, size }: DeploymentView, { snapshot }: Step): boolean {
  const applied = appliedSize(lastRollout);
  return lastRollout?.serviceId === snapshot.serviceId && isSize(applied) && sameSize(applied, size);
}

/** @param failed the size whose rollout failed */
function rollBack(pipe: DeploymentView, failed: Size, { reason, message }: Cause, step: Step): PipeAction[] {
  const { lastRollout } = pipe;
  const size = lastRollout?.lastGoodSize;
  // After a deletion of the PipeScaling, it is unknown whether the pipe came up before its owner changed it. The
  // deletion must not resize the pipe.
  if (lastRollout?.scalingUid !== step.scaling.metadata.uid && isChangedByOwner(pipe)) return [];
  if ("problem" in pipe.container || !lastRollout || !size) return [];
  const isSame = isSize(size) && sameSize(size, failed);
  if (isSame || !mayWrite("roll-back", pipe, failed, step)) return [];
  const rollout: LastRollout = {
    ...newRollout(pipe, step, lastRollout.attempts, size),
    size: failed,
    isRollback: true,
    // The annotation has only the beginning; the status has the whole message.
    failure: { reason, message: clipped(message, ANNOTATED_MESSAGE_LIMIT) },
  };
  return [{ type: "roll-back", pipe, container: pipe.container.name, size, rollout }];
}

const ANNOTATED_MESSAGE_LIMIT = 400;

function adopt(pipe: DeploymentView, step: Step): PipeAction[] {
  if (!mayWrite("adopt", pipe, step.sizing.desired.size, step)) return [];
  const rollout: LastRollout = {
    ...newRollout(pipe, step, 0, lastGoodSize(pipe, step.scaling)),
    generation: 0,
    revision: pipe.revision,
    progressedAtS: 0,
  };
  return [{ type: "adopt", pipe, rollout }];
}

/** Limits the attempts of this process, even if the object never shows its writes. */
function mayWrite(purpose: WritePurpose, pipe: DeploymentView, size: Size, step: Step): boolean {
  const { snapshot, scaling } = step;
  const write = snapshot.writes.get(pipe.metadata.uid);
  if (write?.outcome.type === "pending") return false;
  if (write?.purpose !== purpose || write.size !== formatSize(size)) return true;
  return repeatableAtMs(write, pipe, scaling, snapshot) <= snapshot.nowMs;
}

/** When a write that has ended may be repeated, in milliseconds since 1970; infinite if only a retry can be. */
export function repeatableAtMs(
  { attempts, lastAtMs, outcome }: WriteRecord,
  { metadata }: DeploymentView,
  scaling: PipeScalingView,
  { nowMs, timeouts }: Pick<Snapshot, "nowMs" | "timeouts">,
): number {
  const delayMs =
    outcome.type === "failed"
      ? writeDelayMs(outcome.error.reason, attempts, outcome.generation !== metadata.generation, timeouts)
      : retryDelayMs(FIELD_CONFLICT, attempts, timeouts);
  return retryAtMs(lastAtMs, delayMs, scaling, nowMs);
}

export function newRollout(
  pipe: DeploymentView,
  { snapshot, scaling, sizing }: Step,
  attempts: number,
  lastGood: Allotment | undefined,
): LastRollout {
  const { metadata } = scaling;
  return {
    size: sizing.desired.size,
    isRollback: false,
    lastGoodSize: lastGood,
    startedAtMs: snapshot.nowMs,
    attempts,
    serviceId: snapshot.serviceId,
    scalingUid: metadata.uid,
    scalingGeneration: metadata.generation,
    requestId: sizing.requestId,
    generation: pipe.metadata.generation + 1,
    revision: pipe.revision + 1,
    progressedAtS: pipe.rollout.progressedAtS,
    replicas: pipe.replicas,
  };
}

/** The size in the template of a pipe is proven only after its rollout completes. */
export function lastGoodSize(pipe: DeploymentView, scaling: PipeScalingView): Allotment | undefined {
  const { rollout, size, otherResources, lastRollout } = pipe;
  if (rollout.isComplete || hasComeUp(pipe, scaling)) return size ?? otherResources;
  return lastSizeThatCameUp(pipe, scaling) ?? lastRollout?.lastGoodSize;
}
