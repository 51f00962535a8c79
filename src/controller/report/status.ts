import { type Condition, MAX_DONE, MAX_FAILURES, type PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { computeUnits } from "../../domain/compute-units.ts";
import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import type { Assessment } from "../decide/assessment.ts";
import { failuresOf, type Sizing } from "../decide/decide.ts";
import { hasComeUp, latchOf } from "../decide/latch.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { type Verdict, verdictOf } from "./conditions.ts";

/**
 * The status of the service's PipeScaling: what is wanted, what is, what is in the way, since when.
 * Equal inputs give an equal status, so that nothing is written in steady state.
 */
export function statusOf(
  { nowMs, pipes, tier }: Snapshot,
  scaling: PipeScalingView,
  sizing: Sizing | undefined,
): PipeScalingStatus {
  const previous = scaling.status;
  const verdict = verdictOf(scaling, tier, sizing);
  const observed = {
    observedGeneration: scaling.metadata.generation,
    conditions: conditionsOf(verdict, previous.conditions ?? [], scaling.metadata.generation, nowMs),
  };
  if (!sizing) return { ...previous, ...observed };
  const { desired, assessments } = sizing;
  const failures = failuresOf({ sizing });
  const replicas = pipes.reduce((sum, pipe) => sum + pipe.replicas, 0);
  const updated = assessments.filter((each) => each.state === "done").length;
  const effective = effectiveSize(assessments, desired.size);
  return {
    ...previous,
    ...observed,
    desired: { ...sizeFields(desired.size), source: desired.source },
    ...(effective ? { effective: sizeFields(effective) } : {}),
    pipes: {
      total: pipes.length,
      updated,
      summary: `${updated}/${pipes.length}`,
      done: latchesOf(assessments, scaling),
    },
    replicas,
    computeUnits: computeUnits(desired.size, replicas),
    ...(tier.ok ? { tier: tier.value.name } : {}),
    propagation: propagationOf(previous, sizing, updated === pipes.length, nowMs),
    failures: failures.length === 0 ? undefined : failures.slice(0, MAX_FAILURES),
  };
}

/** The status of a PipeScaling that is not the one of any service's namespace. */
export function foreignStatus(
  { tier, namespace, nowMs }: Snapshot,
  scaling: PipeScalingView,
): PipeScalingStatus {
  const verdict: Verdict =
    namespace === undefined && !tier.ok
      ? { ready: "False", stalled: true, ...tier.obstacle }
      : {
          ready: "False",
          stalled: true,
          reason: "WrongNamespace",
          message: `The pipes of this service run in the namespace ${namespace}: move the PipeScaling there. This one changes nothing.`,
        };
  const { generation } = scaling.metadata;
  return {
    ...scaling.status,
    observedGeneration: generation,
    conditions: conditionsOf(verdict, scaling.status.conditions ?? [], generation, nowMs),
  };
}

function sizeFields(size: Size) {
  return {
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
    summary: describeSize(size),
  };
}

/** Also of those that wait for another size than the one that they came up with. */
function latchesOf(assessments: readonly Assessment[], scaling: PipeScalingView): string[] | undefined {
  const done = assessments
    .filter(({ pipe, state }) => state === "done" || hasComeUp(pipe, scaling))
    .flatMap(({ pipe }) => latchOf(pipe) ?? []);
  return done.length === 0 ? undefined : done.slice(0, MAX_DONE);
}

/** The size that every pipe has now by a completed rollout; without pipes, the one that they would get. */
function effectiveSize(assessments: readonly Assessment[], desired: Size): Size | undefined {
  const [first, ...others] = assessments;
  if (!first) return desired;
  const settled = (each: Assessment) => each.state === "done" || each.pipe.rollout.isComplete;
  const size = first.pipe.size;
  const isCommon = others.every((each) => sameSize(each.pipe.size, size));
  return isCommon && assessments.every(settled) ? size : undefined;
}

function propagationOf(
  previous: PipeScalingStatus,
  { desired, requestId, assessments }: Sizing,
  isComplete: boolean,
  nowMs: number,
): PipeScalingStatus["propagation"] {
  const reported = previous.desired;
  const isSameSize =
    reported?.replicaCpuMillicores === desired.size.cpuMillicores &&
    reported.replicaMemoryGb === desired.size.memoryGib;
  const isSame = isSameSize && previous.propagation?.requestId === requestId;
  const current =
    isSame && previous.propagation ? previous.propagation : { requestId, startedAt: rfc3339(nowMs) };
  const wasComplete =
    current.completedAt !== undefined &&
    previous.pipes?.updated === previous.pipes?.total &&
    previous.pipes?.total === assessments.length;
  return isComplete && !wasComplete ? { ...current, completedAt: rfc3339(nowMs) } : current;
}

/** Ready always, Reconciling and Stalled only while they are true, as kstatus reads them. */
function conditionsOf(
  { ready, stalled, reason, message }: Verdict,
  previous: readonly Condition[],
  observedGeneration: number,
  nowMs: number,
): Condition[] {
  const condition = (type: string, status: Condition["status"]): Condition => {
    const before = previous.find((each) => each.type === type);
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : rfc3339(nowMs);
    return { type, status, observedGeneration, lastTransitionTime, reason, message };
  };
  if (ready !== "False") return [condition("Ready", ready)];
  return [condition("Ready", ready), condition(stalled ? "Stalled" : "Reconciling", "True")];
}

/** Whole seconds, as Kubernetes writes its own times. */
function rfc3339(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}
