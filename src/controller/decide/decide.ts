import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import { type HoldBack, type PipeState, planRollout, serviceLimit } from "../../domain/rollout-plan.ts";
import { type RolloutWindowState, windowAt } from "../../domain/rollout-window.ts";
import { formatSize, type Size, sameSize } from "../../domain/size.ts";
import { type DesiredSize, desiredSize } from "../../domain/tier.ts";
import { type DeploymentView, isChangedByOwner } from "../observe/deployment-view.ts";
import { appliedSize, type LastRollout } from "../observe/last-rollout.ts";
import { type PipeScalingView, requestedSize } from "../observe/pipe-scaling-view.ts";
import { type Allotment, isSize } from "../observe/resources.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { validationKey } from "../observe/validation.ts";
import type { WritePurpose } from "../observe/write-record.ts";
import type { Action, PipeAction, ValidateAction } from "./actions.ts";
import { assess } from "./assess.ts";
import type { Assessment } from "./assessment.ts";
import { hasComeUp, lastSizeThatCameUp } from "./came-up.ts";
import { specForRecreation } from "./recreate.ts";
import { FIELD_CONFLICT, retryAtMs, retryDelayMs, writeDelayMs } from "./retry.ts";

export interface Decision {
  readonly actions: readonly Action[];
  /** Absent where the pipes are not to be sized at all. */
  readonly sizing?: Sizing;
}

export interface Sizing {
  readonly desired: DesiredSize;
  readonly requestId: string | undefined;
  readonly assessments: readonly Assessment[];
  readonly holdBack: HoldBack;
  /** Names of the pipes that the waiting ones wait for. */
  readonly blockedBy: readonly string[];
  /** Says if rollouts that restart pods may start now. */
  readonly window: RolloutWindowState;
  /** Most rollouts at once in this service. */
  readonly serviceLimit: number;
}

export interface DecideOptions {
  readonly rolloutTimeoutMs: number;
  /** Rollouts that may start before the limit over all services is reached. */
  readonly overallFree: number;
  /** True if dry runs of all waiting pipes come before a canary. */
  readonly validatesFirst: boolean;
}

/** A sequence of guards: each line is a reason to leave the pipes alone. */
export function decide(snapshot: Snapshot, options: DecideOptions): Decision {
  const { scaling, pipes, namespace, tier } = snapshot;
  const refreshes = refreshUnknown(snapshot);
  if (namespace === undefined || !tier.ok) return { actions: refreshes };
  if (!scaling) return { actions: [...refreshes, ...create(snapshot, namespace)] };
  if (scaling.isBeingDeleted) return { actions: refreshes };

  const desired = desiredSize(requestedSize(scaling), tier.value);
  const context = { ...snapshot, ...options, scaling, desired: desired.size };
  const assessments = pipes.map((pipe) => assess(pipe, context));
  const sizing: Sizing = {
    desired,
    requestId: requestIdOf(scaling, desired.size),
    assessments,
    holdBack: "nothing",
    blockedBy: [],
    window: ALWAYS_OPEN,
    serviceLimit: serviceLimit(pipes.length),
  };
  if (scaling.spec.suspend) return { actions: refreshes, sizing };
  const ahead = pipes.filter((pipe) => isFromLaterGeneration(pipe, scaling));
  if (ahead.length > 0) return { actions: [{ type: "confirm-generation", scaling, pipes: ahead }], sizing };

  const window = rolloutWindow(snapshot, scaling);
  const { start, holdBack, isCanary, blockedBy } = planRollout(assessments.map(planned), {
    ...options,
    isWindowOpen: window.open,
  });
  const step: Step = { snapshot, scaling, sizing };
  const validation = isCanary && options.validatesFirst ? validate(assessments, step) : VALIDATED;
  // A canary restarts a pipe, so before it everything is known that can be known without a restart.
  const starting = new Set(validation.isComplete ? start : start.filter((name) => isIdle(name, pipes)));
  const writes = assessments.flatMap((each) =>
    starting.has(each.pipe.metadata.name) ? resize(each, step) : repair(each, step),
  );
  const actions = [...refreshes, ...validation.actions, ...writes];
  return { actions, sizing: { ...sizing, holdBack, blockedBy, window } };
}

