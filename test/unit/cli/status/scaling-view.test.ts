import { describe, expect, test } from "vitest";
import { currentCondition, sinceOf, viewOf } from "../../../../src/cli/status/scaling-view.ts";
import type { Condition, PipeScaling, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeFields } from "../../../../src/crd/size-fields.ts";
import { describeSize, sizeOfCores } from "../../../../src/domain/size.ts";
import { aScaling, NOW_MS } from "../../../support/fixtures/snapshot.ts";

function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}

function fields(cores: number) {
  const size = sizeOfCores(cores);
  return {
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
    summary: describeSize(size),
  };
}

function condition(type: string, status: Condition["status"], reason: string): Condition {
  return { type, status, reason, message: "", lastTransitionTime: rfc3339(NOW_MS) };
}

const IN_PROGRESS: PipeScalingStatus = {
  observedGeneration: 1,
  conditions: [condition("Ready", "False", "Progressing"), condition("Reconciling", "True", "Progressing")],
  desired: { ...fields(4), source: "Spec" },
  effective: fields(1),
  pipes: {
    total: 2,
    updated: 1,
    summary: "1/2",
    pending: [{ name: "pipe-a", state: "Rolling", message: "0/3 nodes are available" }],
  },
  propagation: { startedAt: rfc3339(NOW_MS - 120_000), requestId: "r-1" },
};

function view(status: PipeScalingStatus = IN_PROGRESS) {
  return viewOf("orders", aScaling(4, { status }), NOW_MS);
}

