import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import { type PlannedPipe, planRollout, type RolloutPlan } from "../../domain/rollout-plan.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import { type DesiredSize, desiredSize } from "../../domain/tier.ts";
import { type DeploymentView, isChangedSince, isRollingOurs } from "../observe/deployment-view.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import { type PipeScalingView, requestedSize } from "../observe/pipe-scaling-view.ts";
import { type Allotment, isSize } from "../observe/resources.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { assess } from "./assess.ts";
import type { Assessment } from "./assessment.ts";
import { hasComeUp } from "./latch.ts";

/** What is to be written, as data; apply.ts does it. */
export type Action =
  /** The first pipe of a service appeared, or its PipeScaling was deleted. */
  | {
      readonly type: "create-pipe-scaling";
      readonly namespace: string;
      readonly name: string;
      readonly size: Size | undefined;
    }
  /** Give a pipe the desired size. */
  | {
      readonly type: "resize";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly attempt: LastRollout;
      /** What the pipe has run by a completed rollout until now, if it has. */
      readonly completed: Allotment | undefined;
    }
  /** Bring a pipe that could not take the desired size back to the last one that it ran. */
  | {
      readonly type: "roll-back";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly size: Allotment;
    }
  /** Note the size on a pipe that was deployed with what is asked for, should the PipeScaling vanish. */
  | { readonly type: "adopt"; readonly pipe: DeploymentView; readonly size: Size }
  /** Find out which of the two is wrong: our view of the PipeScaling, or what these pipes say of it. */
  | {
      readonly type: "confirm-generation";
      readonly scaling: PipeScalingView;
      readonly pipes: readonly DeploymentView[];
    };

export interface Decision {
  readonly actions: readonly Action[];
  /** Absent where the pipes are not to be sized at all. */
  readonly sizing?: Sizing;
}

export interface Sizing {
  readonly desired: DesiredSize;
  readonly requestId: string | undefined;
  readonly assessments: readonly Assessment[];
  readonly holdBack: RolloutPlan["holdBack"];
}

export interface DecideOptions {
  readonly rolloutTimeoutMs: number;
  /** Rollouts that may begin before the bound over all services is reached. */
  readonly overallFree: number;
}

const NOTHING: Decision = { actions: [] };

/** Design, section 5, as a ladder of guards: each line is a reason to leave the pipes alone. */
export function decide(snapshot: Snapshot, options: DecideOptions): Decision {
  const { scaling, pipes, namespace, tier } = snapshot;
  if (namespace === undefined || !tier.ok) return NOTHING;
  if (!scaling) return pipes.length === 0 ? NOTHING : { actions: [recreate(snapshot, namespace)] };
  if (scaling.isBeingDeleted) return NOTHING;

  const desired = desiredSize(requestedSize(scaling), tier.value);
  const requestId = scalingRequestFor(
    requestedSize(scaling) ?? desired.size,
    scaling.requestAnnotation,
  )?.requestId;
  const context = { ...snapshot, ...options, scaling, desired: desired.size };
  const assessments = pipes.map((pipe) => assess(pipe, context));
  const sizing = { desired, requestId, assessments, holdBack: "nothing" } as const;
  if (scaling.spec.suspend) return { actions: [], sizing };
  const ahead = pipes.filter((pipe) => isFromLaterGeneration(pipe, scaling));
  if (ahead.length > 0) return { actions: [{ type: "confirm-generation", scaling, pipes: ahead }], sizing };

  const lostBeforeMs = snapshot.nowMs - options.rolloutTimeoutMs;
  const candidates = assessments.toSorted(healthyFirst).map((each) => planned(each, lostBeforeMs));
  const plan = planRollout(candidates, options);
  const starting = new Set(plan.start);
  const actions = assessments.flatMap((each): Action[] => {
    const { pipe } = each;
    if ("problem" in pipe.container) return [];
    const container = pipe.container.name;
    if (!starting.has(pipe.metadata.name)) return unlessStarting(each, container, scaling, desired.size);
    const attempt = attemptAt(snapshot.nowMs, each, scaling, sizing);
    return [{ type: "resize", pipe, container, attempt, completed: completedOf(pipe, scaling) }];
  });
  return { actions, sizing: { ...sizing, holdBack: plan.holdBack } };
}

