import type { PipeScalingStatus } from "../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../crd/scaling-request.ts";
import { formatSize, sameSize } from "../domain/size.ts";
import { requestSpanId, type Span, spanIdOf } from "../telemetry/span.ts";
import { describeFailure, newFailures } from "./failure.ts";
import { latchOf } from "./latch.ts";
import type { Pipe } from "./pipe.ts";
import { requestedSize, type Scaling } from "./scaling.ts";

interface Step {
  readonly scaling: Scaling;
  /** What takes the place of the status that the PipeScaling has. */
  readonly after: PipeScalingStatus;
  readonly pipes: readonly Pipe[];
  readonly nowMs: number;
}

/** A controller picks a request up within this time, or it was away. */
const PICK_UP_MS = 60_000;

/**
 * What is over with the step from one status to the next, for the trace of the request that caused it: a pipe
 * that has come up or failed, the whole rescale, or one that another took the place of. Derived from the statuses,
 * as Events are (news.ts), so that what one controller began is told by the one that sees its end.
 */
export function rescaleSpans(step: Step): Span[] {
  const spans = [superseded(step), ...cameUp(step), ...failed(step), completed(step)];
  const service = { "pipe_scaling.service": step.scaling.metadata.name };
  return spans
    .filter((span) => span !== undefined)
    .map((span) => ({ ...span, attributes: { ...span.attributes, ...service } }));
}

function cameUp({ scaling, after, pipes, nowMs }: Step): Span[] {
  const known = new Set(scaling.status.pipes?.done);
  const fresh = new Set(after.pipes?.done?.filter((latch) => !known.has(latch)));
  return pipes
    .filter((pipe) => fresh.has(latchOf(pipe) ?? ""))
    .flatMap(({ metadata, attempt, size }) => {
      // What it came up with for a PipeScaling that is no more is long over.
      const isOfThis = attempt?.scalingUid === scaling.metadata.uid && sameSize(attempt.size, size);
      if (!isOfThis || attempt.requestId === undefined) return [];
      const { requestId, attempts, startedAtMs } = attempt;
      const work = `${metadata.uid} ${attempt.pipeGeneration}`;
      const what = { pipe: metadata.name, size: formatSize(attempt.size), attempts };
      return pipeSpan(requestId, after, work, what, startedAtMs, nowMs);
    });
}

function failed({ scaling, after, pipes, nowMs }: Step): Span[] {
  const requestId = after.propagation?.requestId;
  if (requestId === undefined) return [];
  return newFailures(scaling.status, after).map((failure) => {
    const attempt = pipes.find(({ metadata }) => metadata.name === failure.pipe)?.attempt;
    const isOfThis = attempt?.requestId === requestId && attempt.attempts === failure.attempts;
    // One that was refused was never begun.
    const startMs = isOfThis ? attempt.startedAtMs : Date.parse(failure.at);
    const work = `${failure.pipe} ${failure.reason} ${failure.attempts} ${failure.at}`;
    return {
      ...pipeSpan(requestId, after, work, failure, startMs, nowMs),
      failure: describeFailure(failure),
    };
  });
}

function pipeSpan(
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
    // One that another request took the place of meanwhile has told of its end already.
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

function completed({ scaling, after, nowMs }: Step): Span | undefined {
  const { requestId, startedAt, completedAt } = after.propagation ?? {};
  const before = scaling.status.propagation;
  const isTold = before?.requestId === requestId && before?.completedAt !== undefined;
  if (requestId === undefined || startedAt === undefined || completedAt === undefined || isTold)
    return undefined;
  const size = requestedSize(scaling);
  const request = size && scalingRequestFor(size, scaling.requestAnnotation);
  const startedAtMs = Date.parse(startedAt);
  // To the millisecond, where it is known so well. A size that was set back by hand to what a request had asked for
  // long ago is credited to it again, and has not been on its way since then.
  const requestedAtMs = request?.requestId === requestId ? Date.parse(request.requestedAt) : Number.NaN;
  const isOfNow = Math.abs(startedAtMs - requestedAtMs) < PICK_UP_MS;
  const { desired, pipes } = after;
  return rescaleSpan(requestId, startedAt, "completed", isOfNow ? requestedAtMs : startedAtMs, nowMs, {
    ...(desired ? { "pipe_scaling.size": desired.summary } : {}),
    "pipe_scaling.pipes": pipes?.total ?? 0,
  });
}

function superseded({ scaling, after, nowMs }: Step): Span | undefined {
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
