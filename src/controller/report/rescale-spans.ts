import type { PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { requestSpanId, type Span, spanIdOf } from "../../telemetry/span.ts";
import { activeBoost, requestOf } from "../observe/pipe-scaling-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { describeFailure, newFailures } from "./failures.ts";
import { newlyResized, type StatusChange } from "./resize-methods.ts";

/** A change of the status at a time. */
export interface Step extends StatusChange {
  readonly nowMs: number;
}

/**
 * Returns the spans of work that ended between two statuses: pipes that got their size or failed to, and a rescale that
 * completed or was superseded. They are derived from the statuses, like Events (events.ts), so a controller also
 * records the end of work that its predecessor started.
 */
export function rescaleSpans(step: Step): Span[] {
  const service = { "pipe_scaling.service": step.scaling.metadata.name };
  const spans = [...resizedPipes(step), ...failedPipes(step), ...endedRescales(step)];
  return spans.map((span) => ({ ...span, attributes: { ...span.attributes, ...service } }));
}

function resizedPipes(step: Step): Span[] {
  return newlyResized(step).flatMap(({ pipe, rollout, method }) => {
    const { requestId, attempts, startedAtMs, inPlaceStartedAtMs = startedAtMs, generation } = rollout;
    if (requestId === undefined) return [];
    const work = { requestId, pipe: nameOf(pipe), attempts, work: `${pipe.metadata.uid} ${generation}` };
    const isInPlace = method === "InPlace";
    const startMs = isInPlace ? inPlaceStartedAtMs : startedAtMs;
    return pipeSpan(step, { ...work, name: isInPlace ? "resize in place" : "roll out", startMs });
  });
}

function failedPipes(step: Step): Span[] {
  const { scaling, after, pipes } = step;
  const requestId = after.propagation?.requestId;
  if (requestId === undefined) return [];
  return newFailures(scaling.status, after).map((failure) => {
    const { pipe, reason, attempts, at } = failure;
    const last = pipes.find((each) => nameOf(each) === pipe)?.lastRollout;
    const isOfThis = last?.requestId === requestId && last.attempts === attempts;
    // A rejected patch and a failure in place did not start a rollout.
    const isRollout = isOfThis && last.inPlaceStartedAtMs === undefined;
    return pipeSpan(step, {
      requestId,
      name: isRollout ? "roll out" : "resize",
      pipe,
      attempts,
      work: `${pipe} ${reason} ${attempts} ${at}`,
      startMs: isRollout ? last.startedAtMs : Date.parse(at),
      failure: describeFailure(failure),
    });
  });
}

/** @param work.work identifies the work within its trace */
function pipeSpan(
  { after: { propagation, desired }, nowMs }: Step,
  work: Pick<Span, "requestId" | "name" | "startMs" | "failure"> &
    Readonly<{ pipe: string; attempts: number; work: string }>,
): Span {
  const { requestId, name, startMs, failure, pipe, attempts } = work;
  return {
    requestId,
    name,
    kind: "internal",
    startMs,
    endMs: nowMs,
    failure,
    id: spanIdOf(requestId, work.work),
    // If another request superseded the rescale meanwhile, the span of that rescale has been recorded already.
    parentId:
      propagation?.requestId === requestId
        ? rescaleSpanId(requestId, propagation.startedAt)
        : requestSpanId(requestId),
    attributes: {
      "pipe_scaling.pipe": pipe,
      "pipe_scaling.size": desired?.summary ?? "",
      "pipe_scaling.attempt": attempts,
    },
  };
}

function endedRescales(step: Step): Span[] {
  const { propagation, desired, pipes } = step.after;
  const before = step.scaling.status.propagation;
  const isSame = before?.requestId === propagation?.requestId;
  const size = { "pipe_scaling.size": desired?.summary ?? "", "pipe_scaling.pipes": pipes?.total ?? 0 };
  return [
    ...(before && !before.completedAt && !isSame ? rescaleSpan(step, before, "superseded", {}) : []),
    ...(propagation?.completedAt && !(isSame && before?.completedAt)
      ? rescaleSpan(step, propagation, "completed", size)
      : []),
  ];
}

function rescaleSpan(
  { scaling, pipes, nowMs }: Step,
  { requestId, startedAt }: NonNullable<PipeScalingStatus["propagation"]>,
  outcome: "completed" | "superseded",
  attributes: Span["attributes"],
): Span[] {
  if (requestId === undefined) return [];
  const request = requestOf(scaling, activeBoost(scaling, nowMs));
  // The time in the status has whole seconds, and may be that of a later status. No rescale starts before its request.
  const requestedAtMs = request?.requestId === requestId ? Date.parse(request.requestedAt) || 0 : 0;
  const starts = pipes.map(({ lastRollout: last }) =>
    last?.requestId === requestId ? last.startedAtMs : nowMs,
  );
  return [
    {
      requestId,
      name: "rescale",
      kind: "internal",
      endMs: nowMs,
      id: rescaleSpanId(requestId, startedAt),
      parentId: requestSpanId(requestId),
      startMs: Math.min(nowMs, ...starts, Math.max(Date.parse(startedAt), requestedAtMs)),
      attributes: { ...attributes, "pipe_scaling.outcome": outcome },
    },
  ];
}

function rescaleSpanId(requestId: string, startedAt: string): string {
  return spanIdOf(requestId, `rescale ${startedAt}`);
}
