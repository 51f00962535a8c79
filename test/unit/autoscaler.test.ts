import { describe, expect, it } from "vitest";
import { decide, failuresOf } from "../../src/controller/decide/decide.ts";
import {
  type AutoscalerView,
  toHorizontalAutoscalerView,
  toVerticalAutoscalerView,
} from "../../src/controller/observe/autoscaler-view.ts";
import { verdictOf } from "../../src/controller/report/conditions.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { aPipe, aScaling, aSnapshot } from "../gen/snapshot.ts";

const metadata = { name: "auto", namespace: "pipes", uid: "u", resourceVersion: "1" };
const deployment = { kind: "Deployment", name: "a" };

describe("a vertical autoscaler", () => {
  it.each([undefined, "Auto", "Initial", "Recreate", "InPlaceOrRecreate"])(
    "in the mode %s sets sizes",
    (mode) => {
      const updatePolicy = mode === undefined ? {} : { updatePolicy: { updateMode: mode } };
      const found = toVerticalAutoscalerView({ metadata, spec: { targetRef: deployment, ...updatePolicy } });
      expect(found).toMatchObject({ deployment: "a", exempt: [] });
    },
  );

  it("that only recommends, or is about something else, is none for us", () => {
    const off = { targetRef: deployment, updatePolicy: { updateMode: "Off" } };
    expect(toVerticalAutoscalerView({ metadata, spec: off }).deployment).toBeUndefined();
    const other = { targetRef: { kind: "StatefulSet", name: "a" } };
    expect(toVerticalAutoscalerView({ metadata, spec: other }).deployment).toBeUndefined();
  });

  it("may leave containers alone", () => {
    const containerPolicies = [
      { containerName: "pipe", mode: "Off" },
      { containerName: "*", mode: "Auto" },
    ];
    const spec = { targetRef: deployment, resourcePolicy: { containerPolicies } };
    expect(toVerticalAutoscalerView({ metadata, spec }).exempt).toEqual(["pipe"]);
  });
});

describe("a horizontal autoscaler", () => {
  const of = (...metrics: readonly object[]) =>
    toHorizontalAutoscalerView({ metadata, spec: { scaleTargetRef: deployment, metrics } }).deployment;
  it("matters where it measures as a share of the requests", () => {
    const target = { target: { type: "Utilization" } };
    expect(of({ resource: target })).toBe("a");
    expect(of({ type: "External" }, { containerResource: target })).toBe("a");
    expect(of({ resource: { target: { type: "AverageValue" } } })).toBeUndefined();
    expect(of()).toBeUndefined();
  });
});

describe("beside an autoscaler", () => {
  const scaler = (kind: AutoscalerView["kind"]): AutoscalerView => ({
    metadata: { ...metadata, generation: 1 },
    kind,
    deployment: "a",
    exempt: [],
  });
  const beside = (kind: AutoscalerView["kind"], pipes = [aPipe("a"), aPipe("b")]) =>
    aSnapshot(pipes, { autoscalers: new Map([["a", [scaler(kind)]]]) });

  it("that sets the size of its pods a pipe is left alone and named, and the others go on", () => {
    const decision = decide(beside("VerticalPodAutoscaler"), { rolloutTimeoutMs: 900_000, overallFree: 50 });
    expect(decision.actions).toMatchObject([{ type: "resize", pipe: { metadata: { name: "b" } } }]);
    expect(failuresOf(decision)).toMatchObject([
      {
        pipe: "a",
        reason: "FieldConflict",
        message: expect.stringContaining('VerticalPodAutoscaler "auto"'),
      },
    ]);
  });

  it("that counts its replicas by the size a pipe is sized all the same, and a person is told", () => {
    const done = [aPipe("a", { size: sizeOfCores(4) })];
    const snapshot = beside("HorizontalPodAutoscaler", done);
    const { sizing } = decide(snapshot, { rolloutTimeoutMs: 900_000, overallFree: 50 });
    const verdict = verdictOf(aScaling(4), snapshot.tier, sizing);
    expect(verdict).toMatchObject({ ready: "True", reason: "Scaled" });
    expect(verdict.message).toMatch(/^The one pipe runs 4 cpu \/ 16 Gi\. .*HorizontalPodAutoscaler "auto"/);
  });
});
