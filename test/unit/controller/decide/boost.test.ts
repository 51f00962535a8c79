import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import { boostFields } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import {
  aPipe,
  aScaling,
  aSnapshot,
  aWindow,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  resizedTo,
} from "../../../support/fixtures/snapshot.ts";

const HOUR_MS = 3_600_000;
const UNTIL_MS = NOW_MS + HOUR_MS;
const FOUR = sizeOfCores(4);
const EIGHT = sizeOfCores(8);
const BOOST = { size: EIGHT, untilMs: UNTIL_MS };

/** Four cores are requested, and eight until the end of the boost. */
function boosted(changes: Partial<PipeScalingView> = {}, untilMs = UNTIL_MS): PipeScalingView {
  const { spec, ...scaling } = aScaling(4);
  const boost = boostFields({ size: EIGHT, untilMs });
  return { ...scaling, ...changes, spec: { ...spec, boost, ...changes.spec } };
}

function decided(pipes: readonly PipeView[], changes: Partial<Snapshot> = {}) {
  const snapshot = aSnapshot(pipes, { scaling: boosted(), ...changes });
  const decision = decide(snapshot, DECIDE_OPTIONS);
  const { scaling } = snapshot;
  return {
    actions: summaries(decision.actions),
    atMs: recheckAtMs(snapshot, decision),
    requestId: decision.sizing?.requestId,
    waitReason: decision.sizing?.waitReason,
    status: scaling && statusOf(snapshot, scaling, decision, POLICY),
  };
}

