import {
  type Condition,
  MAX_CONDITION_MESSAGE_LENGTH,
  MAX_FAILURES,
  MAX_MESSAGE_LENGTH,
  MAX_NAME_LENGTH,
  MAX_PENDING,
  type PendingPipe,
  type PipeFallback,
  type PipeScalingStatus,
} from "../../crd/pipe-scaling.ts";
import { computeUnits } from "../../domain/compute-units.ts";
import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Assessment } from "../decide/assessment.ts";
import { isProven } from "../decide/came-up.ts";
import { failuresOf } from "../decide/decide.ts";
import { clipped } from "../decide/failure.ts";
import type { Sizing } from "../decide/sizing.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { cameUpEntries } from "./came-up-entries.ts";
import { type ConditionSummary, summarizeConditions } from "./conditions.ts";
import { historyOf } from "./history.ts";
import { resizeMethods } from "./resize-methods.ts";
import { formatTime } from "./text.ts";
import { whyPending } from "./waiting.ts";

/**
 * Computes the status of the service's PipeScaling: the desired and the current state, failures, and times. Equal
 * inputs give an equal status, so that nothing is written in steady state.
 */
export function statusOf(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  sizing: Sizing | undefined,
  policy: RolloutPolicy,
): PipeScalingStatus {
  const { nowMs, pipes, tier } = snapshot;
  const previous = scaling.status;
  const summary = summarizeConditions(scaling, tier, sizing);
  const observed = {
    observedGeneration: scaling.metadata.generation,
    conditions: conditionsOf(summary, previous.conditions ?? [], scaling.metadata.generation, nowMs),
  };
  if (!sizing) return { ...previous, ...observed };
  const { desired, assessments } = sizing;
  const failures = failuresOf({ sizing });
  const replicas = pipes.reduce((sum, pipe) => sum + pipe.replicas, 0);
  const updated = assessments.filter((each) => each.state === "done").length;
  const effective = effectiveSize(assessments, desired.size, scaling);
  const desiredFields = { ...sizeFields(desired.size), source: desired.source };
  const methods = resizeMethods(snapshot, sizing, previous);
  const propagation = propagationOf(previous, sizing, updated === pipes.length, nowMs);
  return {
    ...previous,
    ...observed,
    desired: desiredFields,
    ...(effective ? { effective: sizeFields(effective) } : {}),
    pipes: {
      total: pipes.length,
      updated,
      summary: `${updated}/${pipes.length}`,
      pending: pendingPipes(sizing, methods.fallbacks),
      ...methods,
      cameUp: cameUpEntries(assessments, scaling),
    },
    replicas,
    computeUnits: computeUnits(desired.size, replicas),
    ...(tier.ok ? { tier: clipped(tier.value.name, MAX_NAME_LENGTH) } : {}),
    propagation,
    history: historyOf(previous.history ?? [], {
      desired: desiredFields,
      propagation,
      isRun: assessments.some(({ state, pipe }) => state === "done" && pipe.replicas > 0),
      isFailed: assessments.some(({ state }) => state === "failed" || state === "unsizable"),
    }),
    limits: {
      service: sizing.serviceLimit,
      overall: policy.maxConcurrentRollouts,
      rolloutTimeoutSeconds: Math.ceil(policy.rolloutTimeoutMs / 1000),
    },
    failures: failures.length === 0 ? undefined : failures.slice(0, MAX_FAILURES),
  };
}

/** Computes the status of a PipeScaling of a service that this controller does not manage in that namespace. */
export function foreignStatus(snapshot: Snapshot, scaling: PipeScalingView): PipeScalingStatus {
  const { generation } = scaling.metadata;
  const { conditions = [] } = scaling.status;
  return {
    ...scaling.status,
    observedGeneration: generation,
    conditions: conditionsOf(foreignReason(snapshot), conditions, generation, snapshot.nowMs),
  };
}