const ALWAYS_OPEN = { open: true, untilMs: Number.POSITIVE_INFINITY } as const;

function rolloutWindow(
  { rolloutWindow: window, nowMs }: Snapshot,
  { windowIgnoredUntilMs = 0 }: PipeScalingView,
): RolloutWindowState {
  if (!window || nowMs < windowIgnoredUntilMs) return ALWAYS_OPEN;
  return windowAt(window, nowMs);
}

interface Validation {
  readonly isComplete: boolean;
  readonly actions: readonly ValidateAction[];
}

const VALIDATED: Validation = { isComplete: true, actions: [] };

/** Dry runs of all pipes that wait, so that a refusal is known before the canary. One pipe alone needs none. */
function validate(assessments: readonly Assessment[], step: Step): Validation {
  const { snapshot, scaling, sizing } = step;
  const waiting = assessments.filter(({ pipe, state }) => state === "waiting" && pipe.replicas > 0);
  if (waiting.length < 2) return VALIDATED;
  const known = (pipe: DeploymentView) => {
    const validation = snapshot.validations.get(pipe.metadata.uid);
    return validation?.key === validationKey(pipe, sizing.desired.size) ? validation : undefined;
  };
  const actions = waiting.flatMap(({ pipe, priorAttempts = 0 }): ValidateAction[] => {
    if ("problem" in pipe.container || known(pipe)) return [];
    const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, scaling));
    return [{ type: "validate", pipe, container: pipe.container.name, rollout }];
  });
  return { isComplete: waiting.every(({ pipe }) => known(pipe)?.isPending === false), actions };
}

function isIdle(name: string, pipes: readonly DeploymentView[]): boolean {
  return pipes.some(({ metadata, replicas }) => metadata.name === name && replicas === 0);
}

interface Step {
  readonly snapshot: Snapshot;
  readonly scaling: PipeScalingView;
  readonly sizing: Sizing;
}

function create({ serviceId, pipes, nowMs, deleted }: Snapshot, namespace: string): Action[] {
  if (pipes.length === 0 || (deleted && deleted.recreateAtMs > nowMs)) return [];
  const own = pipes.filter(({ lastRollout }) => lastRollout?.serviceId === serviceId);
  const spec = deleted?.spec ?? specForRecreation(own, pipes);
  return [{ type: "create-pipe-scaling", namespace, name: serviceId, spec }];
}

/** A write without a response keeps a place in the rollout budget until a read shows what it did. */
function refreshUnknown({ pipes, writes }: Snapshot): Action[] {
  return pipes
    .filter(({ metadata }) => writes.get(metadata.uid)?.outcome.type === "unknown")
    .map((pipe) => ({ type: "refresh", pipe }));
}

function requestIdOf(scaling: PipeScalingView, desired: Size): string | undefined {
  return scalingRequestFor(requestedSize(scaling) ?? desired, scaling.requestAnnotation)?.requestId;
}

/** Our view of the PipeScaling is older than a rollout of a pipe, or etcd was restored from a snapshot. */
function isFromLaterGeneration({ lastRollout }: DeploymentView, { metadata }: PipeScalingView): boolean {
  return lastRollout?.scalingUid === metadata.uid && lastRollout.scalingGeneration > metadata.generation;
}

function planned({ pipe, state, phase }: Assessment) {
  return { name: pipe.metadata.name, state, phase, replicas: pipe.replicas };
}

function resize(assessment: Assessment, step: Step): PipeAction[] {
  const { pipe, priorAttempts = 0 } = assessment;
  if ("problem" in pipe.container) return [];
  const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, step.scaling));
  return [{ type: "resize", pipe, container: pipe.container.name, rollout }];
}

/** Writes for a pipe that is not resized now. */
function repair(assessment: Assessment, step: Step): PipeAction[] {
  const { pipe, state, failure } = assessment;
  const { scaling, sizing } = step;
  const isSized = sameSize(pipe.size, sizing.desired.size);
  if (isSized && ADOPTABLE.includes(state) && !isRecorded(pipe, step) && requestedSize(scaling))
    return adopt(pipe, step);
  if (state !== "failed" || !isSized) return [];
  return failure?.reason === FIELD_CONFLICT
    ? restoreAnnotation(assessment, step)
    : rollBack(assessment, step);
}

