import { describe, expect, it } from "vitest";
import { withLastRollout } from "../../../../../src/controller/observe/observe.ts";
import { toPipeView } from "../../../../../src/controller/observe/workloads/deployment.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../../src/domain/size.ts";
import type { FieldsV1, ManagedFields } from "../../../../../src/kube/objects.ts";
import type { Container } from "../../../../../src/kube/pods.ts";
import type { Deployment } from "../../../../../src/kube/workloads.ts";
import { ROLLOUT, resizedDeployment, viewWith } from "../../../../support/fixtures/resized-deployment.ts";
import { NOW_MS } from "../../../../support/fixtures/snapshot.ts";
import { annotated, aWrite, someWrites } from "../../../../support/fixtures/writes.ts";

function announcedAt(ms: number) {
  const lastUpdateTime = new Date(ms).toISOString();
  return {
    conditions: [{ type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", lastUpdateTime }],
  };
}

describe("the rollout of a Deployment", () => {
  it.each([
    ["is complete if all replicas are available", { availableReplicas: 1 }, true],
    [
      "is complete if its condition reports completion, even if the pods fail later",
      announcedAt(NOW_MS + 5000),
      true,
    ],
    [
      "is complete if its condition reports completion with an earlier time, because clocks differ",
      announcedAt(NOW_MS - 3_600_000),
      true,
    ],
    ["is not complete if the condition is from the previous rollout", announcedAt(NOW_MS), false],
    [
      "is not complete until its status is about the newest template",
      { availableReplicas: 1, observedGeneration: 6 },
      false,
    ],
    ["is not complete while a pod of another template exists", { availableReplicas: 2, replicas: 2 }, false],
  ])("%s", (_, status, isComplete) => {
    expect(toPipeView(resizedDeployment(status)).rollout.isComplete).toBe(isComplete);
  });

  it("is not complete if the condition is from the previous rollout and a webhook removed the annotation", () => {
    const { metadata, ...made } = resizedDeployment(announcedAt(NOW_MS));
    const pipe = toPipeView({ ...made, metadata: { ...metadata, annotations: {} } });
    const writes = someWrites([
      aWrite("uid", "resize", { outcome: annotated(ROLLOUT, { isStripped: true }) }),
    ]);
    const known = withLastRollout(pipe, writes);
    expect(known.lastRollout).toEqual(ROLLOUT);
    expect(known.rollout.isComplete).toBe(false);
  });

  it("is not complete because of its condition alone if it was resized without replicas", () => {
    const resizedIdle = { ...ROLLOUT, replicas: 0 };
    const isComplete = (status: Deployment["status"]) =>
      toPipeView(resizedDeployment(status, resizedIdle)).rollout.isComplete;
    expect(isComplete(announcedAt(NOW_MS + 5000))).toBe(false);
    expect(isComplete({ availableReplicas: 1 })).toBe(true);
  });

  it.each<[string, string, Deployment["status"], number | undefined]>([
    ["if none of its pods is", "False", {}, NOW_MS],
    ["if one of its pods is", "False", { replicas: 2, updatedReplicas: 2, availableReplicas: 1 }, undefined],
    ["while a pod of another template exists", "False", { replicas: 2 }, undefined],
    ["until its status is about the newest template", "False", { observedGeneration: 6 }, undefined],
    ["while enough pods are", "True", {}, undefined],
  ])("has the time since which no pod is available %s (Available: %s)", (_, status, counts, expected) => {
    const lastTransitionTime = new Date(NOW_MS).toISOString();
    const conditions = [{ type: "Available", status, lastTransitionTime }];
    const { rollout } = toPipeView(resizedDeployment({ ...counts, conditions }));
    expect(rollout.unavailableSinceMs).toBe(expected);
  });

  it("is complete because of its condition if it was adopted without replicas, since nothing was rolled out", () => {
    const adopted = { ...ROLLOUT, generation: 0, progressedAtS: 0, replicas: 0, cameUp: true };
    expect(toPipeView(resizedDeployment(announcedAt(NOW_MS), adopted)).rollout.isComplete).toBe(true);
  });

  it.each([
    ["one is running", { replicas: 1 }, false],
    ["one is terminating", { replicas: 0, terminatingReplicas: 1 }, false],
    ["the status is outdated", { replicas: 0, observedGeneration: 6 }, false],
    ["none exists", { replicas: 0 }, true],
  ])("has no pods only if its current status counts none: %s", (_, status, isWithoutPods) => {
    expect(toPipeView(resizedDeployment(status)).rollout.isWithoutPods).toBe(isWithoutPods);
  });
});

describe("the container of a pipe", () => {
  const withResources = (resources: NonNullable<Container["resources"]>) => {
    const made = resizedDeployment({});
    const containers = [{ name: "pipe", resources }];
    return toPipeView({ ...made, spec: { ...made.spec, template: { spec: { containers } } } });
  };
  const memory = "16Gi";

  it("has the size of its limits if it has no requests, like in Kubernetes", () => {
    expect(withResources({ limits: { cpu: "4", memory } })).toMatchObject({
      size: sizeOfCores(4),
      cpuLimitFollows: true,
    });
  });

  it.each([
    [
      "has no CPU limit if none is set",
      { requests: { cpu: "4", memory }, limits: { memory } },
      false,
      undefined,
    ],
    [
      "has a fixed CPU limit if the limit is above the request",
      { requests: { cpu: "4", memory }, limits: { cpu: "6", memory } },
      false,
      6000,
    ],
    [
      "has a CPU limit that follows the size if limits and requests are equal",
      { requests: { cpu: "4000m", memory: "16384Mi" }, limits: { cpu: "4", memory } },
      true,
      undefined,
    ],
  ])("%s", (_, resources, cpuLimitFollows, cpuLimitMillicores) => {
    const view = withResources(resources);
    expect(view.cpuLimitFollows).toBe(cpuLimitFollows);
    expect(view.cpuLimitMillicores).toBe(cpuLimitMillicores);
  });
});

describe("a CPU limit that equals the size", () => {
  const fieldsOf = (...names: readonly ("requests" | "limits")[]) => {
    const resources = Object.fromEntries(names.map((name) => [`f:${name}`, { "f:cpu": {} }]));
    const containers = { 'k:{"name":"pipe"}': { "f:resources": resources } };
    return { "f:spec": { "f:template": { "f:spec": { "f:containers": containers } } } };
  };
  const follows = (...managedFields: readonly ManagedFields[]) => {
    const made = resizedDeployment({});
    const amounts = { cpu: "4", memory: "16Gi" };
    const containers = [{ name: "pipe", resources: { requests: amounts, limits: amounts } }];
    const spec = { ...made.spec, template: { spec: { containers } } };
    return toPipeView({ ...made, metadata: { ...made.metadata, managedFields }, spec }).cpuLimitFollows;
  };
  const ours = (...names: readonly ("requests" | "limits")[]) => ({
    manager: CONTROLLER_FIELD_MANAGER,
    fieldsV1: fieldsOf(...names),
  });
  const helms = (...names: readonly ("requests" | "limits")[]) => ({
    manager: "helm",
    fieldsV1: fieldsOf(...names),
  });

  it("follows the size if the owner or the controller set both the request and the limit", () => {
    expect(follows(helms("requests", "limits"))).toBe(true);
    expect(follows(ours("requests", "limits"))).toBe(true);
  });

  it("is kept if the controller set only the request, because the size happens to equal the owner's limit", () => {
    expect(follows(ours("requests"), helms("limits"))).toBe(false);
  });
});

describe("the pause of a Deployment", () => {
  const pausedBy = (...managers: readonly string[]) => {
    const made = resizedDeployment({});
    const managedFields = managers.map(
      (manager): ManagedFields => ({
        manager,
        time: new Date(NOW_MS).toISOString(),
        fieldsV1: { "f:spec": { "f:paused": {} } },
      }),
    );
    return toPipeView({
      ...made,
      metadata: { ...made.metadata, managedFields },
      spec: { ...made.spec, paused: true },
    });
  };

  it("is ours, with its time, if only the controller manages the field", () => {
    expect(pausedBy(CONTROLLER_FIELD_MANAGER)).toMatchObject({
      isPausedForCommit: true,
      pausedForCommitAtMs: NOW_MS,
    });
  });

  it.each([
    ["another writer set it", ["kubectl"]],
    ["another writer set it as well", [CONTROLLER_FIELD_MANAGER, "kubectl"]],
    ["its writer is unknown", []],
  ])("is not ours if %s", (_, managers) => {
    const view = pausedBy(...managers);
    expect(view).toMatchObject({ isPaused: true, isPausedForCommit: false });
    expect(view.pausedForCommitAtMs).toBeUndefined();
  });

  it.each([
    ["is ours if the annotation says so", true],
    ["is not ours if the annotation says nothing", false],
  ])("%s, if nothing shows who set the field", (_, isCommitting) => {
    const { metadata, spec, ...made } = resizedDeployment({}, { ...ROLLOUT, isCommitting });
    const reset = { ...metadata, managedFields: [{}] };
    const view = toPipeView({ ...made, metadata: reset, spec: { ...spec, paused: true } });
    expect(view).toMatchObject({ isPaused: true, isPausedForCommit: isCommitting });
    expect(view.pausedForCommitAtMs).toBe(isCommitting ? ROLLOUT.startedAtMs : undefined);
  });
});

describe("the time that the owner allows for a rollout", () => {
  it.each([
    [{}, 0],
    [{ progressDeadlineSeconds: 600 }, 0],
    [{ progressDeadlineSeconds: 3600 }, 3_600_000],
    [{ progressDeadlineSeconds: 2 ** 31 - 1 }, 0],
    [{ progressDeadlineSeconds: 86_400 }, 86_400_000],
    [{ progressDeadlineSeconds: 2 ** 31 - 2 }, 86_400_000],
  ])("with %j is %i ms", (changes, deadlineMs) => {
    const made = resizedDeployment({});
    expect(toPipeView({ ...made, spec: { ...made.spec, ...changes } }).deadlineMs).toBe(deadlineMs);
  });

  it("is longer by the time until a pod counts as available", () => {
    const made = resizedDeployment({});
    const pipe = toPipeView({ ...made, spec: { ...made.spec, minReadySeconds: 60 } });
    expect(pipe).toMatchObject({ deadlineMs: 0, minReadyMs: 60_000 });
  });
});

describe("the owners of the size of a pipe", () => {
  const CPU = { "f:requests": { "f:cpu": {} } };
  const SIZE = { "f:requests": { "f:cpu": {}, "f:memory": {} }, "f:limits": { "f:memory": {} } };
  const managed = (manager: string, resources: FieldsV1): ManagedFields => {
    const item = { 'k:{"name":"pipe"}': { "f:resources": resources } };
    const fieldsV1 = { "f:spec": { "f:template": { "f:spec": { "f:containers": item } } } };
    return { manager, operation: "Update", fieldsV1 };
  };
  const ownsSize = (...managedFields: readonly ManagedFields[]) => viewWith({ managedFields }).ownsSize;

  it("include the controller if it owns each field, no matter which other writers do", () => {
    const owner = managed("helm", SIZE);
    expect(ownsSize(owner)).toBe(false);
    expect(ownsSize(owner, managed(CONTROLLER_FIELD_MANAGER, CPU))).toBe(false);
    expect(ownsSize(owner, managed(CONTROLLER_FIELD_MANAGER, SIZE))).toBe(true);
  });

  it("are unknown after a writer reset managedFields, and then the controller claims nothing", () => {
    expect(ownsSize()).toBe(true);
  });
});
