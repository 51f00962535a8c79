import { MAX_CONDITION_MESSAGE_LENGTH, MAX_MESSAGE_LENGTH, MAX_NAME_LENGTH } from "../../crd/fields.ts";
import {
  type Condition,
  type HistoryEntry,
  isKnownEntry,
  MAX_CONDITIONS,
  MAX_FAILURES,
  MAX_HISTORY,
  MAX_PENDING,
  type PendingPipe,
  type PipeFailure,
  type PipeScalingStatus,
} from "../../crd/pipe-scaling.ts";
import { describedSize } from "../../crd/size-fields.ts";
import type { Boost } from "../../domain/boost.ts";
import { computeUnits } from "../../domain/compute-units.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import { formatTime } from "../../kube/time.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Assessment } from "../assessment.ts";
import type { Decision, Sizing } from "../decide/decision.ts";
import type { Snapshot } from "../observe/observe.ts";
import { activeBoost, type PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { allPodsHaveTemplate, seesPods } from "../pods.ts";
import { type ConditionSummary, runsSize, summarizeConditions, whyPending } from "./conditions.ts";
import { failuresOf, overdueHindrances, stalls } from "./failures.ts";
import { resizeMethods } from "./resize-methods.ts";
import { OWN_CONDITIONS } from "./status-content.ts";

type Propagation = NonNullable<PipeScalingStatus["propagation"]>;

/**
 * Computes the status of the service's PipeScaling: the desired and the current state, failures, and times. Equal
 * inputs give an equal status, so that nothing is written in steady state.
 */
export function statusOf(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  { sizing, stranded = [] }: Pick<Decision, "sizing" | "stranded">,
  policy: RolloutPolicy,
): PipeScalingStatus {
  const { nowMs, pipes, tier } = snapshot;
  const previous = scaling.status;
  const reported = sizing
    ? [...sizing.assessments, ...overdueHindrances({ scaling, sizing, policy, nowMs })]
    : [];
  const isReported = ({ pipe }: Assessment) => reported.some((each) => each.pipe === pipe && each.failure);
  const failures = failuresOf([...reported, ...stranded.filter((each) => !isReported(each))], previous);
  const observed = observedStatus(scaling, summarizeConditions(scaling, tier, sizing, failures), nowMs);
  const boost = activeBoost(scaling, nowMs);
  const status = {
    ...observed,
    boost: boost && { ...describedSize(boost.size), until: formatTime(boost.untilMs) },
  };
  const listed = failures.length === 0 ? undefined : failures.slice(0, MAX_FAILURES);
  if (!sizing) {
    const kept = isAboutSpec(scaling, boost) ? status : { ...status, ...UNSIZED };
    return listed ? { ...kept, failures: listed } : kept;
  }
  const { assessments, serviceLimit } = sizing;
  const desired = { ...describedSize(sizing.desired.size), source: sizing.desired.source };
  const effective = effectiveSize(sizing);
  const replicas = pipes.reduce((sum, pipe) => sum + pipe.replicas, 0);
  const updated = assessments.filter(runsSize).length;
  const propagation = propagationOf(previous, sizing, desired.summary, nowMs);
  // A pipe without replicas has the size, but runs nothing. The time of completion does not show this: after a return
  // to the previous size, it is still that of the earlier completion.
  const isRun = assessments.every(runsSize) && assessments.some(({ pipe }) => pipe.replicas > 0);
  const isFailed = reported.some(stalls);
  return {
    ...status,
    desired,
    ...(effective ? { effective: describedSize(effective) } : {}),
    pipes: {
      total: pipes.length,
      updated,
      summary: `${updated}/${pipes.length}`,
      pending: pendingPipes(sizing, failures),
      ...resizeMethods(assessments, sizing.desired.size),
    },
    replicas,
    computeUnits: computeUnits(sizing.desired.size, replicas),
    ...(tier.ok ? { tier: clipped(tier.value.name, MAX_NAME_LENGTH) } : {}),
    propagation,
    history: historyOf(
      previous.history ?? [],
      { ...desired, ...propagation, ...(boost ? { boost: true } : {}) },
      { isRun, isFailed, isGivenBack: sizing.outOfMemory !== undefined },
    ),
    limits: {
      service: serviceLimit,
      overall: policy.maxConcurrentRollouts,
      rolloutTimeoutSeconds: Math.ceil(policy.rolloutTimeoutMs / 1000),
    },
    failures: listed,
  };
}

/** Without a sizing, the desired size is unknown, and all that a status says about it. */
const UNSIZED = { desired: undefined, pipes: undefined, computeUnits: undefined, failures: undefined };

/** True if the desired size of the previous status follows from the present spec, so that it still applies. */
function isAboutSpec({ metadata, status }: PipeScalingView, boost: Boost | undefined): boolean {
  const wasBoosted = status.boost !== undefined;
  return status.observedGeneration === metadata.generation && wasBoosted === (boost !== undefined);
}

/** Computes the status of a PipeScaling of a service that this controller does not manage in that namespace. */
export function unmanagedStatus(snapshot: Snapshot, scaling: PipeScalingView): PipeScalingStatus {
  return observedStatus(scaling, unmanagedReason(snapshot, "scaling"), snapshot.nowMs);
}

/** An object cannot move to another namespace. */
const WAYS_OUT = {
  scaling: "Request the size there, and delete this PipeScaling.",
  pipe: "Correct the label of this pipe, or create it there and delete it here.",
} as const;

/** Returns the reason why the controller ignores a PipeScaling or a pipe. */
export function unmanagedReason(
  { tier, namespace }: Snapshot,
  object: keyof typeof WAYS_OUT,
): ConditionSummary {
  if (namespace === undefined && !tier.ok) return { type: "Stalled", ...tier.obstacle };
  const message = `The pipes of this service belong in the namespace ${namespace}, so this object is ignored. ${WAYS_OUT[object]}`;
  return { type: "Stalled", reason: "WrongNamespace", message };
}

/** In the order in which pipes are listed: those that need intervention come first. */
export const STATE_NAMES = {
  failed: "Failed",
  unsizable: "Unsizable",
  retrying: "Retrying",
  rolling: "Rolling",
  paused: "Paused",
  waiting: "Waiting",
  resized: "Resized",
} as const;

const STATE_ORDER = Object.values(STATE_NAMES);

function pendingPipes(sizing: Sizing, failures: readonly PipeFailure[]): PendingPipe[] | undefined {
  const pending = sizing.assessments
    .flatMap((each): PendingPipe[] => {
      if (each.state === "done") return [];
      // The message of a failure that is repeated stays as it is until the next attempt has ended.
      const failure = each.failure && failures.find(({ pipe }) => pipe === nameOf(each.pipe));
      const message = failure?.message ?? whyPending(each, sizing);
      const text = message ? { message: clipped(message, MAX_MESSAGE_LENGTH) } : {};
      const { reason } = each.hindrance ?? {};
      const state = STATE_NAMES[each.state];
      return [{ name: nameOf(each.pipe), state, ...(reason ? { reason } : {}), ...text }];
    })
    .sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state));
  return pending.length === 0 ? undefined : pending.slice(0, MAX_PENDING);
}

