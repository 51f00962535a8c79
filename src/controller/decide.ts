import type { PipeFailure } from "../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../crd/scaling-request.ts";
import { planRollout, type RolloutPlan } from "../domain/rollout-plan.ts";
import { type Size, sameSize } from "../domain/size.ts";
import { type DesiredSize, desiredSize } from "../domain/tier.ts";
import { type Assessment, assess } from "./assess.ts";
import type { Attempt } from "./attempt.ts";
import { isRollingOurs, type Pipe } from "./pipe.ts";
import { requestedSize, type Scaling } from "./scaling.ts";
import type { Snapshot } from "./snapshot.ts";

/** What is to be written, as data; apply.ts does it. */
export type Action =
  /** The first pipe of a service appeared, or its PipeScaling was deleted. */
  | {
      readonly type: "create-scaling";
      readonly namespace: string;
      readonly name: string;
      readonly size: Size | undefined;
    }
  /** Give a pipe the desired size. */
  | { readonly type: "give-size"; readonly pipe: Pipe; readonly container: string; readonly attempt: Attempt }
  /** Bring a pipe that could not take the desired size back to the last one that it ran. */
  | { readonly type: "put-back"; readonly pipe: Pipe; readonly container: string; readonly size: Size }
  /** Find out which of the two is wrong: our view of the PipeScaling, or what these pipes say of it. */
  | { readonly type: "confirm-generation"; readonly scaling: Scaling; readonly pipes: readonly Pipe[] };

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
  const context = { ...snapshot, ...options, desired: desired.size };
  const assessments = pipes.map((pipe) => assess(pipe, context));
  const sizing = { desired, requestId, assessments, holdBack: "nothing" } as const;
  if (scaling.spec.suspend) return { actions: [], sizing };
  const ahead = pipes.filter((pipe) => isFromLaterGeneration(pipe, scaling));
  if (ahead.length > 0) return { actions: [{ type: "confirm-generation", scaling, pipes: ahead }], sizing };

  const plan = planRollout(assessments.toSorted(healthyFirst).map(planned), options);
  const starting = new Set(plan.start);
  return {
    actions: assessments.flatMap((assessment): Action[] => {
      const { pipe, state } = assessment;
      if ("problem" in pipe.container) return [];
      const container = pipe.container.name;
      if (starting.has(pipe.metadata.name)) {
        return [
          {
            type: "give-size",
            pipe,
            container,
            attempt: attemptAt(snapshot.nowMs, assessment, scaling, sizing),
          },
        ];
      }
      const lastGood =
        state === "failed" && sameSize(pipe.size, desired.size) ? pipe.completedSize : undefined;
      return lastGood && !sameSize(lastGood, desired.size)
        ? [{ type: "put-back", pipe, container, size: lastGood }]
        : [];
    }),
    sizing: { ...sizing, holdBack: plan.holdBack },
  };
}

/** It comes back with the size that its pipes were given last, so that deleting it resizes nothing. */
function recreate({ serviceId, pipes }: Snapshot, namespace: string): Action {
  const latest = pipes
    .filter((pipe) => pipe.givenSize !== undefined)
    .sort((a, b) => (b.attempt?.startedAtMs ?? 0) - (a.attempt?.startedAtMs ?? 0))[0];
  return {
    type: "create-scaling",
    namespace,
    name: serviceId,
    size: latest?.attempt?.size ?? latest?.givenSize,
  };
}

/** Our view of the PipeScaling is older than what a pipe has already been given, or etcd was put back. */
function isFromLaterGeneration({ attempt }: Pipe, { metadata }: Scaling): boolean {
  return attempt?.scalingUid === metadata.uid && attempt.generation > metadata.generation;
}

/** A pipe that was ill before makes a poor canary. */
function healthyFirst(a: Assessment, b: Assessment): number {
  return Number(b.pipe.rollout.isComplete) - Number(a.pipe.rollout.isComplete);
}

function planned({ pipe, state }: Assessment) {
  return {
    name: pipe.metadata.name,
    state,
    replicas: pipe.replicas,
    isRestarting: isRollingOurs(pipe) || pipe.rollout.terminatingReplicas > 0,
  };
}

function attemptAt(
  nowMs: number,
  { priorAttempts = 0 }: Assessment,
  { metadata }: Scaling,
  { desired, requestId }: Pick<Sizing, "desired" | "requestId">,
): Attempt {
  return {
    size: desired.size,
    startedAtMs: nowMs,
    scalingUid: metadata.uid,
    generation: metadata.generation,
    requestId,
    attempts: priorAttempts + 1,
  };
}

/** The pipes in the way, as they are reported. */
export function failuresOf({ sizing }: Pick<Decision, "sizing">): PipeFailure[] {
  return sizing?.assessments.flatMap((each) => each.failure ?? []) ?? [];
}
