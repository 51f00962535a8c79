import { type PipeScalingView, requestedSize } from "../../controller/observe/pipe-scaling-view.ts";
import type { Condition, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import { parseSize, type Size } from "../../domain/size.ts";
import type { Organization } from "../../records/organization.ts";
import { NOT_SEEN_YET, type PipeLine, type RescaleState, type RescaleView } from "../view/rescale-view.ts";
import { standingOf, type WatchedPipe } from "./pipe-lines.ts";

const NOTHING_KNOWN = {
  wanted: undefined,
  from: undefined,
  effective: undefined,
  pipes: { total: 0, updated: 0 },
  startedAt: undefined,
  completedAt: undefined,
  requestId: undefined,
  lines: [],
} as const;

/**
 * How a service's rescale stands, by its PipeScaling and, where they can be read, its pipes.
 *
 * @param service as people are to read it
 * @param oldTier one that its organization has no more: what is scaled by that is not the outcome
 */
export function viewOf(
  service: string,
  scaling: PipeScalingView | undefined,
  pipes: readonly WatchedPipe[] | undefined,
  oldTier?: string,
): RescaleView {
  if (!scaling) {
    return {
      service,
      ...NOTHING_KNOWN,
      state: "unknown",
      reason: "NoPipeScaling",
      message: "It has no PipeScaling: no pipe of it has been seen yet.",
    };
  }
  const { status } = scaling;
  const { desired, propagation } = status;
  const wanted = wantedSize(scaling);
  const standing = wanted && pipes ? standingOf(pipes, scaling, wanted) : undefined;
  const lines = standing?.lines ?? failedLines(status, wanted);
  return {
    service,
    wanted,
    from: isSeen(scaling) ? desired?.source : undefined,
    effective: sizeIn(status.effective),
    pipes: standing
      ? { total: lines.length, updated: lines.filter(({ state }) => state === "done").length }
      : { total: status.pipes?.total ?? 0, updated: status.pipes?.updated ?? 0 },
    startedAt: dateIn(propagation?.startedAt),
    completedAt: dateIn(propagation?.completedAt),
    progressedAt: standing?.progressedAt,
    requestId: requestIdOf(scaling, wanted),
    ...outcomeOf(scaling, oldTier),
    retryAt: standing?.retryAt,
    lines,
  };
}

/** The size that the pipes are to have: as the status has it, or by a newer spec that no status is about yet. */
export function wantedSize(scaling: PipeScalingView): Size | undefined {
  const reported = sizeIn(scaling.status.desired);
  return isSeen(scaling) ? reported : (requestedSize(scaling) ?? reported);
}

/** Whether what the status says is about the newest spec. */
function isSeen({ metadata, status }: PipeScalingView): boolean {
  return status.observedGeneration === metadata.generation;
}

/** The tier by which a PipeScaling was judged, where its organization has another one by now. */
export function oldTierOf(
  scaling: PipeScalingView | undefined,
  organization: Pick<Organization, "tier"> | undefined,
): string | undefined {
  const tier = scaling?.status.tier;
  return organization && organization.tier !== tier ? tier : undefined;
}

function outcomeOf(
  scaling: PipeScalingView,
  oldTier: string | undefined,
): Pick<RescaleView, "state" | "reason" | "message"> {
  const { conditions = [], observedGeneration = -1, tier } = scaling.status;
  if (observedGeneration < 0) {
    return { state: "unknown", reason: NOT_SEEN_YET, message: "No controller has looked at it yet." };
  }
  if (!isSeen(scaling)) {
    const message = "The controller has not looked at its newest change yet.";
    return { state: "propagating", reason: NOT_SEEN_YET, message };
  }
  const { reason, message } = currentCondition(conditions) ?? { reason: "", message: "" };
  const state = stateOf(conditions);
  // Another tier is no change of the PipeScaling, and so none of its generation.
  if (state === "scaled" && oldTier !== undefined && tier === oldTier) {
    const message = "The controller has not looked at the new tier of the organization yet.";
    return { state: "propagating", reason: NOT_SEEN_YET, message };
  }
  return { state, reason, message };
}

/** The condition that says how it is: Stalled or Reconciling where there is one, else Ready. */
export function currentCondition(conditions: readonly Condition[]): Condition | undefined {
  return (
    conditions.find(({ type, status }) => type !== "Ready" && status === "True") ??
    conditions.find(({ type }) => type === "Ready")
  );
}

function stateOf(conditions: readonly Condition[]): RescaleState {
  const has = (type: string, status: Condition["status"]) =>
    conditions.some((each) => each.type === type && each.status === status);
  if (has("Ready", "True")) return "scaled";
  if (has("Stalled", "True")) return "failed";
  return has("Ready", "Unknown") ? "suspended" : "propagating";
}

function requestIdOf(scaling: PipeScalingView, wanted: Size | undefined): string | undefined {
  if (isSeen(scaling)) return scaling.status.propagation?.requestId;
  return wanted && scalingRequestFor(wanted, scaling.requestAnnotation)?.requestId;
}

/** Where the pipes cannot be read, those that failed are all that is known by name. */
function failedLines({ failures = [] }: PipeScalingStatus, wanted: Size | undefined): PipeLine[] {
  return failures.map(({ pipe, size, message }) => ({
    name: pipe,
    from: undefined,
    to: parseSize(size) ?? wanted,
    state: "failed",
    why: message,
  }));
}

function sizeIn(fields: PipeScalingStatus["effective"]): Size | undefined {
  return fields && { cpuMillicores: fields.replicaCpuMillicores, memoryGib: fields.replicaMemoryGb };
}

function dateIn(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