/** Returns the size that all pipes run; `undefined` if they differ. Without pipes, the size that they would get. */
function effectiveSize({ assessments, desired: { size: desired } }: Sizing): Size | undefined {
  const sizes = assessments.map((each) => (runsSize(each) ? desired : formerSize(each)));
  const [first = desired] = sizes;
  return sizes.every((size) => sameSize(size, first)) ? first : undefined;
}

/** The size with which a pipe runs before its resize; `undefined` during one. */
function formerSize({ subject, pipe }: Assessment): Size | undefined {
  const { isComplete, isUpdated } = pipe.rollout;
  const isRun = isComplete && isUpdated && (!seesPods(subject) || allPodsHaveTemplate(subject));
  return isRun ? pipe.size : undefined;
}

function propagationOf(
  previous: PipeScalingStatus,
  { requestId, assessments }: Sizing,
  size: string,
  nowMs: number,
): Propagation {
  // Without a desired size, the newest entry of the history has the size of the last rescale.
  const last = previous.desired ?? previous.history?.[0];
  const isSame = last?.summary === size && previous.propagation?.requestId === requestId;
  const current =
    isSame && previous.propagation ? previous.propagation : { requestId, startedAt: formatTime(nowMs) };
  const { updated, total = 0 } = previous.pipes ?? {};
  // Removing a pipe does not complete a rescale again. A pipe that was added, or that failed before, does.
  const wasComplete = current.completedAt !== undefined && updated === total && total >= assessments.length;
  const isComplete = assessments.every(runsSize);
  return isComplete && !wasComplete ? { ...current, completedAt: formatTime(nowMs) } : current;
}

