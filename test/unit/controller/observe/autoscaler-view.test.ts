import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import {
  type AutoscalerView,
  effectOn,
  toHorizontalAutoscalerView,
  toVerticalAutoscalerView,
} from "../../../../src/controller/observe/autoscaler-view.ts";
import { summarizeConditions } from "../../../../src/controller/report/conditions.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { VerticalPodAutoscaler } from "../../../../src/kube/autoscalers.ts";
import { failuresIn } from "../../../support/fixtures/decisions.ts";
import { aPipe, aScaling, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";

const metadata = { name: "auto", namespace: "pipes", uid: "u", resourceVersion: "1" };
const deployment = { kind: "Deployment", name: "a" };

type ContainerPolicies = NonNullable<
  NonNullable<VerticalPodAutoscaler["spec"]["resourcePolicy"]>["containerPolicies"]
>;

/** Returns true if the autoscaler sets the size of the container. */
function actsOn(view: AutoscalerView, container: string): boolean {
  return effectOn(view, container) === "size";
}

describe("a VerticalPodAutoscaler", () => {
  const withPolicies = (...containerPolicies: ContainerPolicies) =>
    toVerticalAutoscalerView({
      metadata,
      spec: { targetRef: deployment, resourcePolicy: { containerPolicies } },
    });

  it.each([undefined, "Auto", "Initial", "Recreate", "InPlaceOrRecreate", "InPlace"])(
    "acts on every container in the update mode %s",
    (mode) => {
      const updatePolicy = mode === undefined ? {} : { updatePolicy: { updateMode: mode } };
      const view = toVerticalAutoscalerView({ metadata, spec: { targetRef: deployment, ...updatePolicy } });
      expect(view.pipeName).toBe("a");
      expect(actsOn(view, "pipe")).toBe(true);
    },
  );

  it("targets no pipe in the update mode Off, or if it targets another kind", () => {
    const off = { targetRef: deployment, updatePolicy: { updateMode: "Off" } };
    expect(toVerticalAutoscalerView({ metadata, spec: off }).pipeName).toBeUndefined();
    const ofKind = (kind: string) =>
      toVerticalAutoscalerView({ metadata, spec: { targetRef: { kind, name: "a" } } }).pipeName;
    expect(["DaemonSet", "StatefulSet"].map(ofKind)).toEqual([undefined, "statefulset/a"]);
  });

  it("does not act on containers without their own policy if the policy * has the mode Off", () => {
    const view = withPolicies({ containerName: "*", mode: "Off" });
    expect(actsOn(view, "pipe")).toBe(false);
  });

  it("prefers the policy of the named container to the policy *, in any order", () => {
    const ours = { containerName: "pipe", mode: "Off" };
    const others = { containerName: "*", mode: "Auto" };
    for (const policies of [
      [ours, others],
      [others, ours],
    ]) {
      expect(actsOn(withPolicies(...policies), "pipe")).toBe(false);
      expect(actsOn(withPolicies(...policies), "sidecar")).toBe(true);
    }
    const opposite = withPolicies({ containerName: "*", mode: "Off" }, { containerName: "pipe" });
    expect(actsOn(opposite, "pipe")).toBe(true);
    expect(actsOn(opposite, "sidecar")).toBe(false);
  });

  it("acts on a container if only another container has a policy", () => {
    expect(actsOn(withPolicies({ containerName: "sidecar", mode: "Off" }), "pipe")).toBe(true);
  });

  it.each([
    [undefined, true],
    [null, true],
    [["cpu"], true],
    [["memory"], true],
    [["nvidia.com/gpu"], false],
    [[], false],
  ])("with the controlled resources %j, acts on the size of a container: %s", (resources, isActing) => {
    const controlledResources = resources === undefined ? {} : { controlledResources: resources };
    expect(actsOn(withPolicies({ containerName: "pipe", ...controlledResources }), "pipe")).toBe(isActing);
  });

  it.each(["RequestsOnly", "RequestsAndLimits"])(
    "acts on the size with the controlled values %s, because both include requests",
    (controlledValues) => {
      expect(actsOn(withPolicies({ containerName: "*", controlledValues }), "pipe")).toBe(true);
    },
  );
});

describe("a VerticalPodAutoscaler with a startup boost", () => {
  const TRIPLE = { cpu: { type: "Factor", factor: 3 } };
  const NONE = { cpu: { type: "Factor", factor: 1 } };
  const MORE = { cpu: { type: "Quantity", quantity: "2" } };

  type Spec = Omit<VerticalPodAutoscaler["spec"], "targetRef">;

  const effect = (spec: Spec, updateMode = "Off") => {
    const view = toVerticalAutoscalerView({
      metadata,
      spec: { targetRef: deployment, updatePolicy: { updateMode }, ...spec },
    });
    return view.pipeName === undefined ? "none" : effectOn(view, "pipe");
  };
  const policy = (...containerPolicies: ContainerPolicies) => ({ resourcePolicy: { containerPolicies } });

  it.each<[string, Spec, string]>([
    ["with a boost of all containers", { startupBoost: TRIPLE }, "startup-cpu"],
    ["with a boost by a quantity", { startupBoost: MORE }, "startup-cpu"],
    ["without CPU in the boost", { startupBoost: {} }, "none"],
    ["with the factor 1", { startupBoost: NONE }, "none"],
    ["with a boost of the container", policy({ containerName: "pipe", startupBoost: TRIPLE }), "startup-cpu"],
    ["with a boost of another container", policy({ containerName: "proxy", startupBoost: TRIPLE }), "none"],
    ["with a boost in the policy *", policy({ containerName: "*", startupBoost: MORE }), "startup-cpu"],
    [
      "with a policy that exempts the container by the factor 1",
      { startupBoost: TRIPLE, ...policy({ containerName: "pipe", startupBoost: NONE }) },
      "none",
    ],
    [
      "with controlled resources without CPU, which do not limit the boost",
      { startupBoost: TRIPLE, ...policy({ containerName: "pipe", controlledResources: ["memory"] }) },
      "startup-cpu",
    ],
    [
      "with the mode Off for the container",
      { startupBoost: TRIPLE, ...policy({ containerName: "pipe", mode: "Off" }) },
      "none",
    ],
    [
      "with the mode Off and a boost for the container",
      policy({ containerName: "pipe", mode: "Off", startupBoost: TRIPLE }),
      "startup-cpu",
    ],
  ])("in the update mode Off, has the right effect %s", (_, spec, expected) => {
    expect(effect(spec)).toBe(expected);
  });

  it("sets the whole size in another update mode", () => {
    expect(effect({ startupBoost: TRIPLE }, "InPlace")).toBe("size");
  });
});

describe("a horizontal autoscaler", () => {
  const of = (...metrics: readonly object[]) =>
    toHorizontalAutoscalerView({ metadata, spec: { scaleTargetRef: deployment, metrics } }).pipeName;
  it("is relevant only if it measures utilization relative to the requests", () => {
    const target = { target: { type: "Utilization" } };
    expect(of({ resource: target })).toBe("a");
    expect(of({ type: "External" }, { containerResource: target })).toBe("a");
    expect(of({ resource: { target: { type: "AverageValue" } } })).toBeUndefined();
    expect(of()).toBeUndefined();
  });

  it("is relevant for the container whose utilization it measures, and for each one if it measures pods", () => {
    const target = { type: "Utilization" };
    const containersOf = (...metrics: readonly object[]) => {
      const view = toHorizontalAutoscalerView({ metadata, spec: { scaleTargetRef: deployment, metrics } });
      return ["pipe", "proxy"].filter((container) => actsOn(view, container));
    };
    const proxy = { containerResource: { container: "proxy", target } };
    expect(containersOf(proxy)).toEqual(["proxy"]);
    expect(containersOf(proxy, { containerResource: { container: "pipe", target } })).toEqual([
      "pipe",
      "proxy",
    ]);
    expect(containersOf(proxy, { resource: { target } })).toEqual(["pipe", "proxy"]);
    const byValue = { containerResource: { container: "pipe", target: { type: "AverageValue" } } };
    expect(containersOf(proxy, byValue)).toEqual(["proxy"]);
  });
});

describe("a pipe with an autoscaler", () => {
  const scaler = (kind: AutoscalerView["kind"]): AutoscalerView => ({
    metadata: { ...metadata, generation: 1 },
    kind,
    pipeName: "a",
    policies: new Map(),
  });
  const beside = (kind: AutoscalerView["kind"], pipes = [aPipe("a"), aPipe("b")]) =>
    aSnapshot(pipes, { autoscalers: new Map([["a", [scaler(kind)]]]) });

  it("is reported and not resized if the autoscaler sets the size of its pods, while other pipes are resized", () => {
    const decision = decide(beside("VerticalPodAutoscaler"), DECIDE_OPTIONS);
    expect(decision.actions).toMatchObject([{ type: "resize", pipe: { metadata: { name: "b" } } }]);
    expect(failuresIn(decision)).toMatchObject([
      {
        pipe: "a",
        reason: "FieldConflict",
        message: expect.stringContaining('VerticalPodAutoscaler "auto"'),
      },
    ]);
  });

  it("is not resized if the autoscaler only boosts the CPU of pods that start, with a remedy for that", () => {
    const boosting = {
      ...scaler("VerticalPodAutoscaler"),
      policies: new Map([["*", "startup-cpu"] as const]),
    };
    const snapshot = aSnapshot([aPipe("a")], { autoscalers: new Map([["a", [boosting]]]) });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(failuresIn(decision)).toMatchObject([
      { reason: "FieldConflict", message: expect.stringContaining("remove startupBoost from it") },
    ]);
  });

  it("is resized and reported if the autoscaler only sets the replicas", () => {
    const done = [aPipe("a", { size: sizeOfCores(4) })];
    const snapshot = beside("HorizontalPodAutoscaler", done);
    const { sizing } = decide(snapshot, DECIDE_OPTIONS);
    const condition = summarizeConditions(aScaling(4), snapshot.tier, sizing, []);
    expect(condition).toMatchObject({ type: "Ready", reason: "Scaled" });
    expect(condition.message).toMatch(/^The one pipe runs 4 cpu \/ 16 Gi\. .*HorizontalPodAutoscaler "auto"/);
  });
});
