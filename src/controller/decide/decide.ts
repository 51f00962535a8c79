import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import { type PlannedPipe, planRollout, serviceLimit } from "../../domain/rollout-plan.ts";
import { type RolloutWindowState, windowAt } from "../../domain/rollout-window.ts";
import type { Size } from "../../domain/size.ts";
import { desiredSize } from "../../domain/tier.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { type PipeScalingView, requestedSize } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Action } from "./actions.ts";
import { assess } from "./assess.ts";
import type { Assessment } from "./assessment.ts";
import { isDue } from "./failed-step.ts";
import { finishCommits } from "./finish-commit.ts";
import { beginsInPlace, commitsLater, inPlaceActions } from "./in-place.ts";
import { repair, resize } from "./pipe-actions.ts";
import { specForRecreation } from "./recreate.ts";
import { resumeAbandoned } from "./resume.ts";
import type { Sizing, Step } from "./sizing.ts";
import { VALIDATED, validate } from "./validate.ts";

export interface Decision {
  readonly actions: readonly Action[];
  /** Absent if the pipes must not be resized. */
  readonly sizing?: Sizing;
  /** True if the template of a pipe could follow its resized pods, but not now. */
  readonly waitsForCommit?: boolean;
}

export interface DecideOptions {
  readonly policy: RolloutPolicy;
  /** Number of rollouts that may start before the limit across all services is reached. */
  readonly overallFree: number;
  /** Number of commits of resizes in place that may start now, across all services. */
  readonly freeCommits: number;
  /** Number of resizes in place that may begin now, across all services. */
  readonly freeBegins: number;
  /** True if a canary requires dry runs of all waiting pipes, and stopping old pods requires a check of the nodes. */
  readonly validatesFirst: boolean;
}

export function decide(snapshot: Snapshot, options: DecideOptions): Decision {
  const { actions, ...decision } = decideAll(snapshot, options);
  return { ...decision, actions: actions.filter((action) => isDue(action, snapshot)) };
}

/** A sequence of guards: each line is a reason not to change the pipes. */
function decideAll(snapshot: Snapshot, options: DecideOptions): Decision {
  const { scaling, pipes, namespace, tier } = snapshot;
  const refreshes = [...refreshUnknown(snapshot), ...resumeAbandoned(snapshot)];
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

  // The schedule is evaluated only for pipes that it can block.
  const isAnyWaiting = assessments.some(({ pipe, state }) => state === "waiting" && pipe.replicas > 0);
  const window = isAnyWaiting ? rolloutWindow(snapshot, scaling) : ALWAYS_OPEN;
  const limits = { ...options, serviceLimit: sizing.serviceLimit, isWindowOpen: window.open };
  const step: Step = { snapshot, scaling, sizing };
  const plan = planRollout(
    assessments.map((each) => planned(each, step)),
    limits,
  );
  const { start, holdBack, blockedBy } = plan;
  const validation = options.validatesFirst ? validate(assessments, plan, step) : VALIDATED;
  // A rollout restarts a pipe, so everything that can be checked without a restart is checked first.
  const starting = new Set(validation.isComplete ? start : start.filter((name) => isIdle(name, pipes)));
  const begins = beginsInPlace(
    assessments.filter(({ pipe }) => starting.has(pipe.metadata.name)),
    step,
  );
  const beginLater = new Set([...begins.keys()].slice(options.freeBegins));
  const commitLater = commitsLater(assessments, options);
  const writes = assessments.flatMap((each): readonly Action[] => {
    const { name } = each.pipe.metadata;
    if (each.inPlace) return commitLater.has(each) ? [] : inPlaceActions(each.inPlace, each, step);
    if (each.state === "unsizable" && each.pipe.isPausedByUs) return finishCommits([each.pipe], snapshot);
    if (beginLater.has(each)) return [];
    if (starting.has(name)) return begins.get(each) ?? resize(each, step);
    return start.includes(name) ? [] : repair(each, step);
  });
  const actions = [...refreshes, ...validation.actions, ...writes];
  const waits = commitLater.size > 0 ? { waitsForCommit: true } : {};
  const held: Pick<Sizing, "holdBack" | "blockedBy"> =
    beginLater.size > 0 ? { holdBack: "in-place-pace", blockedBy: [] } : { holdBack, blockedBy };
  return { actions, sizing: { ...sizing, ...held, window }, ...waits };
}

const ALWAYS_OPEN = { open: true, untilMs: Number.POSITIVE_INFINITY } as const;

function rolloutWindow(
  { rolloutWindow: window, nowMs }: Snapshot,
  { windowIgnoredUntilMs = 0 }: PipeScalingView,
): RolloutWindowState {
  if (!window || nowMs < windowIgnoredUntilMs) return ALWAYS_OPEN;
  return windowAt(window, nowMs);
}

function isIdle(name: string, pipes: readonly DeploymentView[]): boolean {
  return pipes.some(({ metadata, replicas }) => metadata.name === name && replicas === 0);
}

function create({ serviceId, pipes, nowMs, deleted }: Snapshot, namespace: string): Action[] {
  if (pipes.length === 0 || (deleted && deleted.recreateAtMs > nowMs)) return [];
  const spec = deleted?.spec ?? specForRecreation(serviceId, pipes);
  return [{ type: "create-pipe-scaling", namespace, name: serviceId, spec }];
}

/** A write without a response counts against the rollout budget until a read shows its outcome. */
function refreshUnknown({ pipes, writes }: Snapshot): Action[] {
  return pipes
    .filter(({ metadata }) => writes.get(metadata.uid)?.outcome.type === "unknown")
    .map((pipe) => ({ type: "refresh", pipe }));
}

function requestIdOf(scaling: PipeScalingView, desired: Size): string | undefined {
  return scalingRequestFor(requestedSize(scaling) ?? desired, scaling.requestAnnotation)?.requestId;
}

/**
 * Returns true if our view of the PipeScaling is older than a rollout of the pipe, or etcd was restored from a
 * snapshot.
 */
function isFromLaterGeneration({ lastRollout }: DeploymentView, { metadata }: PipeScalingView): boolean {
  return lastRollout?.scalingUid === metadata.uid && lastRollout.scalingGeneration > metadata.generation;
}

/** A rollback that begins now takes the place of a rollout, although the phase of its pipe has timed out. */
function planned(assessment: Assessment, step: Step): PlannedPipe {
  const { pipe, state, phase, abandoned } = assessment;
  const named = { name: pipe.metadata.name, replicas: pipe.replicas };
  const isRolledBack = abandoned !== undefined && phase === "overdue" && repair(assessment, step).length > 0;
  return isRolledBack ? { ...named, state: "rolling", phase: "rolling-back" } : { ...named, state, phase };
}

/** Returns the failures of all pipes, for the status. */
export function failuresOf({ sizing }: Pick<Decision, "sizing">): PipeFailure[] {
  return sizing?.assessments.flatMap((each) => each.failure ?? []) ?? [];
}
