import type { PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import { formatSize, sameSize } from "../../domain/size.ts";
import { requestSpanId, type Span, spanIdOf } from "../../telemetry/span.ts";
import { rolloutId } from "../decide/came-up.ts";
import { describeFailure, newFailures } from "../decide/failure.ts";
import { startedAtMs as inPlaceStartedAtMs } from "../decide/in-place.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { type PipeScalingView, requestedSize } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { newFallbacks } from "./resize-methods.ts";

interface Step extends Pick<Snapshot, "inPlace"> {
  readonly scaling: PipeScalingView;
  /** The new status of the PipeScaling. */
  readonly after: PipeScalingStatus;
  readonly pipes: readonly DeploymentView[];
  readonly nowMs: number;
}

/** A running controller picks up a request within this time. */
const PICK_UP_MS = 60_000;

/**
 * Returns the spans of work that ended between two statuses: rollouts that completed or failed, and a rescale that
 * completed or was superseded. They are derived from the statuses, like Events (events.ts), so a controller also
 * records the end of work that its predecessor started.
 */
export function rescaleSpans(step: Step): Span[] {
  const spans = [
    supersededRescale(step),
    ...completedRollouts(step),
    ...failedRollouts(step),
    ...failedResizesInPlace(step),
    completedRescale(step),
  ];
  const service = { "pipe_scaling.service": step.scaling.metadata.name };
  return spans
    .filter((span) => span !== undefined)
    .map((span) => ({ ...span, attributes: { ...span.attributes, ...service } }));
}

function completedRollouts({ scaling, after, pipes, nowMs }: Step): Span[] {
  const known = scaling.status.pipes?.cameUp ?? {};
  return pipes
    .filter((pipe) => {
      const id = rolloutId(pipe);
      const { name } = pipe.metadata;
      return id !== undefined && after.pipes?.cameUp?.[name] === id && known[name] !== id;
    })
    .flatMap(({ metadata, lastRollout, size }) => {
      // A rollout for a deleted PipeScaling of the same name is not part of this one.
      const isOfThis = lastRollout?.scalingUid === scaling.metadata.uid && sameSize(lastRollout.size, size);
      if (!isOfThis || lastRollout.requestId === undefined) return [];
      const { requestId, attempts, startedAtMs, generation } = lastRollout;
      const work = `${metadata.uid} ${generation}`;
      const what = { pipe: metadata.name, size: formatSize(lastRollout.size), attempts };
      const span = rolloutSpan(requestId, after, work, what, startedAtMs, nowMs);
      const isInPlace = after.pipes?.resizedBy?.[metadata.name] === "InPlace";
      return isInPlace ? inPlaceSpans(span, lastRollout.inPlaceStartedAtMs ?? startedAtMs) : [span];
    });
}

/** @param commit from the update of the template to the end */
function inPlaceSpans(commit: Span, startMs: number): Span[] {
  const { requestId, id, startMs: commitMs } = commit;
  const part = (name: string): Span => ({
    ...commit,
    ...{ id: spanIdOf(requestId, `${id} ${name}`), parentId: id, name },
  });
  return [
    { ...part("resize pods"), startMs, endMs: commitMs },
    part("update template"),
    { ...commit, name: "resize in place", startMs },
  ];
}

/** A resize in place that ended with a fallback to a rollout. */
function failedResizesInPlace(step: Step): Span[] {
  const { scaling, after, pipes, nowMs } = step;
  const requestId = after.propagation?.requestId;
  if (requestId === undefined) return [];
  return newFallbacks(scaling.status, after).flatMap((fallback) => {
    const pipe = pipes.find(({ metadata }) => metadata.name === fallback.pipe);
    if (!pipe) return [];
    const startMs = inPlaceStartedAtMs(pipe, step);
    const work = `${pipe.metadata.uid} ${fallback.reason} ${startMs}`;
    const what = { pipe: fallback.pipe, size: after.desired?.summary ?? "", attempts: 1 };
    const span = rolloutSpan(requestId, after, work, what, startMs, nowMs);
    return { ...span, name: "resize in place", failure: `${fallback.reason}: ${fallback.message}` };
  });
}

function failedRollouts({ scaling, after, pipes, nowMs }: Step): Span[] {
  const requestId = after.propagation?.requestId;
  if (requestId === undefined) return [];
  return newFailures(scaling.status, after).map((failure) => {
    const rollout = pipes.find(({ metadata }) => metadata.name === failure.pipe)?.lastRollout;
    const isOfThis = rollout?.requestId === requestId && rollout.attempts === failure.attempts;
    // A rejected patch did not start a rollout.
    const startMs = isOfThis ? rollout.startedAtMs : Date.parse(failure.at);
    const work = `${failure.pipe} ${failure.reason} ${failure.attempts} ${failure.at}`;
    return {
      ...rolloutSpan(requestId, after, work, failure, startMs, nowMs),
      failure: describeFailure(failure),
    };
  });
}

function rolloutSpan(
  requestId: string,
  { propagation }: PipeScalingStatus,
  work: string,
  { pipe, size, attempts }: { readonly pipe: string; readonly size: string; readonly attempts: number },
  startMs: number,
  endMs: number,
): Span {
  return {
    requestId,
    id: spanIdOf(requestId, work),
    // If another request superseded the rescale meanwhile, the span of that rescale has been recorded already.
    parentId:
      propagation?.requestId === requestId
        ? rescaleSpanId(requestId, propagation.startedAt)
        : requestSpanId(requestId),
    kind: "internal",
    name: "roll out",
    startMs,
    endMs,
    attributes: { "pipe_scaling.pipe": pipe, "pipe_scaling.size": size, "pipe_scaling.attempt": attempts },
  };
}

function completedRescale({ scaling, after, nowMs }: Step): Span | undefined {
  const { requestId, startedAt, completedAt } = after.propagation ?? {};
  const before = scaling.status.propagation;
  const isRecorded = before?.requestId === requestId && before?.completedAt !== undefined;
  if (requestId === undefined || startedAt === undefined || completedAt === undefined || isRecorded)
    return undefined;
  const size = requestedSize(scaling);
  const request = size && scalingRequestFor(size, scaling.requestAnnotation);
  const startedAtMs = Date.parse(startedAt);
  // The request time has milliseconds, the status only seconds. If someone sets the size of an old request again, the
  // size is attributed to that request, but the rescale has not been in progress since then.
  const requestedAtMs = request?.requestId === requestId ? Date.parse(request.requestedAt) : Number.NaN;
  const isRecent = Math.abs(startedAtMs - requestedAtMs) < PICK_UP_MS;
  const { desired, pipes } = after;
  return rescaleSpan(requestId, startedAt, "completed", isRecent ? requestedAtMs : startedAtMs, nowMs, {
    ...(desired ? { "pipe_scaling.size": desired.summary } : {}),
    "pipe_scaling.pipes": pipes?.total ?? 0,
  });
}

function supersededRescale({ scaling, after, nowMs }: Step): Span | undefined {
  const { requestId, startedAt, completedAt } = scaling.status.propagation ?? {};
  const isOver = completedAt !== undefined || after.propagation?.requestId === requestId;
  if (requestId === undefined || startedAt === undefined || isOver) return undefined;
  return rescaleSpan(requestId, startedAt, "superseded", Date.parse(startedAt), nowMs, {});
}

function rescaleSpan(
  requestId: string,
  startedAt: string,
  outcome: "completed" | "superseded",
  startMs: number,
  endMs: number,
  attributes: Span["attributes"],
): Span {
  return {
    requestId,
    id: rescaleSpanId(requestId, startedAt),
    parentId: requestSpanId(requestId),
    kind: "internal",
    name: "rescale",
    startMs,
    endMs,
    attributes: { ...attributes, "pipe_scaling.outcome": outcome },
  };
}

function rescaleSpanId(requestId: string, startedAt: string): string {
  return spanIdOf(requestId, `rescale ${startedAt}`);
}
