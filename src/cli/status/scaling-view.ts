import {
  activeBoost,
  type PipeScalingView,
  requestedSize,
} from "../../controller/observe/pipe-scaling-view.ts";
import type { Condition } from "../../crd/pipe-scaling.ts";
import { sizeOf } from "../../crd/size-fields.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import { type BoostView, earliestRetry, type RescaleState, type RescaleView } from "../view/rescale-view.ts";

/** The rescale of a service as its PipeScaling reports it. */
export function viewOf(
  serviceName: string,
  scaling: PipeScalingView | undefined,
  nowMs: number,
): RescaleView {
  const { desired, effective, pipes, failures = [] } = scaling?.status ?? {};
  const isCurrent = scaling !== undefined && isObserved(scaling, nowMs);
  const { requestId, startedAt, completedAt } = (isCurrent && desired && scaling.status.propagation) || {};
  return {
    service: serviceName,
    desired: scaling && desiredSize(scaling, nowMs),
    source: isCurrent ? desired?.source : undefined,
    boost: scaling && boostOf(scaling, nowMs),
    effective: effective && sizeOf(effective),
    pipes: scaling ? countsOf(scaling, nowMs) : { total: 0, updated: 0 },
    startedAt: dateIn(startedAt),
    completedAt: dateIn(completedAt),
    requestId,
    ...stateOf(scaling, nowMs),
    retryAt: earliestRetry(failures),
    pending: isCurrent ? (pipes?.pending ?? []) : [],
    resizedBy: isCurrent ? pipes?.resizedBy : undefined,
    fallbacks: isCurrent ? (pipes?.fallbacks ?? []) : [],
  };
}

/** Until the newest spec is observed, the counts of the status are those of an earlier size. */
function countsOf(scaling: PipeScalingView, nowMs: number): RescaleView["pipes"] {
  const { desired, pipes } = scaling.status;
  const { total = 0, updated = 0, inPlace } = pipes ?? {};
  const reported = desired && sizeOf(desired);
  const areCurrent = isObserved(scaling, nowMs) || sameSize(desiredSize(scaling, nowMs), reported);
  return areCurrent ? { total, updated, inPlace } : { total, updated: 0 };
}

/**
 * The desired size: of the status, or of a newer spec that the controller has not observed yet, or whose size it does
 * not know because the tier is unknown.
 */
export function desiredSize(scaling: PipeScalingView, nowMs: number): Size | undefined {
  const { desired } = scaling.status;
  const reported = desired && sizeOf(desired);
  if (reported && isObserved(scaling, nowMs)) return reported;
  const size = activeBoost(scaling, nowMs)?.size ?? requestedSize(scaling);
  // If the spec has no size and the status is still about an ended boost, the size after the boost is not known.
  return size ?? (scaling.status.boost ? undefined : reported);
}

/** The boost in effect, unless the controller has reported its end. */
function boostOf(scaling: PipeScalingView, nowMs: number): BoostView | undefined {
  const boost = activeBoost(scaling, nowMs);
  if (!boost || (isObserved(scaling, nowMs) && !scaling.status.boost)) return undefined;
  const { size, untilMs } = boost;
  return { size, until: new Date(untilMs).toISOString(), leftMs: untilMs - nowMs };
}

/** Returns true if the status is about the newest spec, and not about a boost that is over. */
function isObserved(scaling: PipeScalingView, nowMs: number): boolean {
  return hasObservedSpec(scaling) && !isEndUnobserved(scaling, nowMs);
}

function hasObservedSpec({ metadata, status }: PipeScalingView): boolean {
  return status.observedGeneration === metadata.generation;
}

/** A boost ends without a change of the spec, so `observedGeneration` does not tell whether its end was observed. */
function isEndUnobserved(scaling: PipeScalingView, nowMs: number): boolean {
  return scaling.status.boost !== undefined && activeBoost(scaling, nowMs) === undefined;
}

function stateOf(
  scaling: PipeScalingView | undefined,
  nowMs: number,
): Pick<RescaleView, "state" | "reason" | "message"> {
  if (!scaling) {
    const message = "There is no PipeScaling: the controller creates it when it sees a pipe of this service.";
    return { state: "unknown", reason: "NoPipeScaling", message };
  }
  const { conditions = [], observedGeneration = -1 } = scaling.status;
  if (!hasObservedSpec(scaling)) {
    const isNew = observedGeneration < 0;
    const message = `No controller has observed the ${isNew ? "PipeScaling" : "newest change"} yet.`;
    return { state: isNew ? "unknown" : "propagating", reason: "NotObservedYet", message };
  }
  if (isEndUnobserved(scaling, nowMs) && !scaling.spec.suspend) {
    const message = "The boost has ended, but no controller has observed its end yet.";
    return { state: "propagating", reason: "NotObservedYet", message };
  }
  const { reason, message } = currentCondition(conditions) ?? { reason: "", message: "" };
  return { state: stateIn(conditions), reason, message };
}

/** The conditions of the controller. Those that other tools add say nothing about the state. */
const EXPLANATIONS = ["Stalled", "Reconciling"];

/** Returns the time since which the service has its state; `undefined` if the newest spec is not observed yet. */
export function sinceOf(scaling: PipeScalingView | undefined, nowMs: number): Date | undefined {
  if (!scaling || !isObserved(scaling, nowMs)) return undefined;
  return dateIn(currentCondition(scaling.status.conditions ?? [])?.lastTransitionTime);
}

/** Returns the condition that explains the state: Stalled or Reconciling if one is True, otherwise Ready. */
export function currentCondition(conditions: readonly Condition[]): Condition | undefined {
  return (
    conditions.find(({ type, status }) => EXPLANATIONS.includes(type) && status === "True") ??
    conditions.find(({ type }) => type === "Ready")
  );
}

function stateIn(conditions: readonly Condition[]): RescaleState {
  const has = (type: string, status: Condition["status"]) =>
    conditions.some((each) => each.type === type && each.status === status);
  if (has("Ready", "True")) return "scaled";
  if (has("Stalled", "True")) return "failed";
  return has("Ready", "Unknown") ? "suspended" : "propagating";
}

function dateIn(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
