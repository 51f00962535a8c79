import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { RETRY_ANNOTATION } from "../../../../src/controller/names.ts";
import { requestOf, toPipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { CONTROLLER_FIELD_MANAGER, IGNORE_WINDOW_ANNOTATION } from "../../../../src/crd/names.ts";
import { BOOST_REQUEST_ANNOTATION, formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import type { FieldsV1, ManagedFields } from "../../../../src/kube/objects.ts";
import { aLabelledPipe, aScaling, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";

/** In UTC, its year would have five digits. */
const LAST_UNTIL = "9999-12-31T23:59:59-12:00";
const EIGHT = { replicaCpuMillicores: 8000, replicaMemoryGb: 32 };

function viewOf(annotations: Readonly<Record<string, string>>, until?: string) {
  const { metadata } = aScaling(4);
  const spec = until === undefined ? {} : { boost: { ...EIGHT, until } };
  return toPipeScalingView({ metadata: { ...metadata, annotations }, spec });
}

function statusWith(scaling: ReturnType<typeof viewOf>) {
  const snapshot = aSnapshot([aLabelledPipe("a")], { scaling });
  const { sizing } = decide(snapshot, DECIDE_OPTIONS);
  return statusOf(snapshot, scaling, { sizing }, DECIDE_OPTIONS.policy);
}

describe("a time in a PipeScaling that is after the year 9999 in UTC", () => {
  it("is reported as the last time that a status can have if a boost ends then", () => {
    expect(statusWith(viewOf({}, LAST_UNTIL)).boost?.until).toBe("9999-12-31T23:59:59Z");
  });

  it("belongs to the API request of the boost", () => {
    const request = formatScalingRequest({
      ...EIGHT,
      requestId: "request-1",
      apiKey: "key-1",
      requestedAt: "2026-01-31T20:00:00Z",
      until: LAST_UNTIL,
    });
    const view = viewOf({ [BOOST_REQUEST_ANNOTATION]: request }, LAST_UNTIL);
    const until = { untilMs: Date.parse("9999-12-31T23:59:59.999Z") };
    const boost = { size: { cpuMillicores: 8000, memoryGib: 32 }, ...until };
    expect(requestOf(view, boost)?.requestId).toBe("request-1");
  });

  it.each([LAST_UNTIL, "+275760-09-13T00:00:00Z"])(
    "is the last time that a status can have if a retry is requested for %s",
    (time) => {
      const view = viewOf({ [RETRY_ANNOTATION]: time, [IGNORE_WINDOW_ANNOTATION]: time });
      const lastMs = Date.parse("9999-12-31T23:59:59.999Z");
      expect(view).toMatchObject({ retryRequestedAtMs: lastMs, windowIgnoredUntilMs: lastMs });
      expect(view.malformedAnnotations).toEqual([]);
    },
  );
});

describe("a PipeScaling that the controller created with a size", () => {
  const SIZE = { "f:replicaCpuMillicores": {}, "f:replicaMemoryGb": {} };
  const CREATED = written(CONTROLLER_FIELD_MANAGER, SIZE);

  function written(manager: string, spec: FieldsV1): ManagedFields {
    return { manager, fieldsV1: { "f:spec": spec } };
  }

  const isUnrequested = (managedFields: readonly ManagedFields[]) => {
    const { metadata, spec } = aScaling(4);
    // If the spec has a size, the generation shows only that anything was written.
    const view = toPipeScalingView({
      metadata: { ...metadata, generation: 3, managedFields },
      spec,
    });
    return view.isUnrequested;
  };

  it.each<[string, readonly ManagedFields[]]>([
    ["wrote nothing", [CREATED]],
    ["suspended it", [CREATED, written("kubectl-patch", { "f:suspend": {} })]],
    ["set its strategy", [CREATED, written("flux", { ".": {}, "f:strategy": {} })]],
    ["wrote only its annotations", [CREATED, { manager: "owner", fieldsV1: { "f:metadata": {} } }]],
  ])("is unrequested if another writer %s", (_, managedFields) => {
    expect(isUnrequested(managedFields)).toBe(true);
  });

  it.each<[string, readonly ManagedFields[]]>([
    ["its size", [written("kubectl-patch", SIZE)]],
    ["the size that it had, by server-side apply", [CREATED, written("pipe-scaling-api", SIZE)]],
    ["one field of its size", [CREATED, written("flux", { "f:replicaMemoryGb": {} })]],
    ["a boost", [CREATED, written("pipe-scaling-api", { "f:boost": {} })]],
    ["its size before it was suspended", [written("kubectl-patch", { ...SIZE, "f:suspend": {} })]],
    // Nothing shows any more who wrote the size.
    ["its managed fields", [{}]],
  ])("is requested if another writer wrote %s", (_, managedFields) => {
    expect(isUnrequested(managedFields)).toBe(false);
  });

  it("is requested after its size was removed", () => {
    expect(isUnrequested([written(CONTROLLER_FIELD_MANAGER, { "f:suspend": {} })])).toBe(false);
  });
});

describe("a PipeScaling that the controller created without a size", () => {
  function isUnrequested(generation: number, ...writers: readonly [manager: string, spec: FieldsV1][]) {
    const { metadata, spec } = aScaling(undefined);
    const managedFields = writers.map(([manager, fields]) => ({ manager, fieldsV1: { "f:spec": fields } }));
    return toPipeScalingView({ metadata: { ...metadata, generation, managedFields }, spec }).isUnrequested;
  }

  const CREATED: [string, FieldsV1] = [CONTROLLER_FIELD_MANAGER, {}];

  it("is unrequested until another writer applies or changes its spec", () => {
    expect(isUnrequested(1, CREATED)).toBe(true);
    expect(isUnrequested(1, CREATED, ["flux", {}])).toBe(false);
    expect(isUnrequested(2, CREATED)).toBe(false);
    expect(isUnrequested(2, CREATED, ["kubectl-patch", { "f:suspend": {} }])).toBe(false);
  });

  it("is requested if another writer created it", () => {
    expect(isUnrequested(1, ["kubectl-create", {}])).toBe(false);
    expect(isUnrequested(1)).toBe(false);
  });
});

it("a boost whose end is no time has no effect", () => {
  expect(statusWith(viewOf({}, "2030-01-01T00:00:00+99:99")).boost).toBeUndefined();
});
