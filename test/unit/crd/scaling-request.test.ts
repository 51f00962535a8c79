import { describe, expect, it } from "vitest";
import {
  boostRequestFor,
  formatScalingRequest,
  scalingRequestFor,
} from "../../../src/crd/scaling-request.ts";

const SIZE = { cpuMillicores: 4000, memoryGib: 16 };
const REQUEST = {
  requestId: "3f1c1a52-6c1f-4a39-a5c8-7d7a4c1b2f10",
  apiKey: "8b0f7f39-3f5e-4a4c-9a51-0f3c7f1d2e60",
  requestedAt: "2026-01-31T12:00:00.000Z",
  replicaCpuMillicores: 4000,
  replicaMemoryGb: 16,
};

describe("the annotation with the request for a size", () => {
  it("is read for the size that it names, and for no other", () => {
    const annotation = formatScalingRequest(REQUEST);
    expect(scalingRequestFor(SIZE, annotation)).toEqual(REQUEST);
    expect(scalingRequestFor({ cpuMillicores: 8000, memoryGib: 32 }, annotation)).toBeUndefined();
  });

  it("is ignored if it is longer than 1000 characters", () => {
    const annotation = formatScalingRequest({ ...REQUEST, apiKey: "a".repeat(1000) });
    expect(scalingRequestFor(SIZE, annotation)).toBeUndefined();
  });
});

describe("the annotation with the request for a boost", () => {
  const untilMs = Date.parse("2026-01-31T20:00:00Z");

  it("is read for the size and the end that it names, and for no other", () => {
    const annotation = formatScalingRequest({ ...REQUEST, until: "2026-01-31T21:00:00+01:00" });
    expect(boostRequestFor({ size: SIZE, untilMs }, annotation)?.requestId).toBe(REQUEST.requestId);
    expect(boostRequestFor({ size: SIZE, untilMs: untilMs + 1 }, annotation)).toBeUndefined();
    const other = { cpuMillicores: 8000, memoryGib: 32 };
    expect(boostRequestFor({ size: other, untilMs }, annotation)).toBeUndefined();
  });

  it.each([undefined, "tomorrow"])("is ignored if its end is %s", (until) => {
    const annotation = formatScalingRequest({ ...REQUEST, ...(until === undefined ? {} : { until }) });
    expect(boostRequestFor({ size: SIZE, untilMs }, annotation)).toBeUndefined();
    expect(boostRequestFor({ size: SIZE, untilMs: Number.NaN }, annotation)).toBeUndefined();
  });
});
