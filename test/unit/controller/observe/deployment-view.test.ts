import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  LAST_ROLLOUT_ANNOTATION,
  REVISION_ANNOTATION,
  SERVICE_LABEL,
} from "../../../../src/controller/names.ts";
import { toDeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import {
  formatLastRollout,
  type LastRollout,
  parseLastRollout,
} from "../../../../src/controller/observe/last-rollout.ts";
import { withLastRollout } from "../../../../src/controller/observe/observe.ts";
import type { WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { FAILURE_REASONS } from "../../../../src/crd/reasons.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { Container, Deployment, ManagedFields, ObjectMeta } from "../../../../src/kube/objects.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aRollout, NOW_MS } from "../../../support/fixtures/snapshot.ts";

const ROLLOUT = aRollout(sizeOfCores(4), {
  progressedAtS: NOW_MS / 1000,
  inPlaceStartedAtMs: NOW_MS - 90_000,
});

const REQUIRED_KEYS = [
  ...(["size", "isRollback", "startedAtMs", "attempts", "serviceId", "scalingUid"] as const),
  ...(["scalingGeneration", "generation", "revision", "progressedAtS", "replicas"] as const),
];

function managedBy(manager: string): readonly ManagedFields[] {
  const fieldsV1 = { "f:metadata": { "f:annotations": { [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } } };
  return [{ manager, operation: "Update", fieldsV1 }];
}

/** One replica of the newest template, which was just resized. */
function deployment(status: Deployment["status"], rollout = ROLLOUT): Deployment {
  const made = pipeDeployment({
    name: "a",
    namespace: "pipes",
    serviceId: "service",
    cores: 4,
    annotations: { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(rollout, "uid"), [REVISION_ANNOTATION]: "3" },
  });
  return {
    ...made,
    metadata: {
      ...made.metadata,
      uid: "uid",
      resourceVersion: "1",
      generation: 7,
      managedFields: managedBy(CONTROLLER_FIELD_MANAGER),
    },
    status: { observedGeneration: 7, replicas: 1, updatedReplicas: 1, ...status },
  };
}

function viewWith(metadata: Partial<ObjectMeta>) {
  const made = deployment({});
  return toDeploymentView({ ...made, metadata: { ...made.metadata, ...metadata } });
}

function announcedAt(ms: number) {
  const lastUpdateTime = new Date(ms).toISOString();
  return {
    conditions: [{ type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", lastUpdateTime }],
  };
}

describe("the last rollout of a pipe", () => {
  it.each([
    ["a size", sizeOfCores(1)],
    ["resources of its owner", { requests: { cpu: "500m", memory: null }, limits: { memory: "1Gi" } }],
    [
      "resources of its owner with a CPU limit",
      { requests: { cpu: "500m", memory: "1Gi" }, limits: { cpu: "500m", memory: "1Gi" } },
    ],
  ])("is read unchanged, with %s as the last good size", (_, lastGoodSize) => {
    const failure = { reason: "RolloutTimeout", message: "too slow" } as const;
    const rollout = {
      ...ROLLOUT,
      ...{
        lastGoodSize,
        isRollback: true,
        requestId: "request",
        failure,
        inPlaceStartedAtMs: NOW_MS - 90_000,
      },
    } satisfies Required<LastRollout>;
    expect(toDeploymentView(deployment({}, rollout)).lastRollout).toEqual(rollout);
  });

  it("is read unchanged, whatever numbers and texts it contains", () => {
    const count = fc.integer({ min: 0 });
    const atMs = fc.integer({ min: 0, max: Date.parse("9999-12-31T23:59:59.999Z") });
    const text = fc.string({ unit: "grapheme" });
    const size = fc.integer({ min: 1, max: 1000 }).map(sizeOfCores);
    const failure = fc.record({ reason: fc.constantFrom(...FAILURE_REASONS), message: text });
    const rollout = fc.record(
      {
        ...{ size, failure, isRollback: fc.boolean(), lastGoodSize: size },
        ...{ startedAtMs: atMs, inPlaceStartedAtMs: atMs, progressedAtS: count },
        ...{ serviceId: text, scalingUid: text, requestId: text },
        ...{ scalingGeneration: count, attempts: count, generation: count, revision: count, replicas: count },
      },
      { requiredKeys: REQUIRED_KEYS },
    );
    fc.assert(
      fc.property(rollout, (each) => {
        expect(parseLastRollout(formatLastRollout(each, "uid"), "uid")).toEqual(each);
      }),
    );
  });

  it("is the one that the controller just wrote if the response has its annotation", () => {
    const annotation = formatLastRollout(ROLLOUT, "uid");
    const view = toDeploymentView(deployment({}), { annotation, rollout: ROLLOUT });
    expect(view.lastRollout).toBe(ROLLOUT);
  });

  it("is read from the response of a write if a webhook changed or removed the annotation, or owns it", () => {
    const annotation = formatLastRollout(ROLLOUT, "uid");
    const afterWrite = (metadata: Partial<ObjectMeta>) => {
      const made = deployment({});
      const stored = { ...made, metadata: { ...made.metadata, ...metadata } };
      return toDeploymentView(stored, { annotation, rollout: ROLLOUT }).lastRollout;
    };
    const changed = { ...ROLLOUT, attempts: 7 };
    const annotations = { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(changed, "uid") };
    expect(afterWrite({ annotations })).toEqual(changed);
    expect(afterWrite({ annotations: {} })).toBeUndefined();
    expect(afterWrite({ managedFields: managedBy("webhook") })).toBeUndefined();
  });

  it.each(["", "4000m", "{}", '{"version":2}', "null"])(
    "is absent if its annotation is damaged: %j",
    (text) => {
      expect(viewWith({ annotations: { [LAST_ROLLOUT_ANNOTATION]: text } }).lastRollout).toBeUndefined();
    },
  );

  it("is absent on a Deployment that was re-created or restored with the annotation of another Deployment", () => {
    expect(viewWith({ uid: "another" }).lastRollout).toBeUndefined();
  });

  it("is absent if another writer, such as kubectl rollout undo, restored the annotation", () => {
    expect(viewWith({ managedFields: managedBy("kubectl-rollout") }).lastRollout).toBeUndefined();
    expect(viewWith({ managedFields: [] }).lastRollout).toBeUndefined();
  });
});

describe("a pipe without a valid last rollout", () => {
  const resizedAt = NOW_MS - 60_000;
  const sizeOwner = (manager: string, name = "pipe"): ManagedFields => ({
    manager,
    time: new Date(resizedAt).toISOString(),
    fieldsV1: {
      "f:spec": {
        "f:template": {
          "f:spec": {
            "f:containers": {
              [`k:{"name":"${name}"}`]: { "f:resources": { "f:limits": { "f:memory": {} } } },
            },
          },
        },
      },
    },
  });

  it("has a resize time while the controller manages resources of its container", () => {
    const managedFields = [sizeOwner(CONTROLLER_FIELD_MANAGER)];
    expect(viewWith({ annotations: {}, managedFields }).resizedAtMs).toBe(resizedAt);
  });

  it("has a resize time if another writer restored an annotation of its service", () => {
    const { startedAtMs } = ROLLOUT;
    const creationTimestamp = new Date(NOW_MS).toISOString();
    const undone = { creationTimestamp, managedFields: managedBy("kubectl-rollout") };
    expect(viewWith(undone).resizedAtMs).toBe(startedAtMs);
    const restored = { creationTimestamp, uid: "restored", managedFields: [] };
    expect(viewWith(restored).resizedAtMs).toBe(startedAtMs);
  });

  it("has a resize time that is no later than the write of the annotation by another writer", () => {
    const annotations = {
      [LAST_ROLLOUT_ANNOTATION]: formatLastRollout({ ...ROLLOUT, startedAtMs: 2 * NOW_MS }, "uid"),
    };
    const creationTimestamp = new Date(NOW_MS - 90_000).toISOString();
    expect(viewWith({ annotations, creationTimestamp, managedFields: [] }).resizedAtMs).toBe(NOW_MS - 90_000);
    const time = new Date(resizedAt).toISOString();
    const managedFields = managedBy("somebody").map((each) => ({ ...each, time }));
    expect(viewWith({ annotations, creationTimestamp, managedFields }).resizedAtMs).toBe(resizedAt);
  });

  it("has no resize time if the annotation is from another service, or the fields from another writer or container", () => {
    const labels = { [SERVICE_LABEL]: "another" };
    expect(viewWith({ uid: "copied", managedFields: [], labels }).resizedAtMs).toBeUndefined();
    for (const owner of [sizeOwner("helm"), sizeOwner(CONTROLLER_FIELD_MANAGER, "sidecar")])
      expect(viewWith({ annotations: {}, managedFields: [owner] }).resizedAtMs).toBeUndefined();
  });

  it("has no separate resize time while its last rollout is valid", () => {
    expect(viewWith({}).lastRollout).toBeDefined();
    expect(viewWith({}).resizedAtMs).toBeUndefined();
  });
});

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
    expect(toDeploymentView(deployment(status)).rollout.isComplete).toBe(isComplete);
  });

  it("is not complete if the condition is from the previous rollout and a webhook removed the annotation", () => {
    const { metadata, ...made } = deployment(announcedAt(NOW_MS));
    const pipe = toDeploymentView({ ...made, metadata: { ...metadata, annotations: {} } });
    const write: WriteRecord = {
      ...{ purpose: "resize", size: "4000m/16Gi", attempts: 1, lastAtMs: NOW_MS },
      outcome: { type: "done", lastRollout: ROLLOUT, isStripped: true },
    };
    const known = withLastRollout(pipe, write);
    expect(known.lastRollout).toEqual(ROLLOUT);
    expect(known.rollout.isComplete).toBe(false);
  });

  it("is not complete because of its condition alone if it was resized without replicas", () => {
    const resizedIdle = { ...ROLLOUT, replicas: 0 };
    const isComplete = (status: Deployment["status"]) =>
      toDeploymentView(deployment(status, resizedIdle)).rollout.isComplete;
    expect(isComplete(announcedAt(NOW_MS + 5000))).toBe(false);
    expect(isComplete({ availableReplicas: 1 })).toBe(true);
  });

  it.each([
    ["one is running", { replicas: 1 }, false],
    ["one is terminating", { replicas: 0, terminatingReplicas: 1 }, false],
    ["the status is outdated", { replicas: 0, observedGeneration: 6 }, false],
    ["none exists", { replicas: 0 }, true],
  ])("has no pods only if its current status counts none: %s", (_, status, isWithoutPods) => {
    expect(toDeploymentView(deployment(status)).rollout.isWithoutPods).toBe(isWithoutPods);
  });
});

