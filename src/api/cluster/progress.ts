import type { PipeFailure, PipeScaling, PipeScalingSpec, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { REQUEST_ANNOTATION, scalingRequestFor } from "../../crd/scaling-request.ts";
import { parseSize, type Size, sameSize } from "../../domain/size.ts";
import type { DesiredSize } from "../../domain/tier.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { type Reason, reasonOf } from "./reasons.ts";
import { sizeOf } from "./resource-size.ts";

/** How far a rescale has come: as much as a caller may know of a PipeScaling, and no more is kept of it. */
export interface Progress {
  readonly state: "propagating" | "scaled" | "failed" | "suspended";
  readonly reason: Reason;
  /** Absent until the controller has said what the tier gives to who asked for nothing. */
  readonly desired: DesiredSize | undefined;
  /** Absent until the controller has counted them. */
  readonly pipes: { readonly total: number; readonly updated: number } | undefined;
  readonly failures: readonly Failure[];
  /** The request that asked for the size that is wanted now; absent where it came by another way. */
  readonly requestId: string | undefined;
  readonly startedAtMs: number | undefined;
  readonly completedAtMs: number | undefined;
}

interface Failure {
  readonly pipe: string;
  readonly size: Size | undefined;
  readonly reason: Reason;
  readonly attempts: number;
  readonly atMs: number | undefined;
}

/** Most PipeScalings have none: then it is always the same array. */
const NO_FAILURES: readonly Failure[] = [];

/**
 * What is told of a PipeScaling. A caller that has just asked for a size is never told of the one before: until
 * the controller has looked at what is asked for now, it is on its way, and none of the pipes has it.
 */
export function progressOf({ metadata, spec = {}, status = {} }: PipeScaling & KubeObject): Progress {
  const requested = sizeOf(spec);
  const reported = desiredOf(status);
  const wanted = requested ?? reported?.size;
  const requestId =
    wanted && scalingRequestFor(wanted, metadata.annotations?.[REQUEST_ANNOTATION])?.requestId;
  const isSeen = status.observedGeneration === metadata.generation;
  const outcome = outcomeOf(spec, status);
  // The same size asked for once more does not change the generation, but is somebody's request all the same.
  const isCredited = status.propagation?.requestId === requestId;
  if (isSeen && (isCredited || outcome.state !== "scaled")) {
    const times = isCredited ? timesOf(status, outcome.state) : NO_TIMES;
    return {
      ...outcome,
      desired: reported,
      pipes: pipesOf(status),
      failures: failuresOf(status),
      requestId,
      ...times,
    };
  }
  const isSame = requested === undefined || sameSize(requested, reported?.size);
  return {
    ...(spec.suspend ? outcome : PENDING),
    desired: isSame ? reported : { size: requested, source: "Spec" },
    pipes: pipesOf(status, isSame),
    failures: NO_FAILURES,
    requestId,
    ...NO_TIMES,
  };
}

const PENDING = { state: "propagating", reason: "Pending" } as const;
const NO_TIMES = { startedAtMs: undefined, completedAtMs: undefined };

function outcomeOf(spec: PipeScalingSpec, { conditions = [] }: PipeScalingStatus) {
  // The spec says so itself, whether or not a controller is there to agree.
  if (spec.suspend) return { state: "suspended", reason: "Suspended" } as const;
  const ready = conditions.find(({ type }) => type === "Ready");
  if (!ready) return PENDING;
  const reason = reasonOf(ready.reason);
  if (ready.status === "True") return { state: "scaled", reason } as const;
  const isStalled = conditions.some(({ type, status }) => type === "Stalled" && status === "True");
  return { state: isStalled ? "failed" : "propagating", reason } as const;
}

function desiredOf({ desired }: PipeScalingStatus): DesiredSize | undefined {
  const size = desired && sizeOf(desired);
  return desired && size && { size, source: desired.source };
}

/** @param areOfSize whether those that were counted as updated have the size that is wanted now */
function pipesOf({ pipes }: PipeScalingStatus, areOfSize = true): Progress["pipes"] {
  return pipes && { total: pipes.total, updated: areOfSize ? pipes.updated : 0 };
}

function timesOf({ propagation }: PipeScalingStatus, state: Progress["state"]) {
  return {
    startedAtMs: instant(propagation?.startedAt),
    // One that was complete may have begun again, for a new pipe.
    completedAtMs: state === "scaled" ? instant(propagation?.completedAt) : undefined,
  };
}

function failuresOf({ failures }: PipeScalingStatus): readonly Failure[] {
  return failures?.length ? failures.map(failureOf) : NO_FAILURES;
}

function failureOf({ pipe, size, reason, attempts, at }: PipeFailure): Failure {
  return { pipe, size: parseSize(size), reason: reasonOf(reason), attempts, atMs: instant(at) };
}

function instant(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text) || undefined;
}
