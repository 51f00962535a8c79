import { describe, expect, it } from "vitest";
import { fallbackSentence } from "../../../../src/api/cluster/fallback-reasons.ts";
import { type Progress, progressOf } from "../../../../src/api/cluster/progress.ts";
import { REASONS, reasonOf, sentenceOf } from "../../../../src/api/cluster/reasons.ts";
import {
  pipeScalingProgress,
  toPipeScalingProgress,
} from "../../../../src/api/resources/pipe-scaling/progress-schema.ts";
import type { Condition, PipeScaling, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { formatScalingRequest, REQUEST_ANNOTATION } from "../../../../src/crd/scaling-request.ts";
import { describeSize, type Size, sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeObject } from "../../../../src/kube/objects.ts";

const STARTED = "2026-01-31T12:00:00Z";
const COMPLETED = "2026-01-31T12:04:00Z";
const NEXT_RETRY = "2026-01-31T12:10:00Z";

function fieldsOf(size: Size) {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

function sized(cores: number) {
  const size = sizeOfCores(cores);
  return { ...fieldsOf(size), summary: describeSize(size) };
}

function condition(type: string, status: Condition["status"], reason: string): Condition {
  return { type, status, reason, message: "node worker-7 of tenant b is full", lastTransitionTime: STARTED };
}

const READY = [condition("Ready", "True", "Scaled")];
const MOVING = reconciling("Progressing");

function reconciling(reason: string): Condition[] {
  return [condition("Ready", "False", reason), condition("Reconciling", "True", reason)];
}

/** The status when all five pipes have the size. */
function done(cores: number, requestId?: string): PipeScalingStatus {
  return {
    observedGeneration: 2,
    conditions: READY,
    desired: { ...sized(cores), source: "Spec" },
    effective: sized(cores),
    pipes: { total: 5, updated: 5, summary: "5/5" },
    propagation: { requestId, startedAt: STARTED, completedAt: COMPLETED },
  };
}

/** A PipeScaling at generation 2, optionally with the request for its size. */
function scaling(of: PipeScaling, request?: { id: string; cores: number }): PipeScaling & KubeObject {
  const annotation =
    request &&
    formatScalingRequest({
      requestId: request.id,
      apiKey: "k",
      requestedAt: STARTED,
      ...fieldsOf(sizeOfCores(request.cores)),
    });
  const annotations = annotation === undefined ? {} : { [REQUEST_ANNOTATION]: annotation };
  return {
    ...of,
    metadata: { name: "s", namespace: "n", uid: "u", resourceVersion: "1", generation: 2, annotations },
  };
}

const sizeFields = (cores: number) => fieldsOf(sizeOfCores(cores));

function shownAt(progress: Progress) {
  return toPipeScalingProgress({ progress, effective: undefined, boost: undefined, nowMs: 0 });
}

/** The response, checked against its schema. */
function responseOf(progress: Progress) {
  const object: unknown = JSON.parse(JSON.stringify(shownAt(progress)));
  return pipeScalingProgress.parse(object);
}

describe("the progress of a PipeScaling", () => {
  it("is scaled if the controller reports it for this generation and this request", () => {
    expect(
      responseOf(progressOf(scaling({ spec: sizeFields(4), status: done(4, "r1") }, { id: "r1", cores: 4 }))),
    ).toEqual({
      state: "scaled",
      reason: "Scaled",
      message: "Every pipe runs the size.",
      desired: { ...sizeFields(4), source: "Spec" },
      pipes: { total: 5, updated: 5 },
      failures: [],
      requestId: "r1",
      startedAt: "2026-01-31T12:00:00.000Z",
      completedAt: "2026-01-31T12:04:00.000Z",
    });
  });

  it("has no results of an earlier size until the controller observes the requested one", () => {
    const status = { ...done(1, "r0"), observedGeneration: 1 };
    const progress = progressOf(scaling({ spec: sizeFields(4), status }, { id: "r1", cores: 4 }));
    expect(responseOf(progress)).toEqual({
      state: "propagating",
      reason: "Pending",
      message: expect.any(String),
      desired: { ...sizeFields(4), source: "Spec" },
      pipes: { total: 5, updated: 0 },
      failures: [],
      requestId: "r1",
    });
  });

  it("keeps the pipe count if the spec changes but the size does not", () => {
    const status = { ...done(4, "r1"), observedGeneration: 1 };
    const progress = progressOf(scaling({ spec: sizeFields(4), status }, { id: "r1", cores: 4 }));
    expect(progress).toMatchObject({ state: "propagating", pipes: { total: 5, updated: 5 } });
  });

  it("is propagating if the same size is requested again, which does not increment the generation", () => {
    const again = scaling({ spec: sizeFields(4), status: done(4, "r1") }, { id: "r2", cores: 4 });
    expect(progressOf(again)).toMatchObject({
      state: "propagating",
      reason: "Pending",
      requestId: "r2",
      startedAtMs: undefined,
    });
  });

  it("has no request for a size that was set with kubectl", () => {
    const status = { ...done(4), propagation: { startedAt: STARTED } };
    const edited = scaling({ spec: sizeFields(4), status }, { id: "r1", cores: 2 });
    expect(progressOf(edited)).toMatchObject({ state: "scaled", requestId: undefined });
  });

  it.each([
    ["no status", undefined],
    ["the initial status of the resource", { observedGeneration: -1 }],
  ])("is propagating with %s", (_, status) => {
    expect(responseOf(progressOf(scaling({ spec: {}, ...(status && { status }) })))).toEqual({
      state: "propagating",
      reason: "Pending",
      message: expect.any(String),
      failures: [],
    });
    expect(progressOf(scaling({ spec: sizeFields(2) })).desired).toEqual({
      size: sizeOfCores(2),
      source: "Spec",
    });
  });

  it("is propagating without a completion time while pipes roll out, regardless of the previous status", () => {
    const status = {
      ...done(4, "r1"),
      conditions: MOVING,
      pipes: { total: 5, updated: 2, summary: "2/5" },
    };
    const progress = progressOf(scaling({ spec: sizeFields(4), status }, { id: "r1", cores: 4 }));
    expect(progress).toMatchObject({
      state: "propagating",
      reason: "Progressing",
      pipes: { total: 5, updated: 2 },
      startedAtMs: Date.parse(STARTED),
      completedAtMs: undefined,
    });
  });

  it.each([
    ["templates still follow", "Progressing"],
    ["templates wait for their owner", "WaitingForOwner"],
    ["templates wait for the rollout window", "WaitingForWindow"],
    ["writes to templates fail", "WriteFailed"],
    ["writes to templates are forbidden", "Forbidden"],
    ["writes to templates are refused", "Refused"],
    ["a later controller has a reason of its own", "OfALaterVersion"],
  ])("is scaled without failures when the pods run the size, although %s", (_, reason) => {
    const size = { ...sizeFields(4), summary: "" } as const;
    const failure = { pipe: "orders", size, reason, message: "", attempts: 2, at: STARTED } as const;
    const status = { ...done(4, "r1"), conditions: reconciling(reason), failures: [failure] };
    const progress = progressOf(scaling({ spec: sizeFields(4), status }, { id: "r1", cores: 4 }));
    expect(progress).toMatchObject({ state: "scaled", reason: "Scaled", failures: [] });
    expect(progress.completedAtMs).toBe(Date.parse(COMPLETED));
  });

  it.each(["WaitingForOwner", "WriteFailed", "OfALaterVersion"])(
    "is propagating while pipes do not run the size, or are not counted, with the reason %s",
    (reason) => {
      const { pipes: _, ...uncounted } = done(4, "r1");
      const pipes = { total: 5, updated: 4, summary: "4/5" };
      for (const status of [uncounted, { ...uncounted, pipes }]) {
        const conditions = reconciling(reason);
        const object = scaling(
          { spec: sizeFields(4), status: { ...status, conditions } },
          { id: "r1", cores: 4 },
        );
        expect(progressOf(object)).toMatchObject({ state: "propagating", completedAtMs: undefined });
      }
    },
  );

  it("is propagating while its PipeScaling is being deleted, whatever was counted before", () => {
    const status = { ...done(4), conditions: reconciling("Deleting") };
    const progress = progressOf(scaling({ spec: sizeFields(4), status }));
    expect(progress).toMatchObject({ state: "propagating", reason: "Deleting" });
  });

  it("is suspended if its spec is, even before a controller reports it", () => {
    const spec = { ...sizeFields(4), suspend: true };
    for (const observedGeneration of [1, 2]) {
      const status = { ...done(4), observedGeneration };
      expect(progressOf(scaling({ spec, status }))).toMatchObject({
        state: "suspended",
        reason: "Suspended",
        completedAtMs: undefined,
      });
    }
  });

  it("names a failed pipe and its next attempt, with the API's own message instead of the cluster's", () => {
    const raw = "exceeded quota: tenant-b-quota, node worker-7";
    const failure = {
      pipe: "orders",
      size: { ...sizeFields(4), summary: "" },
      message: raw,
      attempts: 2,
      at: STARTED,
    };
    const status = {
      ...done(4, "r1"),
      conditions: [
        condition("Ready", "False", "Unschedulable"),
        condition("Stalled", "True", "Unschedulable"),
      ],
      failures: [
        { ...failure, reason: "Unschedulable", nextRetryAt: NEXT_RETRY },
        { ...failure, reason: "tenant-b-quota", size: { ...sizeFields(4), summary: "odd" } },
      ],
    };
    const object = responseOf(progressOf(scaling({ spec: sizeFields(4), status }, { id: "r1", cores: 4 })));
    expect(object).toMatchObject({ state: "failed", reason: "Unschedulable" });
    expect(object.failures).toEqual([
      {
        pipe: "orders",
        size: sizeFields(4),
        reason: "Unschedulable",
        message: "There is currently no room for the pipe at this size.",
        attempts: 2,
        at: "2026-01-31T12:00:00.000Z",
        nextRetryAt: "2026-01-31T12:10:00.000Z",
      },
      expect.objectContaining({ reason: "Failed" }),
    ]);
    expect(object.failures[1]).not.toHaveProperty("nextRetryAt");
    expect(JSON.stringify(object)).not.toMatch(/tenant-b|worker-7|odd/);
  });

  it("is failed even if no pipe has failed", () => {
    const conditions = [
      condition("Ready", "False", "MalformedRecord"),
      condition("Stalled", "True", "MalformedRecord"),
    ];
    const status = { ...done(4), conditions };
    // The controller keeps the last propagation in the status, regardless of later requests.
    const progress = progressOf(scaling({ spec: sizeFields(4), status }, { id: "r2", cores: 4 }));
    expect(progress).toMatchObject({ state: "failed", reason: "MalformedRecord", requestId: "r2" });
    expect(progress.startedAtMs).toBeUndefined();
  });

  it("has the requested size, and nothing of an earlier one, if the controller does not know which one applies", () => {
    const { desired: _, pipes: __, ...status } = done(1, "r1");
    const conditions = [
      condition("Ready", "False", "UnknownTier"),
      condition("Stalled", "True", "UnknownTier"),
    ];
    const edited = { spec: sizeFields(4), status: { ...status, conditions } };
    for (const request of [
      { id: "r1", cores: 4 },
      { id: "r2", cores: 4 },
    ]) {
      expect(responseOf(progressOf(scaling(edited, request)))).toEqual({
        state: "failed",
        reason: "UnknownTier",
        message: sentenceOf("UnknownTier"),
        desired: { ...sizeFields(4), source: "Spec" },
        failures: [],
        requestId: request.id,
      });
    }
    expect(responseOf(progressOf(scaling({ ...edited, spec: {} })))).not.toHaveProperty("desired");
  });

  it("has times with a year of four digits, although the CRD accepts others", () => {
    const propagation = { startedAt: "0000-01-01T00:00:00+12:00", completedAt: "9999-12-31T23:59:59-12:00" };
    const status = { ...done(4), propagation };
    const shown = shownAt(progressOf(scaling({ spec: fieldsOf(sizeOfCores(4)), status })));
    expect(shown).toMatchObject({
      startedAt: "0000-01-01T00:00:00.000Z",
      completedAt: "9999-12-31T23:59:59.999Z",
    });
  });
});

describe("the reasons", () => {
  it("have one sentence each, and an unknown reason becomes another one", () => {
    for (const reason of REASONS) {
      expect(reasonOf(reason, "Failed")).toBe(reason);
      expect(sentenceOf(reason)).toMatch(/^[A-Z].*\.$/);
    }
    for (const text of ["", "constructor", "__proto__", "scaled"])
      expect(reasonOf(text, "Failed")).toBe("Failed");
  });

  it.each([
    ["Ready=True", [condition("Ready", "True", "New")], "scaled", "Scaled"],
    ["Ready=Unknown", [condition("Ready", "Unknown", "New")], "propagating", "Pending"],
    ["Reconciling=True", reconciling("New"), "propagating", "Pending"],
    [
      "Stalled=True",
      [condition("Ready", "False", "New"), condition("Stalled", "True", "New")],
      "failed",
      "Failed",
    ],
  ])("fit the state of %s with a reason of a later controller", (_, conditions, state, reason) => {
    const pipes = { total: 5, updated: state === "scaled" ? 5 : 4, summary: "" };
    const status = { ...done(4), pipes, conditions };
    const progress = progressOf(scaling({ spec: sizeFields(4), status }));
    expect(progress).toMatchObject({ state, reason });
  });
});

describe("the progress of pipes that were resized in place", () => {
  const pipes = {
    total: 5,
    updated: 5,
    summary: "5/5",
    inPlace: 4,
    fallbacks: [
      { pipe: "pipe-a", reason: "Deferred", message: "node worker-7 of tenant b is full" },
      { pipe: "pipe-b", reason: "OfALaterVersion", message: "node worker-7 of tenant b is full" },
    ],
  };
  const shown = (status: PipeScalingStatus) =>
    shownAt(progressOf(scaling({ spec: fieldsOf(sizeOfCores(4)), status })));

  it("counts them, and names the pipes that restarted, without the cluster's messages", () => {
    const object = shown({ ...done(4), pipes });
    expect(pipeScalingProgress.parse(object)).toMatchObject({
      pipes: { total: 5, updated: 5, inPlace: 4 },
      fallbacks: [
        { pipe: "pipe-a", reason: "Deferred", message: fallbackSentence("Deferred") },
        { pipe: "pipe-b", reason: "Other", message: fallbackSentence("Other") },
      ],
    });
    expect(JSON.stringify(object)).not.toContain("worker-7");
  });

  it("omits the in-place count and the fallbacks if there are none, or if they belong to an older request", () => {
    const none = shown(done(4));
    expect([none.pipes, none.fallbacks]).toEqual([{ total: 5, updated: 5 }, undefined]);
    const older = shown({ ...done(2), observedGeneration: 1, pipes });
    expect([older.pipes, older.fallbacks]).toEqual([{ total: 5, updated: 0 }, undefined]);
  });
});