describe("a service with a boost", () => {
  it("gets the size of the boost, and the status says so with the end", () => {
    const { actions, status } = decided([aPipe("a")]);
    expect(actions).toEqual(["a 8000m/32Gi"]);
    expect(status).toMatchObject({
      desired: { replicaCpuMillicores: 8000, source: "Boost" },
      boost: { ...boostFields(BOOST), until: "2026-06-01T13:00:00Z" },
    });
    expect(decided([resizedTo("a", EIGHT)]).status?.conditions?.[0]).toMatchObject({
      type: "Ready",
      status: "True",
      reason: "Scaled",
      message: "The one pipe runs 8 cpu / 32 Gi. The boost ends at 2026-06-01T13:00:00Z.",
    });
  });

  it("returns to the requested size at its end, and the status no longer has the boost", () => {
    const status = { boost: { ...boostFields(BOOST), summary: "" } };
    const scaling = boosted({ status });
    const { actions, status: after } = decided([resizedTo("a", EIGHT)], { scaling, nowMs: UNTIL_MS });
    expect(actions).toEqual(["a 4000m/16Gi"]);
    expect(after).toMatchObject({ desired: { replicaCpuMillicores: 4000, source: "Spec" } });
    expect(after?.boost).toBeUndefined();
  });

  it("returns to the default of the tier if no size is requested", () => {
    const { spec } = boosted();
    const scaling = aScaling(undefined, { spec: { boost: spec.boost } });
    const { actions, status } = decided([resizedTo("a", EIGHT)], { scaling, nowMs: UNTIL_MS });
    expect(actions).toEqual(["a 1000m/4Gi"]);
    expect(status?.desired?.source).toBe("TierDefault");
  });

  it("gets at most the maximum of the tier", () => {
    const value = { name: "basic", defaultSize: sizeOfCores(1), maximumSize: sizeOfCores(6) };
    const { actions, status } = decided([aPipe("a")], { tier: { ok: true, value } });
    expect(actions).toEqual(["a 6000m/24Gi"]);
    expect(status).toMatchObject({ desired: { source: "TierLimit" }, boost: { summary: "8 cpu / 32 Gi" } });
  });

  it("is looked at again at the end of the boost, also while it is suspended", () => {
    expect(decided([resizedTo("a", EIGHT)]).atMs).toBe(UNTIL_MS);
    const scaling = boosted({ spec: { suspend: true } });
    expect(decided([aPipe("a")], { scaling })).toMatchObject({ actions: [], atMs: UNTIL_MS });
    expect(decided([resizedTo("a", FOUR)], { nowMs: UNTIL_MS }).atMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("keeps it in its status until its end while the tier is unknown", () => {
    const obstacle = { reason: "UnknownTier", message: "" } as const;
    const tier = { ok: false, obstacle } as const;
    const { status: before } = decided([resizedTo("a", EIGHT)]);
    const scaling = boosted({ status: before ?? {} });
    const during = decided([resizedTo("a", EIGHT)], { scaling, tier });
    expect(during.atMs).toBe(UNTIL_MS);
    const { conditions, ...kept } = during.status ?? {};
    expect(conditions).toMatchObject([{ type: "Ready" }, { type: "Stalled", reason: "UnknownTier" }]);
    expect(before).toMatchObject(kept);
    expect(kept).toMatchObject({ boost: { summary: "8 cpu / 32 Gi" }, desired: { source: "Boost" } });
    const { status: after } = decided([resizedTo("a", EIGHT)], { scaling, tier, nowMs: UNTIL_MS });
    expect([after?.boost, after?.desired, after?.pipes]).toEqual([undefined, undefined, undefined]);
  });

  it("has it in its status also if it begins while the tier is unknown", () => {
    const obstacle = { reason: "UnknownTier", message: "" } as const;
    const { status } = decided([aPipe("a")], { tier: { ok: false, obstacle } });
    expect(status).toMatchObject({ boost: { summary: "8 cpu / 32 Gi" } });
    expect(status?.desired).toBeUndefined();
  });

  it("credits the boost to its request, and the size after it to the other one", () => {
    const annotated = { apiKey: "key", requestedAt: "2026-06-01T11:00:00Z" };
    const scaling = boosted({
      requestAnnotation: formatScalingRequest({
        ...annotated,
        requestId: "size",
        replicaCpuMillicores: 4000,
        replicaMemoryGb: 16,
      }),
      boostRequestAnnotation: formatScalingRequest({
        ...annotated,
        requestId: "boost",
        ...boostFields(BOOST),
      }),
    });
    expect(decided([aPipe("a")], { scaling }).requestId).toBe("boost");
    expect(decided([aPipe("a")], { scaling, nowMs: UNTIL_MS }).requestId).toBe("size");
  });

  it("waits for the rollout window at its beginning and at its end", () => {
    const rolloutWindow = aWindow();
    const beginning = decided([aPipe("a")], { rolloutWindow });
    expect(beginning).toMatchObject({ actions: [], waitReason: "window", atMs: UNTIL_MS });
    const end = decided([resizedTo("a", EIGHT)], { rolloutWindow, nowMs: UNTIL_MS });
    expect(end).toMatchObject({ actions: [], waitReason: "window" });
    expect(end.atMs).toBe(Date.parse("2026-06-06T02:00:00Z"));
  });

  it("does nothing at its end if the window never opened, because the pipes still have the requested size", () => {
    const scaling = boosted();
    const pipes = [resizedTo("a", FOUR)];
    expect(decided(pipes, { scaling, rolloutWindow: aWindow() }).actions).toEqual([]);
    expect(decided(pipes, { scaling, rolloutWindow: aWindow(), nowMs: UNTIL_MS }).actions).toEqual([]);
  });
});

it("without any event, a service is looked at once at the end of its boost, whenever its controller starts", () => {
  const times = fc.integer({ min: -40 * 24 * HOUR_MS, max: 40 * 24 * HOUR_MS });
  fc.assert(
    fc.property(times, times, (startMs, endMs) => {
      const scaling = boosted({}, NOW_MS + endMs);
      const sources: (string | undefined)[] = [];
      let nowMs = NOW_MS + startMs;
      while (Number.isFinite(nowMs)) {
        const { status, atMs } = decided([], { scaling, nowMs });
        sources.push(status?.desired?.source);
        if (Number.isFinite(atMs)) expect(atMs).toBe(NOW_MS + endMs);
        nowMs = atMs;
      }
      expect(sources).toEqual(startMs < endMs ? ["Boost", "Spec"] : ["Spec"]);
    }),
  );
});
