import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL } from "../../../../src/controller/names.ts";
import {
  formatLastRollout,
  type LastRollout,
  parseLastRollout,
} from "../../../../src/controller/observe/last-rollout.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { FALLBACK_REASONS } from "../../../../src/crd/fallback-reasons.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { FAILURE_REASONS } from "../../../../src/crd/reasons.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { ManagedFields, ObjectMeta } from "../../../../src/kube/objects.ts";
import {
  managedBy,
  ROLLOUT,
  resizedDeployment,
  viewWith,
} from "../../../support/fixtures/resized-deployment.ts";
import { NOW_MS } from "../../../support/fixtures/snapshot.ts";

const REQUIRED_KEYS = [
  ...([
    "size",
    "isRollback",
    "isCommitting",
    "cameUp",
    "startedAtMs",
    "attempts",
    "serviceId",
    "scalingUid",
  ] as const),
  ...(["scalingGeneration", "generation", "revision", "progressedAtS", "replicas"] as const),
];

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
      lastGoodSize,
      isRollback: true,
      requestId: "request",
      failure,
      inPlaceStartedAtMs: NOW_MS - 90_000,
      isCommitting: true,
      committedRevision: "a-1",
      isUnheld: true,
      restarts: 3,
      template: "hash",
      outOfMemory: {
        size: sizeOfCores(1),
        previous: sizeOfCores(4),
        pipe: "a",
        message: "pod a-1",
        atMs: NOW_MS - 30_000,
      },
      inPlaceFailure: {
        size: sizeOfCores(4),
        reason: "Deferred" as const,
        message: "pod a-1: no room",
        atMs: NOW_MS - 30_000,
      },
    } satisfies Required<LastRollout>;
    expect(toPipeView(resizedDeployment({}, rollout)).lastRollout).toEqual(rollout);
  });

  it("is read unchanged, whatever numbers and texts it contains", () => {
    const count = fc.integer({ min: 0 });
    const atMs = fc.integer({ min: 0, max: Date.parse("9999-12-31T23:59:59.999Z") });
    const text = fc.string({ unit: "grapheme" });
    const size = fc.integer({ min: 1, max: 1000 }).map(sizeOfCores);
    const failure = fc.record({ reason: fc.constantFrom(...FAILURE_REASONS), message: text });
    const reason = fc.constantFrom(...FALLBACK_REASONS);
    const inPlaceFailure = fc.record(
      { size, reason, message: text, atMs, revision: count },
      { requiredKeys: ["size", "reason", "message", "atMs"] },
    );
    const rollout = fc.record(
      {
        size,
        failure,
        inPlaceFailure,
        lastGoodSize: size,
        isRollback: fc.boolean(),
        isCommitting: fc.boolean(),
        cameUp: fc.boolean(),
        startedAtMs: atMs,
        inPlaceStartedAtMs: atMs,
        progressedAtS: count,
        serviceId: text,
        scalingUid: text,
        requestId: text,
        template: text,
        scalingGeneration: count,
        attempts: count,
        generation: count,
        revision: count,
        replicas: count,
      },
      { requiredKeys: REQUIRED_KEYS },
    );
    fc.assert(
      fc.property(rollout, (each) => {
        expect(parseLastRollout(formatLastRollout(each, "uid"), "uid")).toEqual(each);
      }),
    );
  });

  it("has whole milliseconds, although a clock may give fractions", () => {
    const text = formatLastRollout({ ...ROLLOUT, startedAtMs: NOW_MS + 0.5 }, "uid");
    expect(parseLastRollout(text)?.startedAtMs).toBe(NOW_MS);
  });

  it("is read from the response of a write if a webhook changed or removed the annotation, or owns it", () => {
    const afterWrite = (metadata: Partial<ObjectMeta>) => {
      const made = resizedDeployment({});
      const stored = { ...made, metadata: { ...made.metadata, ...metadata } };
      return toPipeView(stored).lastRollout;
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

  const unknownFailure = { reason: "RolloutFailed", message: "m" };

  it.each([
    ["the resize in place failed for a reason of a later version", "Deferred", { inPlaceFailure: undefined }],
    ["the size that failed in place is invalid", "8000m/32Gi", { inPlaceFailure: undefined }],
    ["its last good size is invalid", "2000m/8Gi", { lastGoodSize: undefined }],
    ["a size that ran out of memory is invalid", "6000m/24Gi", { outOfMemory: undefined }],
    ["it failed for a reason of a later version", "RolloutTimeout", { failure: unknownFailure }],
  ])("counts except for one field if %s", (_, text, change) => {
    const rollout: LastRollout = {
      ...ROLLOUT,
      attempts: 3,
      lastGoodSize: sizeOfCores(2),
      failure: { reason: "RolloutTimeout", message: "m" },
      inPlaceFailure: { size: sizeOfCores(8), reason: "Deferred", message: "m", atMs: NOW_MS },
      outOfMemory: {
        size: sizeOfCores(6),
        previous: sizeOfCores(10),
        pipe: "a",
        message: "m",
        atMs: NOW_MS,
      },
    };
    const later = formatLastRollout(rollout, "uid").replace(`"${text}"`, '"of a later version"');
    expect(parseLastRollout(later, "uid")).toEqual({ ...rollout, ...change });
  });

  it("is absent on a Deployment that was re-created or restored with the annotation of another Deployment", () => {
    expect(viewWith({ uid: "another" }).lastRollout).toBeUndefined();
  });

  it("is absent if another writer, such as kubectl rollout undo, restored the annotation", () => {
    expect(viewWith({ managedFields: managedBy("kubectl-rollout") }).lastRollout).toBeUndefined();
  });

  it.each<[string, readonly ManagedFields[]]>([
    ["reset", [{}]],
    ["empty", []],
  ])("counts if managedFields are %s, because it names the UID", (_, managedFields) => {
    expect(viewWith({ managedFields }).lastRollout).toEqual(ROLLOUT);
    expect(viewWith({ uid: "another", managedFields }).lastRollout).toBeUndefined();
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
    const restored = { uid: "restored", annotations, creationTimestamp, managedFields: [] };
    expect(viewWith(restored).resizedAtMs).toBe(NOW_MS - 90_000);
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