describe("the container of a pipe", () => {
  const withResources = (resources: NonNullable<Container["resources"]>) => {
    const made = deployment({});
    const containers = [{ name: "pipe", resources }];
    return toDeploymentView({ ...made, spec: { ...made.spec, template: { spec: { containers } } } });
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
    const made = deployment({});
    const amounts = { cpu: "4", memory: "16Gi" };
    const containers = [{ name: "pipe", resources: { requests: amounts, limits: amounts } }];
    const spec = { ...made.spec, template: { spec: { containers } } };
    return toDeploymentView({ ...made, metadata: { ...made.metadata, managedFields }, spec }).cpuLimitFollows;
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

describe("a rollout", () => {
  const stops = (replicas: number, strategy: Deployment["spec"]["strategy"]) => {
    const made = deployment({});
    const spec = { ...made.spec, replicas, ...(strategy ? { strategy } : {}) };
    return toDeploymentView({ ...made, spec }).stopsOldPodsFirst;
  };

  it.each([
    ["stops its old pods first with the strategy Recreate", 1, { type: "Recreate" }, true],
    [
      "stops its old pods first without a surge",
      1,
      { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      true,
    ],
    [
      "stops its old pods first with a surge of 0 percent",
      3,
      { rollingUpdate: { maxSurge: "0%", maxUnavailable: 1 } },
      true,
    ],
    [
      "stops its old pods first if all pods may be unavailable",
      2,
      { rollingUpdate: { maxSurge: 1, maxUnavailable: "100%" } },
      true,
    ],
    [
      "stops its old pods first if as many pods as exist may be unavailable",
      2,
      { rollingUpdate: { maxSurge: 1, maxUnavailable: 2 } },
      true,
    ],
    ["does not stop its old pods first by default", 1, { type: "RollingUpdate" }, false],
    [
      "does not stop its old pods first if one of them must stay available",
      4,
      { rollingUpdate: { maxSurge: "1%", maxUnavailable: 3 } },
      false,
    ],
    [
      "does not stop its old pods first if it has no replicas",
      0,
      { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      false,
    ],
  ])("%s", (_, replicas, strategy, expected) => expect(stops(replicas, strategy)).toBe(expected));
});

describe("the pause of a Deployment", () => {
  const pausedBy = (...managers: readonly string[]) => {
    const made = deployment({});
    const managedFields = managers.map(
      (manager): ManagedFields => ({
        manager,
        time: new Date(NOW_MS).toISOString(),
        fieldsV1: { "f:spec": { "f:paused": {} } },
      }),
    );
    return toDeploymentView({
      ...made,
      metadata: { ...made.metadata, managedFields },
      spec: { ...made.spec, paused: true },
    });
  };

  it("is ours, with its time, if only the controller manages the field", () => {
    expect(pausedBy(CONTROLLER_FIELD_MANAGER)).toMatchObject({
      isPausedByUs: true,
      pausedByUsAtMs: NOW_MS,
    });
  });

  it.each([
    ["another writer set it", ["kubectl"]],
    ["another writer set it as well", [CONTROLLER_FIELD_MANAGER, "kubectl"]],
    ["its writer is unknown", []],
  ])("is not ours if %s", (_, managers) => {
    const view = pausedBy(...managers);
    expect(view).toMatchObject({ isPaused: true, isPausedByUs: false });
    expect(view.pausedByUsAtMs).toBeUndefined();
  });
});