/** The previous status with new conditions. */
function observedStatus(
  { metadata: { generation: observedGeneration }, status }: PipeScalingView,
  summary: ConditionSummary,
  nowMs: number,
): PipeScalingStatus {
  const message = clipped(summary.message, MAX_CONDITION_MESSAGE_LENGTH);
  // Like in kstatus, Ready is always present, and Reconciling and Stalled only while they are True.
  const conditions = Object.entries(STATUSES[summary.type]).map(([type, value]): Condition => {
    const before = status.conditions?.find((each) => each.type === type);
    const lastTransitionTime = before?.status === value ? before.lastTransitionTime : formatTime(nowMs);
    return { type, status: value, observedGeneration, lastTransitionTime, reason: summary.reason, message };
  });
  return { ...status, observedGeneration, conditions: withOthers(conditions, status.conditions ?? []) };
}

/** Adds the conditions of other tools, as many as the CRD allows. The order stays, so that it is no change to write. */
function withOthers(own: readonly Condition[], previous: readonly Condition[]): Condition[] {
  const others = previous.filter(({ type }) => !OWN_CONDITIONS.includes(type));
  const orderOf = ({ type }: Condition): number => {
    const index = previous.findIndex((each) => each.type === type);
    return index === -1 ? previous.length : index;
  };
  return [...own, ...others.slice(0, MAX_CONDITIONS - own.length)].sort((a, b) => orderOf(a) - orderOf(b));
}

const STATUSES = {
  Ready: { Ready: "True" },
  Suspended: { Ready: "Unknown" },
  Reconciling: { Ready: "False", Reconciling: "True" },
  Stalled: { Ready: "False", Stalled: "True" },
} as const;

interface Outcome {
  /** Every pipe runs the size, and at least one has replicas. */
  readonly isRun: boolean;
  /** A pipe cannot have the size. */
  readonly isFailed: boolean;
  /** Containers ran out of memory with the size after every pipe ran it, so a rollback must not return to it. */
  readonly isGivenBack: boolean;
}

/**
 * Returns the history with the current rescale as its newest entry. An entry that was Scaled stays Scaled even if a
 * pipe fails later, because every pipe did run the size, so a rollback can return to it. The exception is a size that
 * was given back because containers ran out of memory. Another request for the same size is no new entry, because
 * repeated requests would push out all sizes to which a rollback can return.
 */
export function historyOf(
  history: readonly HistoryEntry[],
  rescale: Omit<HistoryEntry, "result">,
  { isRun, isFailed, isGivenBack }: Outcome,
): HistoryEntry[] {
  const [newest] = history;
  const isSame = newest?.summary === rescale.summary;
  // A pipe that is added later completes the rescale again; the history keeps the time of the first completion.
  const reachedAt = (isSame ? newest.completedAt : undefined) ?? (isRun ? rescale.completedAt : undefined);
  const completedAt = isGivenBack ? undefined : reachedAt;
  // If the size was requested before the boost to it, a rollback may return to it, so its entry is not marked.
  const boost = isSame && !newest.boost ? undefined : rescale.boost;
  const unfinished = isFailed || isGivenBack ? "Failed" : "Progressing";
  const current = {
    ...rescale,
    startedAt: isSame ? newest.startedAt : rescale.startedAt,
    boost,
    result: completedAt === undefined ? unfinished : "Scaled",
    completedAt,
  } as const;
  // After a downgrade, an entry that the CRD rejects would keep every later status from being written.
  const older = (isSame ? history.slice(1) : history.map(superseded)).filter(isKnownEntry);
  return [current, ...older].slice(0, MAX_HISTORY);
}

function superseded(entry: HistoryEntry): HistoryEntry {
  return entry.result === "Scaled" ? entry : { ...entry, result: "Superseded" };
}
