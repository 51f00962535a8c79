import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import {
  type ContainerView,
  type PodView,
  type ResizeCondition,
  toPodView,
} from "../../../../src/controller/observe/pod-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { ManagedFields } from "../../../../src/kube/objects.ts";
import { formatTime } from "../../../../src/kube/time.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aRollout,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aPodWrite, someWrites, type Write } from "../../../support/fixtures/writes.ts";

const [ONE, FOUR, EIGHT] = [sizeOfCores(1), sizeOfCores(4), sizeOfCores(8)];
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAYS = 3 * 24 * 3_600_000;

const SIZED = { size: FOUR, lastRollout: aRollout(FOUR, { cameUp: true }) };
/** The template has not followed yet. */
const UNSIZED = {};
/** The write that gave the pod its size. */
const BEFORE = [aPodWrite("a-1", { lastAtMs: NOW_MS - DAYS, runs: "id 0" })];

/** The decision about a pipe with one pod, in place if possible. */
function decided(
  pod: PodView,
  pipe: Partial<PipeView> = SIZED,
  writes: readonly Write[] = [],
  changes: Partial<Snapshot> = {},
) {
  const snapshot = aSnapshot([aLabelledPipe("a", pipe)], {
    strategy: "InPlaceOrRollout",
    leadingSinceMs: NOW_MS - DAYS,
    pods: new Map([["a", [pod]]]),
    writes: someWrites(writes),
    ...changes,
  });
  const decision = decide(snapshot, DECIDE_OPTIONS);
  const { state } = decision.sizing?.assessments[0] ?? {};
  return { state, summary: summaries(decision.actions), atMs: recheckAtMs(snapshot, decision) };
}

/** A pod that has had its size for days, and whose generation rose since then. */
function changed(changes: Partial<PodView> = {}, container: Partial<ContainerView> = {}): PodView {
  const applied = { allocated: amounts(FOUR).requests, actual: amounts(FOUR) };
  const pod = aResizedPod(
    "a-1",
    { observedGeneration: 3, resizedAtMs: NOW_MS - DAYS, ...changes },
    { ...applied, ...container },
  );
  return { ...pod, metadata: { ...pod.metadata, generation: 3 } };
}

const condition = (type: ResizeCondition["type"], reason: string, more: Partial<ResizeCondition> = {}) => ({
  resize: { type, reason, message: "about the container proxy", ...more },
});
const LAG = { observedGeneration: 2 };

const CHANGES: readonly (readonly [string, Partial<PodView>])[] = [
  ["a resize of a sidecar that is deferred", condition("PodResizePending", "Deferred")],
  ["a resize of a sidecar that is infeasible", condition("PodResizePending", "Infeasible")],
  ["a resize of a sidecar that is in progress", condition("PodResizeInProgress", "")],
  ["a resize of a sidecar that ends in an error", condition("PodResizeInProgress", "Error")],
  ["a resize that the kubelet has not seen, such as of a sidecar", LAG],
  [
    "an ephemeral container, which the kubelet has not seen, besides a deferred sidecar",
    { ...LAG, ...condition("PodResizePending", "Deferred") },
  ],
  [
    "an ephemeral container, which the kubelet has not seen, besides an infeasible sidecar",
    { ...LAG, ...condition("PodResizePending", "Infeasible") },
  ],
];

describe.each(CHANGES)("after %s, a pod that has had its size for days", (_, change) => {
  it.each([
    ["that resized it", BEFORE],
    ["that knows it from the cluster", []],
  ])("keeps its pipe done, with the process %s", (_process, writes) => {
    expect(decided(changed(change), SIZED, writes)).toMatchObject({ state: "done", summary: [] });
  });

  it("keeps its pipe done although its only writer is no longer among its managed fields", () => {
    const pod = changed({ ...change, resizedAtMs: undefined });
    expect(decided(pod)).toMatchObject({ state: "done", summary: [] });
  });

  it("keeps a pipe done that stops its old pods first", () => {
    const pipe = { ...SIZED, stopsOldPodsFirst: true };
    expect(decided(changed(change), pipe, BEFORE)).toMatchObject({ state: "done", summary: [] });
  });

  it("still has its template follow", () => {
    expect(decided(changed(change), UNSIZED, BEFORE)).toMatchObject({
      state: "resized",
      summary: ["commit a"],
    });
  });

  it("does not fail because of a restart days ago", () => {
    const restarted = { restartCount: 1, restartedAtMs: NOW_MS - 2 * 3_600_000 };
    expect(decided(changed(change, restarted), SIZED, BEFORE)).toMatchObject({ state: "done", summary: [] });
  });

  it("keeps a StatefulSet done", () => {
    const { size } = SIZED;
    const pipe = { ...aStatefulPipe({ options: { cores: 4, replicas: 1 } }), size };
    const pod = changed({ ...change, templateHash: "a-1" });
    const snapshot = aSnapshot([{ ...pipe, rollout: { ...pipe.rollout, replicas: 1 } }], {
      strategy: "InPlaceOrRollout",
      leadingSinceMs: NOW_MS - DAYS,
      pods: new Map([["statefulset/a", [{ ...pod, metadata: { ...pod.metadata, name: "a-0" } }]]]),
    });
    expect(decide(snapshot, DECIDE_OPTIONS).sizing?.assessments[0]?.state).toBe("done");
  });
});