describe("the view of a PipeScaling", () => {
  test("shows the sizes and the pipes that the controller reports", () => {
    expect(view()).toMatchObject({
      desired: sizeOfCores(4),
      effective: sizeOfCores(1),
      source: "Spec",
      requestId: "r-1",
      pipes: { total: 2, updated: 1 },
      pending: [{ name: "pipe-a", state: "Rolling", message: "0/3 nodes are available" }],
    });
  });

  const state = (conditions: Condition[], observedGeneration = 1) => {
    const { state, reason } = view({ ...IN_PROGRESS, conditions, observedGeneration });
    return [state, reason];
  };

  test("derives the state from the conditions", () => {
    expect(state([condition("Ready", "True", "Scaled")])).toEqual(["scaled", "Scaled"]);
    const stalled = [condition("Ready", "False", "Refused"), condition("Stalled", "True", "Refused")];
    expect(state(stalled)).toEqual(["failed", "Refused"]);
    expect(state([condition("Ready", "Unknown", "Suspended")])).toEqual(["suspended", "Suspended"]);
    expect(state(IN_PROGRESS.conditions ?? [])).toEqual(["propagating", "Progressing"]);
  });

  test("does not explain the state by a condition of another tool", () => {
    const synced = condition("Synced", "True", "ReconcileSuccess");
    const ready = condition("Ready", "True", "Scaled");
    expect(state([synced, ready])).toEqual(["scaled", "Scaled"]);
    expect(currentCondition([synced, ready])).toBe(ready);
    const stalled = condition("Stalled", "True", "Refused");
    expect(currentCondition([synced, condition("Ready", "False", "Refused"), stalled])).toBe(stalled);
  });

  test("is propagating while the newest spec is not observed, regardless of the conditions", () => {
    expect(state([condition("Ready", "True", "Scaled")], 0)).toEqual(["propagating", "NotObservedYet"]);
    expect(state([], -1)).toEqual(["unknown", "NotObservedYet"]);
    const old = view({ ...IN_PROGRESS, observedGeneration: 0, desired: { ...fields(2), source: "Spec" } });
    expect(old).toMatchObject({ desired: sizeOfCores(4), pending: [] });
  });

  test("counts no pipe for a size that the controller has not observed, and shows no times of the one before", () => {
    const old = { ...IN_PROGRESS, observedGeneration: 0, desired: { ...fields(2), source: "Spec" as const } };
    expect(view(old)).toMatchObject({ pipes: { total: 2, updated: 0 }, startedAt: undefined });
    expect(sinceOf(aScaling(4, { status: old }), NOW_MS)).toBeUndefined();
    expect(sinceOf(aScaling(4, { status: IN_PROGRESS }), NOW_MS)).toEqual(new Date(NOW_MS));
    // A change of anything else leaves the counts as they are.
    const same = view({ ...IN_PROGRESS, observedGeneration: 0 });
    expect(same).toMatchObject({ pipes: { total: 2, updated: 1 }, startedAt: undefined });
  });

  test("has the requested size, and nothing of an earlier one, if the controller does not know which one applies", () => {
    const { desired: _, pipes: __, ...status } = IN_PROGRESS;
    const conditions = [
      condition("Ready", "False", "UnknownTier"),
      condition("Stalled", "True", "UnknownTier"),
    ];
    expect(view({ ...status, conditions })).toMatchObject({
      state: "failed",
      desired: sizeOfCores(4),
      source: undefined,
      requestId: undefined,
      pipes: { total: 0, updated: 0 },
      pending: [],
    });
  });

  test("has the boost in effect with the time left, unless the controller has reported its end", () => {
    const boost = { ...fields(8), until: rfc3339(NOW_MS + 60_000) };
    const scaling = aScaling(4);
    const boosted = (status: PipeScalingStatus, nowMs = NOW_MS) => {
      const spec = { ...scaling.spec, boost: { ...sizeFields(sizeOfCores(8)), until: boost.until } };
      return viewOf("orders", aScaling(4, { spec, status }), nowMs).boost;
    };
    const until = new Date(NOW_MS + 60_000).toISOString();
    expect(boosted({ ...IN_PROGRESS, boost })).toEqual({ size: sizeOfCores(8), until, leftMs: 60_000 });
    expect(boosted({ ...IN_PROGRESS, observedGeneration: 0 })).toMatchObject({ leftMs: 60_000 });
    expect(boosted(IN_PROGRESS)).toBeUndefined();
    expect(boosted({ ...IN_PROGRESS, boost }, NOW_MS + 60_000)).toBeUndefined();
  });

  test("is propagating from the end of a boost until the controller has reported it", () => {
    const boost = { ...fields(8), until: rfc3339(NOW_MS) };
    const status: PipeScalingStatus = {
      ...IN_PROGRESS,
      boost,
      desired: { ...fields(8), source: "Boost" },
      conditions: [condition("Ready", "True", "Scaled")],
    };
    const ended = (spec: PipeScaling["spec"], nowMs: number) =>
      viewOf("orders", aScaling(4, { spec: { ...spec, boost }, status }), nowMs);
    const { spec } = aScaling(4);
    expect(ended(spec, NOW_MS - 1)).toMatchObject({ state: "scaled", desired: sizeOfCores(8) });
    expect(ended(spec, NOW_MS)).toMatchObject({
      state: "propagating",
      reason: "NotObservedYet",
      message: "The boost has ended, but no controller has observed its end yet.",
      desired: sizeOfCores(4),
      source: undefined,
    });
    expect(ended({ ...spec, suspend: true }, NOW_MS).state).not.toBe("propagating");
    expect(ended({}, NOW_MS).desired, "without a requested size").toBeUndefined();
  });

  test("shows the time of the next attempt after a failure", () => {
    const failure = { pipe: "pipe-a", size: fields(4), reason: "Refused", message: "no", attempts: 1 };
    const at = rfc3339(NOW_MS - 60_000);
    const failures = [240_000, 120_000].map((ms) => ({
      ...failure,
      at,
      nextRetryAt: rfc3339(NOW_MS + ms),
    }));
    expect(view({ ...IN_PROGRESS, failures }).retryAt).toEqual(new Date(NOW_MS + 120_000));
  });
});