/** What a pipe needs that is not given the size now. */
function unlessStarting(
  { pipe, state }: Assessment,
  container: string,
  scaling: PipeScalingView,
  desired: Size,
): Action[] {
  const { completed } = pipe;
  if (state === "done" && pipe.given === undefined && requestedSize(scaling))
    return [{ type: "adopt", pipe, size: desired }];
  if (state !== "failed" || !sameSize(pipe.size, desired) || !completed) return [];
  const isSame = isSize(completed) && sameSize(completed, desired);
  return isSame || isOfOwner(pipe, scaling) ? [] : [{ type: "roll-back", pipe, container, size: completed }];
}

/**
 * Its owner has changed it since it was given the size, and whether it had come up before that is not known any
 * more: to delete a PipeScaling must not resize a pipe whose new image does not start.
 */
function isOfOwner(pipe: DeploymentView, { metadata }: PipeScalingView): boolean {
  const { attempt } = pipe;
  return attempt !== undefined && attempt.scalingUid !== metadata.uid && isChangedSince(pipe, attempt);
}

/** It comes back with the size that its pipes were given last, so that deleting it resizes nothing. */
function recreate({ serviceId, pipes }: Snapshot, namespace: string): Action {
  const [latest] = pipes
    .filter(({ given }) => given !== undefined)
    .sort((a, b) => (b.attempt?.startedAtMs ?? 0) - (a.attempt?.startedAtMs ?? 0));
  const given = isSize(latest?.given) ? latest.given : undefined;
  return { type: "create-pipe-scaling", namespace, name: serviceId, size: latest?.attempt?.size ?? given };
}

/** Our view of the PipeScaling is older than what a pipe has already been given, or etcd was put back. */
function isFromLaterGeneration({ attempt }: DeploymentView, { metadata }: PipeScalingView): boolean {
  return attempt?.scalingUid === metadata.uid && attempt.generation > metadata.generation;
}

/** Its owner may be rolling something else out just now: then the status tells what it ran before. */
function completedOf(pipe: DeploymentView, scaling: PipeScalingView): Allotment | undefined {
  const { size, oddResources, rollout } = pipe;
  return rollout.isComplete || hasComeUp(pipe, scaling) ? (size ?? oddResources) : undefined;
}

/** A pipe that was ill before makes a poor canary. */
function healthyFirst(a: Assessment, b: Assessment): number {
  return Number(b.pipe.rollout.isComplete) - Number(a.pipe.rollout.isComplete);
}

/**
 * A rollout that has had its time holds no place over all services any more (countRolling). Pods that still end
 * then are on a node that is lost: nothing waits for them.
 */
function planned({ pipe, state }: Assessment, lostBeforeMs: number): PlannedPipe {
  const isRecent = (pipe.attempt?.startedAtMs ?? 0) > lostBeforeMs;
  const isRolling = isRollingOurs(pipe);
  const isEnding = pipe.rollout.terminatingReplicas > 0 && isRecent;
  return {
    name: pipe.metadata.name,
    state,
    replicas: pipe.replicas,
    isRolling: isRolling && isRecent,
    isRestarting: isRolling || isEnding,
  };
}

function attemptAt(
  nowMs: number,
  { pipe, priorAttempts = 0 }: Assessment,
  { metadata }: PipeScalingView,
  { desired, requestId }: Pick<Sizing, "desired" | "requestId">,
): LastRollout {
  return {
    size: desired.size,
    startedAtMs: nowMs,
    scalingUid: metadata.uid,
    generation: metadata.generation,
    requestId,
    pipeGeneration: pipe.metadata.generation + 1,
    attempts: priorAttempts + 1,
  };
}

/** The pipes in the way, as they are reported. */
export function failuresOf({ sizing }: Pick<Decision, "sizing">): PipeFailure[] {
  return sizing?.assessments.flatMap((each) => each.failure ?? []) ?? [];
}