/** Writes an annotation that something removed again. Only that shows whether it still removes it. */
function restoreAnnotation({ pipe, recheckAtMs }: Assessment, { snapshot }: Step): PipeAction[] {
  const isDue = recheckAtMs !== undefined && recheckAtMs <= snapshot.nowMs;
  return isDue && pipe.lastRollout ? [{ type: "adopt", pipe, rollout: pipe.lastRollout }] : [];
}

const ADOPTABLE: readonly PipeState[] = ["done", "rolling", "paused"];

/** True if the annotation has the size that the pipe has, so that it survives a deletion of the PipeScaling. */
function isRecorded({ lastRollout, size }: DeploymentView, { snapshot }: Step): boolean {
  const applied = appliedSize(lastRollout);
  return lastRollout?.serviceId === snapshot.serviceId && isSize(applied) && sameSize(applied, size);
}

function rollBack({ pipe, failure, recheckAtMs }: Assessment, step: Step): PipeAction[] {
  const { lastRollout } = pipe;
  const { nowMs } = step.snapshot;
  const size = lastRollout?.lastGoodSize;
  // A deletion of the PipeScaling lost whether the pipe came up before its owner changed it, and must not resize it.
  if (lastRollout?.scalingUid !== step.scaling.metadata.uid && isChangedByOwner(pipe)) return [];
  if ("problem" in pipe.container || !lastRollout || !size || !failure) return [];
  const isSame = isSize(size) && sameSize(size, step.sizing.desired.size);
  const isWaiting = recheckAtMs !== undefined && recheckAtMs > nowMs;
  if (isSame || isWaiting || !mayWrite("roll-back", pipe, step)) return [];
  const { reason, message } = failure;
  const rollout: LastRollout = {
    ...newRollout(pipe, step, lastRollout.attempts, size),
    isRollback: true,
    // The annotation has room for the beginning; the status reports the whole message.
    failure: { reason, message: message.slice(0, ANNOTATED_MESSAGE_LIMIT).toWellFormed() },
  };
  return [{ type: "roll-back", pipe, container: pipe.container.name, size, rollout }];
}

const ANNOTATED_MESSAGE_LIMIT = 400;

function adopt(pipe: DeploymentView, step: Step): PipeAction[] {
  if (!mayWrite("adopt", pipe, step)) return [];
  const rollout: LastRollout = {
    ...newRollout(pipe, step, 0, lastGoodSize(pipe, step.scaling)),
    generation: 0,
    revision: pipe.revision,
    progressedAtS: 0,
  };
  return [{ type: "adopt", pipe, rollout }];
}

/** This process repeats a write only a few times, even if the object never shows it. */
function mayWrite(purpose: WritePurpose, { metadata }: DeploymentView, step: Step): boolean {
  const { snapshot, scaling, sizing } = step;
  const write = snapshot.writes.get(metadata.uid);
  if (write?.outcome.type === "pending") return false;
  if (write?.purpose !== purpose || write.size !== formatSize(sizing.desired.size)) return true;
  const { attempts, lastAtMs, outcome } = write;
  const delayMs =
    outcome.type === "failed"
      ? writeDelayMs(outcome.error.reason, attempts, outcome.generation !== metadata.generation)
      : retryDelayMs(FIELD_CONFLICT, attempts);
  return retryAtMs(lastAtMs, delayMs, scaling, snapshot.nowMs) <= snapshot.nowMs;
}

function newRollout(
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

/** While a pipe's rollout is not complete, the size in its template has proven nothing yet. */
function lastGoodSize(pipe: DeploymentView, scaling: PipeScalingView): Allotment | undefined {
  const { rollout, size, otherResources, lastRollout } = pipe;
  if (rollout.isComplete || hasComeUp(pipe, scaling)) return size ?? otherResources;
  return lastSizeThatCameUp(pipe, scaling) ?? lastRollout?.lastGoodSize;
}

/** The failures of all pipes, as the status reports them. */
export function failuresOf({ sizing }: Pick<Decision, "sizing">): PipeFailure[] {
  return sizing?.assessments.flatMap((each) => each.failure ?? []) ?? [];
}