describe("a pod that was resized a moment ago", () => {
  const written = [aPodWrite("a-1", { lastAtMs: NOW_MS - SECOND })];

  it.each([
    ["the kubelet has not seen its last change", LAG],
    ["a resize of the pod is in progress", condition("PodResizeInProgress", "")],
    [
      "a resize of the pod is in progress while another one is pending",
      condition("PodResizePending", "Deferred", { isAfterAnother: true }),
    ],
    [
      "the kubelet has not seen that the resize before, which was infeasible, was withdrawn",
      { ...LAG, ...condition("PodResizePending", "Infeasible") },
    ],
  ] as const)("is waited for although its report has the size, because %s", (_, change) => {
    const { state, summary, atMs } = decided(changed(change), SIZED, written);
    expect([state, summary]).toEqual(["rolling", []]);
    expect(atMs).toBe(NOW_MS - SECOND + TIMEOUTS.resizeMs);
  });

  it("is done if the pending resize is that of a sidecar", () => {
    const pending = changed(condition("PodResizePending", "Deferred"));
    expect(decided(pending, SIZED, written).state).toBe("done");
  });
});

describe("a pod that another tool returns to its size", () => {
  const returned = (agoMs: number, container: Partial<ContainerView> = {}) =>
    changed(condition("PodResizeInProgress", ""), {
      actual: amounts(EIGHT),
      allocated: amounts(EIGHT).requests,
      resizedBy: "boost",
      otherResizedAtMs: NOW_MS - agoMs,
      ...container,
    });

  it.each([
    ["that resized it days before", BEFORE],
    ["that knows it from the cluster", []],
  ])("has the whole time of a resize, with the process %s", (_, writes) => {
    expect(decided(returned(SECOND), SIZED, writes)).toEqual({
      state: "rolling",
      summary: [],
      atMs: NOW_MS - SECOND + TIMEOUTS.resizeMs,
    });
    expect(decided(returned(TIMEOUTS.resizeMs), SIZED, writes).summary).toEqual(["adopt a with 4000m/16Gi"]);
  });

  it("has not failed because of a restart before that", () => {
    const restarted = { restartCount: 1, restartedAtMs: NOW_MS - MINUTE };
    expect(decided(returned(SECOND, restarted), SIZED, BEFORE).summary).toEqual([]);
    const restartedLater = { restartCount: 1, restartedAtMs: NOW_MS - 500 };
    expect(decided(returned(SECOND, restartedLater), SIZED, BEFORE).summary).toEqual([
      "adopt a with 4000m/16Gi",
    ]);
  });
});

describe("a pod that was created with its size, and whose generation rose", () => {
  const created = (container: Partial<ContainerView> = {}) =>
    changed({ resizedAtMs: undefined, ...LAG }, { isAsCreated: true, ...container });
  const starting = { isRunning: false, actual: undefined, allocated: undefined };

  it("is done while it starts, because its start is the concern of its workload", () => {
    expect(decided(created(starting)).state).toBe("done");
    expect(decided(created({ ...starting, isAsCreated: false })).summary).toEqual([
      "adopt a with 4000m/16Gi",
    ]);
  });

  it("did not restart because of its size", () => {
    const stopped = { isRunning: false, restartCount: 1, restartedAtMs: NOW_MS - SECOND };
    expect(decided(created(stopped), UNSIZED).summary).toEqual(["commit a"]);
  });
});

describe("a resize that the kubelet does not apply", () => {
  const resize = (manager: string, container: string, atMs: number): ManagedFields => ({
    manager,
    operation: "Update",
    subresource: "resize",
    time: formatTime(atMs),
    fieldsV1: { "f:spec": { "f:containers": { [`k:{"name":"${container}"}`]: { "f:resources": {} } } } },
  });
  /** A pod whose sidecar another writer resizes again and again. */
  const busy = (resizedAtMs: number, type: ResizeCondition["type"]): PodView =>
    toPodView({
      metadata: {
        ...aPod("a-1").metadata,
        generation: 50,
        labels: { "pod-template-hash": "current" },
        annotations: { "pipes.clouddb.dev/container": "pipe" },
        ownerReferences: [{ kind: "ReplicaSet", name: "a-current", uid: "r" }],
        managedFields: [
          resize(CONTROLLER_FIELD_MANAGER, "pipe", resizedAtMs),
          resize("vpa", "proxy", NOW_MS),
        ],
      },
      spec: {
        nodeName: "node",
        containers: [
          { name: "pipe", resources: amounts(FOUR) },
          { name: "proxy", resources: amounts(ONE) },
        ],
      },
      status: {
        observedGeneration: 49,
        conditions: [{ type, status: "True", reason: "Deferred", message: "no room" }],
        containerStatuses: ["pipe", "proxy"].map((name) => ({
          name,
          state: { running: {} },
          allocatedResources: amounts(ONE).requests,
          resources: amounts(ONE),
        })),
      },
    });

  it.each([
    ["PodResizePending", TIMEOUTS.deferredMs],
    ["PodResizeInProgress", TIMEOUTS.resizeMs],
  ] as const)(
    "times out with %s although another writer resizes a sidecar again and again",
    (type, timeoutMs) => {
      for (const pipe of [SIZED, UNSIZED]) {
        expect(decided(busy(NOW_MS - timeoutMs + SECOND, type), pipe)).toEqual({
          state: "rolling",
          summary: [],
          atMs: NOW_MS + SECOND,
        });
        const [summary] = decided(busy(NOW_MS - timeoutMs, type), pipe).summary;
        expect(summary).toMatch(/^adopt a with /);
      }
    },
  );
});
