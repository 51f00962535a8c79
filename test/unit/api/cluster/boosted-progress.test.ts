import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { atTime, toPipeScalingView } from "../../../../src/api/cluster/views.ts";
import {
  pipeScalingProgress,
  toPipeScalingProgress,
} from "../../../../src/api/resources/pipe-scaling/progress-schema.ts";
import type { PipeScalingSpec, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import {
  BOOST_REQUEST_ANNOTATION,
  formatScalingRequest,
  REQUEST_ANNOTATION,
} from "../../../../src/crd/scaling-request.ts";
import { boostFields, describedSize, sizeFields } from "../../../../src/crd/size-fields.ts";
import type { Boost } from "../../../../src/domain/boost.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse("2026-01-31T12:00:00Z");
const STARTED = "2026-01-31T11:00:00Z";
const COMPLETED = "2026-01-31T11:04:00Z";
const BOOST: Boost = { size: sizeOfCores(8), untilMs: NOW_MS + HOUR_MS };
const AUTHOR = { apiKey: "k", requestedAt: STARTED };

/** Two cores are requested by r1, and the boost by r2. */
const ANNOTATIONS = {
  [REQUEST_ANNOTATION]: formatScalingRequest({ ...AUTHOR, ...sizeFields(sizeOfCores(2)), requestId: "r1" }),
  [BOOST_REQUEST_ANNOTATION]: formatScalingRequest({ ...AUTHOR, ...boostFields(BOOST), requestId: "r2" }),
};

/** The status when all pipes have the size. */
function done(cores: number, more: Partial<PipeScalingStatus> = {}, requestId = "r2"): PipeScalingStatus {
  const size = describedSize(sizeOfCores(cores));
  return {
    observedGeneration: 2,
    conditions: [
      { type: "Ready", status: "True", reason: "Scaled", message: "", lastTransitionTime: STARTED },
    ],
    desired: { ...size, source: "Spec" },
    effective: size,
    pipes: { total: 3, updated: 3, summary: "3/3" },
    propagation: { requestId, startedAt: STARTED, completedAt: COMPLETED },
    ...more,
  };
}

/** The status when all pipes have the size of the boost. */
const BOOSTED = done(8, {
  boost: { ...describedSize(BOOST.size), until: "2026-01-31T13:00:00Z" },
  desired: { ...describedSize(BOOST.size), source: "Boost" },
});

const TWO: PipeScalingSpec = sizeFields(sizeOfCores(2));
const WITH_BOOST: PipeScalingSpec = { ...TWO, boost: boostFields(BOOST) };

function progressAt(
  nowMs: number,
  spec: PipeScalingSpec,
  status: PipeScalingStatus,
  annotations: Readonly<Record<string, string>> = ANNOTATIONS,
) {
  const metadata = { name: "s", namespace: "n", uid: "u", resourceVersion: "1", generation: 2 };
  const view = toPipeScalingView({ metadata: { ...metadata, annotations }, spec, status });
  const progress = toPipeScalingProgress({ ...atTime(view, nowMs), effective: view.effective, nowMs });
  const object: unknown = JSON.parse(JSON.stringify(progress));
  return pipeScalingProgress.parse(object);
}

describe("the progress of a PipeScaling with a boost", () => {
  it("has the boost with the time left, and its request", () => {
    expect(progressAt(NOW_MS, WITH_BOOST, BOOSTED)).toMatchObject({
      state: "scaled",
      requestId: "r2",
      pipes: { total: 3, updated: 3 },
      desired: { ...sizeFields(BOOST.size), source: "Boost" },
      boost: { ...sizeFields(BOOST.size), until: "2026-01-31T13:00:00.000Z", remainingSeconds: 3600 },
    });
  });

  it("is pending until the controller has observed the boost", () => {
    const before = done(2, { observedGeneration: 1 }, "r1");
    expect(progressAt(NOW_MS, WITH_BOOST, before)).toMatchObject({
      state: "propagating",
      reason: "Pending",
      requestId: "r2",
      pipes: { total: 3, updated: 0 },
      desired: { ...sizeFields(BOOST.size), source: "Boost" },
    });
  });

  it("is pending from the end of the boost until the controller has observed the end", () => {
    const after = progressAt(BOOST.untilMs, WITH_BOOST, BOOSTED);
    expect(after).toMatchObject({
      state: "propagating",
      reason: "Pending",
      requestId: "r1",
      pipes: { total: 3, updated: 0 },
      desired: { ...sizeFields(sizeOfCores(2)), source: "Spec" },
    });
    expect(after).not.toHaveProperty("boost");
    const removed = progressAt(NOW_MS, TWO, { ...BOOSTED, observedGeneration: 1 });
    expect(removed).toMatchObject({ state: "propagating", requestId: "r1", desired: { source: "Spec" } });
    expect(removed).not.toHaveProperty("boost");
  });

  it("is also pending after the end of a boost that was set without a request", () => {
    const { propagation: _, ...status } = BOOSTED;
    const after = progressAt(BOOST.untilMs, WITH_BOOST, status, {});
    expect(after).toMatchObject({
      state: "propagating",
      reason: "Pending",
      pipes: { updated: 0 },
      desired: { ...sizeFields(sizeOfCores(2)), source: "Spec" },
    });
    expect(progressAt(NOW_MS, WITH_BOOST, status, {})).toMatchObject({ state: "scaled" });
  });

  it("has no desired size after the boost if the tier decides it, until the controller has observed the end", () => {
    const spec = { boost: boostFields(BOOST) };
    expect(progressAt(BOOST.untilMs, spec, BOOSTED)).not.toHaveProperty("desired");
  });

  it("has no boost whose end the controller has reported, whatever the clock of the API says", () => {
    const reported = done(2, {}, "r1");
    fc.assert(
      fc.property(fc.integer({ min: -40 * HOUR_MS, max: 40 * HOUR_MS }), (ms) => {
        const progress = progressAt(NOW_MS + ms, WITH_BOOST, reported);
        expect(progress).toMatchObject({ state: "scaled", requestId: "r1" });
        expect(progress).not.toHaveProperty("boost");
      }),
    );
  });

  it("has no boost whose end cannot be parsed", () => {
    const boost = { ...boostFields(BOOST), until: "2030-01-01T00:00:00+99:99" };
    const metadata = { name: "s", namespace: "n", uid: "u", resourceVersion: "1", generation: 2 };
    expect(toPipeScalingView({ metadata, spec: { ...TWO, boost } }).boosted).toBeUndefined();
    const progress = progressAt(NOW_MS, { ...TWO, boost }, done(2, {}, "r1"));
    expect(progress).toMatchObject({ state: "scaled", requestId: "r1" });
  });

  it("never counts a pipe for another size than that of the boost before its end, and of the request after it", () => {
    const statuses = fc.constantFrom(BOOSTED, done(2, {}, "r1"), done(2, { observedGeneration: 1 }, "r1"));
    fc.assert(
      fc.property(fc.integer({ min: -HOUR_MS, max: 2 * HOUR_MS }), statuses, (ms, status) => {
        const { state, boost, desired, pipes } = progressAt(NOW_MS + ms, WITH_BOOST, status);
        const isUpdated = (pipes?.updated ?? 0) > 0;
        if (state === "scaled") expect(isUpdated).toBe(true);
        if (boost) expect(boost.remainingSeconds).toBe(Math.ceil((BOOST.untilMs - NOW_MS - ms) / 1000));
        if (isUpdated) expect(desired).toMatchObject(sizeFields(sizeOfCores(status === BOOSTED ? 8 : 2)));
      }),
    );
  });
});
