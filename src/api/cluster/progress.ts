import type { PipeFailure, PipeScaling, PipeScalingSpec, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import {
  BOOST_REQUEST_ANNOTATION,
  boostRequestFor,
  REQUEST_ANNOTATION,
  scalingRequestFor,
} from "../../crd/scaling-request.ts";
import { boostIn, sizeIn } from "../../crd/size-fields.ts";
import type { Boost } from "../../domain/boost.ts";
import { parseInstant } from "../../domain/instant.ts";
import { type Size, sameSize } from "../../domain/size.ts";
import type { DesiredSize } from "../../domain/tier.ts";
import { shared } from "../../kube/memoized.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { type ApiFallbackReason, fallbackReasonOf } from "./fallback-reasons.ts";
import { type Reason, reasonOf } from "./reasons.ts";

export const PROGRESS_STATES = ["propagating", "scaled", "failed", "suspended"] as const;

export type ProgressState = (typeof PROGRESS_STATES)[number];

/** The progress of a rescale, from the parts of the spec and the status that callers may see. */
export interface Progress {
  readonly state: ProgressState;
  readonly reason: Reason;
  /** `undefined` while it is unknown: none is requested, and the controller has not reported what applies instead. */
  readonly desired: DesiredSize | undefined;
  /** Absent until the controller has counted the pipes. */
  readonly pipes: Pipes | undefined;
  readonly failures: readonly Failure[];
  /** Pipes that restarted, or will, because they could not be resized in place. */
  readonly fallbacks: readonly Fallback[];
  /** The request for the desired size; absent if the size did not come from a request. */
  readonly requestId: string | undefined;
  readonly startedAtMs: number | undefined;
  readonly completedAtMs: number | undefined;
}

interface Pipes {
  readonly total: number;
  readonly updated: number;
  /** Those of `updated` that did not restart; absent if there are none. */
  readonly inPlace?: number;
}

interface Fallback {
  readonly pipe: string;
  readonly reason: ApiFallbackReason;
}

interface Failure {
  readonly pipe: string;
  readonly size: Size | undefined;
  readonly reason: Reason;
  readonly attempts: number;
  readonly atMs: number | undefined;
  /** Absent if there is no automatic retry. */
  readonly nextRetryAtMs: number | undefined;
}

/** Shared by the PipeScalings without failures, which are most of them. */
const NO_FAILURES: readonly Failure[] = [];
const NO_FALLBACKS: readonly Fallback[] = [];

/**
 * Derives the progress from a PipeScaling. The progress never describes an older size: until the controller has
 * observed the current size, or the end of a boost, the reason is `Pending` (unless the service is suspended), and
 * pipes count as updated only if the reported size is the same. Until the controller has observed a second request for
 * the same size, the reason is `Pending` if the first one has completed, and otherwise that of the first one.
 *
 * Equal parts are shared, and the literals have no spread, because V8 keeps properties that follow a spread in a second
 * object. Both save memory for each service (bench/NOTES.md).
 *
 * @param boost for the progress while this boost is in effect
 */
export function progressOf(object: PipeScaling & KubeObject, boost?: Boost): Progress {
  const { metadata, spec = {}, status = {} } = object;
  const isCurrent = status.observedGeneration === metadata.generation;
  const isSeen = isCurrent && (boost !== undefined || !status.boost);
  const reported = desiredOf(status);
  const { size, source, requestId } = wishOf(object, boost);
  const wanted = size && { size, source };
  const outcome = outcomeOf(spec, status);
  // A second request for the same size does not change the generation, but it is a new request.
  const isCredited = status.propagation?.requestId === requestId;
  if (isSeen && (isCredited || outcome.state !== "scaled")) {
    const { state, reason } = outcome;
    const { startedAtMs, completedAtMs } = isCredited && reported ? timesOf(status, state) : NO_TIMES;
    return {
      state,
      reason,
      // While the tier is unknown, the status of a new spec has no size.
      desired: shared(reported ?? wanted),
      pipes: shared(pipesOf(status)),
      // If every pipe runs the size, only writes to templates can have failed, which is no matter for customers.
      failures: state === "scaled" ? NO_FAILURES : failuresOf(status),
      fallbacks: fallbacksOf(status),
      requestId,
      startedAtMs,
      completedAtMs,
    };
  }
  const isSame = sameSize(size, reported?.size);
  const { state, reason } = spec.suspend ? outcome : PENDING;
  return {
    state,
    reason,
    desired: shared(isSame ? reported : wanted),
    pipes: shared(pipesOf(status, isSame)),
    failures: NO_FAILURES,
    fallbacks: NO_FALLBACKS,
    requestId,
    startedAtMs: undefined,
    completedAtMs: undefined,
  };
}

/**
 * The boost in the spec, unless the controller has reported its end, or it is never in effect because its end cannot be
 * parsed. The controller can report the end before the clock of this process reaches it.
 */
export function unendedBoost({
  metadata,
  spec = {},
  status = {},
}: PipeScaling & KubeObject): Boost | undefined {
  const isOver = status.observedGeneration === metadata.generation && !status.boost;
  const boost = boostIn(spec);
  return isOver || Number.isNaN(boost?.untilMs) ? undefined : boost;
}

/** The size that the pipes should have, as far as it is known, and the request for it. */
function wishOf({ metadata, spec = {}, status = {} }: PipeScaling & KubeObject, boost: Boost | undefined) {
  const { annotations = {} } = metadata;
  if (boost) {
    const request = boostRequestFor(boost, annotations[BOOST_REQUEST_ANNOTATION]);
    return { size: boost.size, source: "Boost", requestId: request?.requestId } as const;
  }
  // Without a size in the spec, the reported size of a boost says nothing about the size after the boost.
  const size = sizeIn(spec) ?? (status.boost ? undefined : desiredOf(status)?.size);
  const request = size && scalingRequestFor(size, annotations[REQUEST_ANNOTATION]);
  return { size, source: "Spec", requestId: request?.requestId } as const;
}

const PENDING = { state: "propagating", reason: "Pending" } as const;
const NO_TIMES = { startedAtMs: undefined, completedAtMs: undefined };

function outcomeOf(spec: PipeScalingSpec, status: PipeScalingStatus) {
  const { conditions = [] } = status;
  // From the spec, so that it is right even while no controller runs.
  if (spec.suspend) return { state: "suspended", reason: "Suspended" } as const;
  const ready = conditions.find(({ type }) => type === "Ready");
  if (!ready) return PENDING;
  if (ready.status === "True") return { state: "scaled", reason: reasonOf(ready.reason, "Scaled") } as const;
  const isStalled = conditions.some(({ type, status }) => type === "Stalled" && status === "True");
  if (isStalled) return { state: "failed", reason: reasonOf(ready.reason, "Failed") } as const;
  // While a PipeScaling is being deleted, its pipes are not counted.
  const isCounted = ready.status === "False" && ready.reason !== "Deleting";
  // The pods have the size. Callers need not wait until the templates have it, whatever keeps a template from it.
  if (isCounted && isRunByAll(status)) return { state: "scaled", reason: "Scaled" } as const;
  return { state: "propagating", reason: reasonOf(ready.reason, PENDING.reason) } as const;
}

function isRunByAll({ pipes, propagation }: PipeScalingStatus): boolean {
  return propagation?.completedAt !== undefined && pipes !== undefined && pipes.updated === pipes.total;
}

function desiredOf({ desired }: PipeScalingStatus): DesiredSize | undefined {
  const size = desired && sizeIn(desired);
  return desired && size && { size, source: desired.source };
}

/** @param areOfSize whether the pipes that the status counts as updated have the desired size */
function pipesOf({ pipes }: PipeScalingStatus, areOfSize = true): Progress["pipes"] {
  if (!pipes) return undefined;
  const { total, updated, inPlace = 0 } = pipes;
  if (!areOfSize) return { total, updated: 0 };
  return inPlace > 0 ? { total, updated, inPlace } : { total, updated };
}

function timesOf({ propagation }: PipeScalingStatus, state: Progress["state"]) {
  return {
    startedAtMs: instant(propagation?.startedAt),
    // A completed rescale can start again for a new pipe.
    completedAtMs: state === "scaled" ? instant(propagation?.completedAt) : undefined,
  };
}

function failuresOf({ failures }: PipeScalingStatus): readonly Failure[] {
  return failures?.length ? failures.map(failureOf) : NO_FAILURES;
}

function fallbacksOf({ pipes }: PipeScalingStatus): readonly Fallback[] {
  if (!pipes?.fallbacks?.length) return NO_FALLBACKS;
  return pipes.fallbacks.map(({ pipe, reason }) => ({ pipe, reason: fallbackReasonOf(reason) }));
}

function failureOf({ pipe, size, reason, attempts, at, nextRetryAt }: PipeFailure): Failure {
  const times = { atMs: instant(at), nextRetryAtMs: instant(nextRetryAt) };
  return { pipe, size: sizeIn(size), reason: reasonOf(reason, "Failed"), attempts, ...times };
}

function instant(text: string | undefined): number | undefined {
  return parseInstant(text) || undefined;
}
