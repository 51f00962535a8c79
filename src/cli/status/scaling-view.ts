import { type PipeScalingView, requestedSize } from "../../controller/observe/pipe-scaling-view.ts";
import type { Condition, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import type { Size } from "../../domain/size.ts";
import type { Organization } from "../../records/organization.ts";
import { NOT_OBSERVED_YET, type RescaleState, type RescaleView } from "../view/rescale-view.ts";

/**
 * The rescale of a service as its PipeScaling reports it.
 *
 * @param service its name
 * @param oldTier tier that its organization no longer has: to be scaled by that tier is not the outcome
 */
export function viewOf(service: string, scaling: PipeScalingView | undefined, oldTier?: string): RescaleView {
  const { desired, effective, pipes, propagation, failures = [] } = scaling?.status ?? {};
  const isCurrent = scaling !== undefined && isObserved(scaling);
  const wanted = scaling && desiredSize(scaling);
  const retries = failures.flatMap(({ nextRetryAt }) => (nextRetryAt ? [Date.parse(nextRetryAt)] : []));
  return {
    service,
    desired: wanted,
    source: isCurrent ? desired?.source : undefined,
    effective: sizeIn(effective),
    pipes: { total: pipes?.total ?? 0, updated: pipes?.updated ?? 0 },
    startedAt: dateIn(propagation?.startedAt),
    completedAt: dateIn(propagation?.completedAt),
    requestId: isCurrent
      ? propagation?.requestId
      : wanted && scalingRequestFor(wanted, scaling?.requestAnnotation)?.requestId,
    ...stateOf(scaling, oldTier),
    retryAt: retries.length === 0 ? undefined : new Date(Math.min(...retries)),
    pending: isCurrent ? (pipes?.pending ?? []) : [],
  };
}

/** The desired size: of the status, or of a newer spec that the controller has not observed yet. */
export function desiredSize(scaling: PipeScalingView): Size | undefined {
  const reported = sizeIn(scaling.status.desired);
  return isObserved(scaling) ? reported : (requestedSize(scaling) ?? reported);
}

/** Returns true if the status is about the newest spec. */
function isObserved({ metadata, status }: PipeScalingView): boolean {
  return status.observedGeneration === metadata.generation;
}

/** The tier in the status, if its organization has another one now. */
export function oldTierOf(
  scaling: PipeScalingView | undefined,
  organization: Pick<Organization, "tier"> | undefined,
): string | undefined {
  const tier = scaling?.status.tier;
  return organization && organization.tier !== tier ? tier : undefined;
}

type State = Pick<RescaleView, "state" | "reason" | "message">;

function stateOf(scaling: PipeScalingView | undefined, oldTier: string | undefined): State {
  if (!scaling) {
    const message = "There is no PipeScaling: the controller has not seen a pipe of this service yet.";
    return { state: "unknown", reason: "NoPipeScaling", message };
  }
  const { conditions = [], observedGeneration = -1, tier } = scaling.status;
  if (observedGeneration < 0) return notObserved("unknown", "the PipeScaling");
  if (!isObserved(scaling)) return notObserved("propagating", "the newest change");
  const state = stateIn(conditions);
  // A change of the tier does not change the generation of the PipeScaling.
  const isOld = state === "scaled" && oldTier !== undefined && tier === oldTier;
  if (isOld) return notObserved("propagating", "the new tier of the organization");
  const { reason, message } = currentCondition(conditions) ?? { reason: "", message: "" };
  return { state, reason, message };
}

function notObserved(state: RescaleState, what: string): State {
  return { state, reason: NOT_OBSERVED_YET, message: `No controller has observed ${what} yet.` };
}

/** The condition with the most to say: Stalled or Reconciling if one is True, otherwise Ready. */
export function currentCondition(conditions: readonly Condition[]): Condition | undefined {
  return (
    conditions.find(({ type, status }) => type !== "Ready" && status === "True") ??
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

function sizeIn(fields: PipeScalingStatus["effective"]): Size | undefined {
  return fields && { cpuMillicores: fields.replicaCpuMillicores, memoryGib: fields.replicaMemoryGb };
}

function dateIn(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
