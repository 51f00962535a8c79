import { describe, expect, it } from "vitest";
import {
  type Autoscaler,
  horizontalAutoscalerOf,
  verticalAutoscalerOf,
} from "../../src/controller/autoscaler.ts";
import { decide, failuresOf } from "../../src/controller/decide.ts";
import { verdictOf } from "../../src/controller/verdict.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { aPipe, aScaling, aSnapshot } from "../gen/snapshot.ts";

const metadata = { name: "auto", namespace: "pipes", uid: "u", resourceVersion: "1" };
const deployment = { kind: "Deployment", name: "a" };

describe("a vertical autoscaler", () => {
  it.each([undefined, "Auto", "Initial", "Recreate", "InPlaceOrRecreate"])(
    "in the mode %s sets sizes",
    (mode) => {
      const updatePolicy = mode === undefined ? {} : { updatePolicy: { updateMode: mode } };
      const found = verticalAutoscalerOf({ metadata, spec: { targetRef: deployment, ...updatePolicy } });
      expect(found).toMatchObject({ deployment: "a", exempt: [] });
    },
  );

  it("that only recommends, or is about something else, is none for us", () => {
    const off = { targetRef: deployment, updatePolicy: { updateMode: "Off" } };
    expect(verticalAutoscalerOf({ metadata, spec: off }).deployment).toBeUndefined();
    const other = { targetRef: { kind: "StatefulSet", name: "a" } };
    expect(verticalAutoscalerOf({ metadata, spec: other }).deployment).toBeUndefined();
  });

  it("may leave containers alone", () => {
    const containerPolicies = [
      { containerName: "pipe", mode: "Off" },
      { containerName: "*", mode: "Auto" },
    ];
    const spec = { targetRef: deployment, resourcePolicy: { containerPolicies } };
    expect(verticalAutoscalerOf({ metadata, spec }).exempt).toEqual(["pipe"]);
  });
});

describe("a horizontal autoscaler", () => {
  const of = (...metrics: readonly object[]) =>
    horizontalAutoscalerOf({ metadata, spec: { scaleTargetRef: deployment, metrics } }).deployment;
  it("matters where it measures as a share of the requests", () => {
    const target = { target: { type: "Utilization" } };
    expect(of({ resource: target })).toBe("a");
    expect(of({ type: "External" }, { containerResource: target })).toBe("a");
    expect(of({ resource: { target: { type: "AverageValue" } } })).toBeUndefined();
    expect(of()).toBeUndefined();
  });
});

describe("beside an autoscaler", () => {
  const scaler = (kind: Autoscaler["kind"]): Autoscaler => ({
    metadata: { ...metadata, generation: 1 },
    kind,
    deployment: "a",
    exempt: [],
  });
  const beside = (kind: Autoscaler["kind"], pipes = [aPipe("a"), aPipe("b")]) =>
    aSnapshot(pipes, { autoscalers: new Map([["a", [scaler(kind)]]]) });

  it("that sets the size of its pods a pipe is left alone and named, and the others go on", () => {
    const decision = decide(beside("VerticalPodAutoscaler"), { rolloutTimeoutMs: 900_000, overallFree: 50 });
    expect(decision.actions).toMatchObject([{ type: "give-size", pipe: { metadata: { name: "b" } } }]);
    expect(failuresOf(decision)).toMatchObject([
      { pipe: "a", reason: "FieldContest", message: expect.stringContaining('VerticalPodAutoscaler "auto"') },
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
