import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { eventsOf } from "../../../../src/controller/report/events.ts";
import { rescaleSpans } from "../../../../src/controller/report/rescale-spans.ts";
import type { StatusChange } from "../../../../src/controller/report/resize-methods.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import type { PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
const REQUEST_ID = "0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11";
const REQUEST = {
  requestId: REQUEST_ID,
  apiKey: "key",
  requestedAt: new Date(NOW_MS).toISOString(),
  replicaCpuMillicores: 4000,
  replicaMemoryGb: 16,
};
const SCALING = aScaling(4, { requestAnnotation: formatScalingRequest(REQUEST) });

/** Two pods run the size; a rollout of three pods to the old size, for another request, was before. */
const RESIZED = aLabelledPipe("a", {
  replicas: 2,
  lastRollout: aRollout(sizeOfCores(1), { requestId: "an-earlier-one", replicas: 3, cameUp: true }),
});
const COMMITTED = aLabelledPipe("a", {
  replicas: 2,
  size: FOUR,
  lastRollout: aRollout(FOUR, {
    requestId: REQUEST_ID,
    replicas: 2,
    cameUp: true,
    inPlaceStartedAtMs: NOW_MS - 90_000,
    startedAtMs: NOW_MS - 60_000,
  }),
});

function statusFor(pipe: PipeView) {
  const pods = new Map([["a", [aResizedPod("a-1"), aResizedPod("a-2")]]]);
  const snapshot = aSnapshot([pipe], { scaling: SCALING, strategy: "InPlaceOrRollout", pods });
  return statusOf(snapshot, SCALING, decide(snapshot, DECIDE_OPTIONS), POLICY);
}

describe("a pipe whose pods run the size", () => {
  const resized = statusFor(RESIZED);
  const committed = statusFor(COMMITTED);
  /** A status before anything happened, so that only the pipe is news. */
  const before: PipeScalingStatus = { ...resized, pipes: { total: 1, updated: 0, summary: "0/1" } };

  const changeTo = (after: PipeScalingStatus, pipe: PipeView, status = before) => ({
    scaling: { ...SCALING, status },
    after,
    pipes: [pipe],
    reported: new Set<string>(),
  });

  /** A previous status with this time of completion. */
  function completed(atMs: number): Partial<StatusChange> {
    const propagation = {
      requestId: REQUEST_ID,
      startedAt: new Date(NOW_MS - 100_000).toISOString(),
      completedAt: new Date(atMs).toISOString(),
    };
    return { scaling: { ...SCALING, status: { ...before, propagation } } };
  }

  it("has its Event when its template has followed, with its pods", () => {
    const follows = changeTo(committed, COMMITTED, resized);
    expect(eventsOf(changeTo(resized, RESIZED))).toEqual([]);
    expect(eventsOf(follows).map(({ reason, note }) => `${reason}: ${note}`)).toEqual([
      `ResizedInPlace: Resized 2 pods in place to 4 cpu / 16 Gi, and updated the template without a rollout (request ${REQUEST_ID}).`,
    ]);
  });

  it("has its span when its template has followed, in the trace of its request", () => {
    const spansOf = (change: StatusChange) => rescaleSpans({ ...change, nowMs: NOW_MS });
    expect(spansOf(changeTo(resized, RESIZED))).toEqual([]);
    expect(spansOf(changeTo(committed, COMMITTED, resized))).toMatchObject([
      { requestId: REQUEST_ID, name: "resize in place", startMs: NOW_MS - 90_000 },
    ]);
  });

  it("is no news if another size was wanted for a moment", () => {
    const desired = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, summary: "8 cpu / 32 Gi" } as const;
    const other = {
      ...before,
      desired: { ...desired, source: "Spec" as const },
      propagation: { startedAt: new Date(NOW_MS - 10_000).toISOString() },
    };
    const change = changeTo(committed, COMMITTED, other);
    expect(eventsOf(change).map(({ reason }) => reason)).not.toContain("ResizedInPlace");
    expect(rescaleSpans({ ...change, nowMs: NOW_MS }).map(({ name }) => name)).toEqual(["rescale"]);
  });

  it.each<[string, Partial<StatusChange>, number]>([
    ["this process has reported it", { reported: new Set(["uid-a"]) }, 0],
    ["the rescale completed after its commit", completed(NOW_MS + 1000), 0],
    // Callers need not wait for the templates, so this is usual.
    ["the rescale completed during its commit", completed(NOW_MS - 50_000), 1],
  ])("is news once, after its pods had another size for a while, if %s", (_, changes, news) => {
    const change = { ...changeTo(committed, COMMITTED), ...changes };
    expect(eventsOf(change).filter(({ reason }) => reason === "ResizedInPlace")).toHaveLength(news);
    const spans = rescaleSpans({ ...change, nowMs: NOW_MS }).map(({ name }) => name);
    expect(spans.filter((name) => name === "resize in place")).toHaveLength(news);
  });

  it("counts as resized in place at once, because the rescale is complete for callers", () => {
    expect([resized.pipes, committed.pipes]).toMatchObject([
      { updated: 1, inPlace: 1 },
      { updated: 1, inPlace: 1, resizedBy: { a: "InPlace" } },
    ]);
    expect(resized.pipes?.resizedBy).toBeUndefined();
  });
});