/** Returns the reason why the controller ignores a PipeScaling or a pipe. */
export function foreignReason({ tier, namespace }: Snapshot): ConditionSummary {
  if (namespace === undefined && !tier.ok) return { ready: "False", stalled: true, ...tier.obstacle };
  return {
    ready: "False",
    stalled: true,
    reason: "WrongNamespace",
    message: `The pipes of this service run in the namespace ${namespace}, so this object has no effect: move it there.`,
  };
}

function sizeFields(size: Size) {
  return {
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
    summary: describeSize(size),
  };
}

const STATE_NAMES = {
  waiting: "Waiting",
  rolling: "Rolling",
  retrying: "Retrying",
  failed: "Failed",
  paused: "Paused",
  unsizable: "Unsizable",
} as const;

/** Sorts the pipes that need intervention first. */
const STATE_ORDER = ["Failed", "Unsizable", "Retrying", "Rolling", "Paused", "Waiting"];

function pendingPipes(sizing: Sizing, fallbacks: readonly PipeFallback[] = []): PendingPipe[] | undefined {
  const reasons = new Map(fallbacks.map(({ pipe, message }) => [pipe, message]));
  const pending = sizing.assessments
    .flatMap((each): PendingPipe[] => {
      const { name } = each.pipe.metadata;
      if (each.state === "done") return [];
      const message = whyPending(each, sizing, reasons.get(name));
      const text = message ? { message: clipped(message, MAX_MESSAGE_LENGTH) } : {};
      return [{ name, state: STATE_NAMES[each.state], ...text }];
    })
    .sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state));
  return pending.length === 0 ? undefined : pending.slice(0, MAX_PENDING);
}

/** Returns the size that every pipe has after a completed rollout; without pipes, the size that they would get. */
function effectiveSize(
  assessments: readonly Assessment[],
  desired: Size,
  scaling: PipeScalingView,
): Size | undefined {
  const [first, ...others] = assessments;
  if (!first) return desired;
  const settled = ({ state, pipe, inPlace }: Assessment) =>
    state === "done" || (isProven(pipe, scaling) && !inPlace);
  const size = first.pipe.size;
  const isCommon = others.every((each) => sameSize(each.pipe.size, size));
  return isCommon && assessments.every(settled) ? size : undefined;
}

function propagationOf(
  previous: PipeScalingStatus,
  { desired, requestId, assessments }: Sizing,
  isComplete: boolean,
  nowMs: number,
): NonNullable<PipeScalingStatus["propagation"]> {
  const reported = previous.desired;
  const isSameSize =
    reported?.replicaCpuMillicores === desired.size.cpuMillicores &&
    reported.replicaMemoryGb === desired.size.memoryGib;
  const isSame = isSameSize && previous.propagation?.requestId === requestId;
  const current =
    isSame && previous.propagation ? previous.propagation : { requestId, startedAt: formatTime(nowMs) };
  const { updated, total = 0 } = previous.pipes ?? {};
  // Removing a pipe does not complete a rescale; a pipe that was added, or that failed before, does.
  const wasComplete = current.completedAt !== undefined && updated === total && total >= assessments.length;
  return isComplete && !wasComplete ? { ...current, completedAt: formatTime(nowMs) } : current;
}

/** As in kstatus, Ready is always present, and Reconciling and Stalled only while they are True. */
function conditionsOf(
  { ready, stalled, reason, message }: ConditionSummary,
  previous: readonly Condition[],
  observedGeneration: number,
  nowMs: number,
): Condition[] {
  const condition = (type: string, status: Condition["status"]): Condition => {
    const before = previous.find((each) => each.type === type);
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : formatTime(nowMs);
    return {
      ...{ type, status, observedGeneration, lastTransitionTime, reason },
      message: clipped(message, MAX_CONDITION_MESSAGE_LENGTH),
    };
  };
  if (ready !== "False") return [condition("Ready", ready)];
  return [condition("Ready", ready), condition(stalled ? "Stalled" : "Reconciling", "True")];
}
