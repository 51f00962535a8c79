import { describe, expect, it } from "vitest";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { rescaleSpans } from "../../../../src/controller/report/rescale-spans.ts";
import type { PipeFailure, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import { describedSize } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { requestSpanId } from "../../../../src/telemetry/span.ts";
import { aPipe, aRollout, aScaling, NOW_MS } from "../../../support/fixtures/snapshot.ts";

const REQUEST_ID = "0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11";
const OTHER_ID = "1c8f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c22";
const STARTED = "2026-06-01T11:58:00Z";
const COMPLETED = "2026-06-01T12:00:00Z";
const four = sizeOfCores(4);

function grown(name: string, changes: Partial<LastRollout> = {}): PipeView {
  const lastRollout = aRollout(four, { requestId: REQUEST_ID, generation: 2, ...changes });
  return aPipe(name, { size: four, lastRollout });
}

function statusOf(
  pipes: readonly PipeView[],
  propagation: PipeScalingStatus["propagation"],
  failures?: PipeFailure[],
): PipeScalingStatus {
  const methods = pipes.map(({ metadata, lastRollout }) => {
    const isInPlace = lastRollout?.inPlaceStartedAtMs !== undefined;
    return [metadata.name, isInPlace ? "InPlace" : "Rollout"] as const;
  });
  return {
    pipes: { total: 2, updated: pipes.length, summary: "", resizedBy: Object.fromEntries(methods) },
    propagation,
    ...(failures ? { failures } : {}),
  };
}

function spans(
  before: PipeScalingStatus,
  after: PipeScalingStatus,
  pipes: readonly PipeView[],
  annotation?: string,
) {
  const scaling = aScaling(4, { status: before, requestAnnotation: annotation });
  return rescaleSpans({ scaling, after, pipes, reported: new Set(), nowMs: NOW_MS });
}

const underWay = { requestId: REQUEST_ID, startedAt: STARTED };

describe("the spans of a rescale", () => {
  const [a, b] = [grown("a"), grown("b")];

  it("have one span for each pipe, recorded when its rollout completes", () => {
    const first = spans(statusOf([], underWay), statusOf([a], underWay), [a, b]);
    expect(first).toEqual([
      expect.objectContaining({
        requestId: REQUEST_ID,
        name: "roll out",
        startMs: NOW_MS - 60_000,
        endMs: NOW_MS,
        attributes: {
          "pipe_scaling.service": "service",
          "pipe_scaling.pipe": "a",
          "pipe_scaling.size": expect.any(String),
          "pipe_scaling.attempt": 1,
        },
      }),
    ]);
    expect(spans(statusOf([a], underWay), statusOf([a], underWay), [a, b])).toEqual([]);
  });

  it("include the rescale when it completes, as a child of the request and the parent of the rollouts", () => {
    const after = statusOf([a, b], { ...underWay, completedAt: COMPLETED });
    const all = spans(statusOf([a], underWay), after, [a, b]);
    expect(all.map(({ name }) => name)).toEqual(["roll out", "rescale"]);
    const [pipe, rescale] = all;
    expect(rescale).toMatchObject({
      parentId: requestSpanId(REQUEST_ID),
      startMs: Date.parse(STARTED),
      endMs: NOW_MS,
      attributes: { "pipe_scaling.outcome": "completed", "pipe_scaling.pipes": 2 },
    });
    expect(pipe?.parentId).toBe(rescale?.id);
    // A new pipe changes completedAt again, but the span of that rescale has already been recorded.
    const again = statusOf([a, b], { ...underWay, completedAt: "2026-06-01T13:00:00Z" });
    expect(spans(after, again, [a, b])).toEqual([]);
  });

  it("do not start before the request, whose time has milliseconds", () => {
    const requestedAt = "2026-06-01T11:58:00.250Z";
    const request = { requestId: REQUEST_ID, apiKey: "key", requestedAt };
    const annotation = formatScalingRequest({ ...request, replicaCpuMillicores: 4000, replicaMemoryGb: 16 });
    const after = statusOf([a, b], { ...underWay, completedAt: COMPLETED });
    const [rescale] = spans(statusOf([a, b], underWay), after, [a, b], annotation);
    expect(rescale?.startMs).toBe(Date.parse(requestedAt));
  });

  it("start with the rescale if a user restored the size of an old request", () => {
    const request = { requestId: REQUEST_ID, apiKey: "key", requestedAt: "2026-05-01T00:00:00.000Z" };
    const annotation = formatScalingRequest({ ...request, replicaCpuMillicores: 4000, replicaMemoryGb: 16 });
    const [rescale] = spans({}, statusOf([a, b], { ...underWay, completedAt: COMPLETED }), [], annotation);
    expect(rescale?.startMs).toBe(Date.parse(STARTED));
    const earlier = { requestId: REQUEST_ID, startedAt: "2026-05-01T00:00:00Z" };
    const [first] = spans({}, statusOf([a, b], { ...earlier, completedAt: COMPLETED }), [], annotation);
    expect(first?.id).not.toBe(rescale?.id);
  });

  it("start no later than their first rollout, even if the first status was not written", () => {
    const startedAtMs = Date.parse(STARTED) - 20;
    const pipes = [grown("a", { startedAtMs }), grown("b"), aPipe("c")];
    const completed = { ...underWay, completedAt: COMPLETED };
    const ended = spans(statusOf(pipes, underWay), statusOf(pipes, completed), pipes);
    expect(ended.find(({ name }) => name === "rescale")?.startMs).toBe(startedAtMs);
  });

  it("record a failed rollout and the completed rollout that follows as separate spans", () => {
    const failure = {
      pipe: "a",
      size: describedSize(four),
      reason: "RolloutTimeout",
      message: "the rollout has not completed in 15m",
      attempts: 1,
      at: "2026-06-01T11:59:30Z",
    };
    const before = statusOf([], underWay);
    const [failed, ...none] = spans(before, statusOf([], underWay, [failure]), [a, b]);
    expect(none).toEqual([]);
    expect(failed).toMatchObject({ name: "roll out", startMs: NOW_MS - 60_000 });
    expect(failed?.failure).toContain("the rollout has not completed in 15m");
    expect(spans(statusOf([], underWay, [failure]), statusOf([], underWay, [failure]), [a])).toEqual([]);
    const [up] = spans(statusOf([], underWay, [failure]), statusOf([a], underWay), [a]);
    expect(up?.id).not.toBe(failed?.id);
    const [refused] = spans(before, statusOf([], underWay, [failure]), [aPipe("a")]);
    expect(refused?.startMs, "a refused patch, which has not started a rollout").toBe(Date.parse(failure.at));
  });

  it("do not name a failure a rollout if none began", () => {
    const failure = {
      pipe: "a",
      size: describedSize(four),
      reason: "Refused",
      message: "the policy says no",
      attempts: 1,
      at: "2026-06-01T11:59:30Z",
    };
    const after = statusOf([], underWay, [failure]);
    for (const pipe of [aPipe("a"), grown("a", { inPlaceStartedAtMs: NOW_MS - 90_000 })])
      expect(spans(statusOf([], underWay), after, [pipe])).toMatchObject([
        { name: "resize", startMs: Date.parse(failure.at) },
      ]);
  });

  it("start with the first pod of a resize in place", () => {
    const pipe = grown("a", { inPlaceStartedAtMs: NOW_MS - 90_000 });
    expect(spans(statusOf([], underWay), statusOf([pipe], underWay), [pipe])).toEqual([
      expect.objectContaining({ name: "resize in place", startMs: NOW_MS - 90_000, endMs: NOW_MS }),
    ]);
  });

  it("include a rescale that was superseded by another one", () => {
    const after = statusOf([], { requestId: OTHER_ID, startedAt: COMPLETED });
    expect(spans(statusOf([], underWay), after, [])).toEqual([
      expect.objectContaining({
        requestId: REQUEST_ID,
        name: "rescale",
        attributes: { "pipe_scaling.service": "service", "pipe_scaling.outcome": "superseded" },
      }),
    ]);
    const over = statusOf([], { ...underWay, completedAt: COMPLETED });
    expect(spans(over, after, [])).toEqual([]);
  });

  it("are children of their request even if another request has superseded its rescale", () => {
    const other = { requestId: OTHER_ID, startedAt: COMPLETED };
    expect(spans(statusOf([], other), statusOf([a], other), [a])).toEqual([
      expect.objectContaining({ requestId: REQUEST_ID, parentId: requestSpanId(REQUEST_ID) }),
    ]);
  });

  it("are not recorded for a size without a request, or for rollouts of a deleted PipeScaling", () => {
    const anonymous = grown("a", { requestId: undefined });
    const completed = { startedAt: STARTED, completedAt: COMPLETED };
    expect(spans({}, statusOf([anonymous], completed), [anonymous])).toEqual([]);
    const earlier = grown("a", { scalingUid: "another" });
    expect(spans({}, statusOf([earlier], underWay), [earlier])).toEqual([]);
  });
});
