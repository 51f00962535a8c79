import { describe, expect, it } from "vitest";
import { type PodView, toPodView } from "../../../../src/controller/observe/pod-view.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import type { Pod } from "../../../../src/kube/pods.ts";

const WORDS = "0/1 nodes are available: 1 Insufficient cpu.";
const FOUR = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
const RESIZED_AT = "2026-06-01T12:00:00Z";

function podOf(metadata: Partial<Pod["metadata"]> = {}, status: Pod["status"] = {}): Pod {
  return {
    metadata: {
      name: "orders-v2-5d8f-x7k2p",
      namespace: "pipes",
      uid: "u",
      resourceVersion: "1",
      generation: 2,
      labels: { "pod-template-hash": "5d8f" },
      ownerReferences: [{ kind: "ReplicaSet", name: "orders-v2-5d8f", uid: "r" }],
      ...metadata,
    },
    spec: { containers: [{ name: "pipe", resources: FOUR }] },
    status,
  };
}

describe("the Deployment of a pod", () => {
  it("is the one that its ReplicaSet is named after, even if the name has dashes", () => {
    expect(toPodView(podOf())).toMatchObject({ pipeName: "orders-v2", templateHash: "5d8f" });
  });

  it.each<[string, Partial<Pod["metadata"]>]>([
    ["is owned by a Job", { ownerReferences: [{ kind: "Job", name: "orders-v2-5d8f", uid: "j" }] }],
    ["has no owner", { ownerReferences: [] }],
    ["is of a ReplicaSet without a Deployment", { labels: {} }],
  ])("is unknown if the pod %s", (_, metadata) => {
    expect(toPodView(podOf(metadata)).pipeName).toBeUndefined();
  });
});

describe("a pod", () => {
  it.each<[string, Pod, Partial<PodView>]>([
    ["is active while it runs", podOf({}, { phase: "Running" }), { isActive: true, isTerminating: false }],
    ["is active before it runs", podOf(), { isActive: true, isTerminating: false }],
    [
      "terminates while it is being deleted",
      podOf({ deletionTimestamp: RESIZED_AT }, { phase: "Running" }),
      { isActive: false, isTerminating: true },
    ],
    [
      "is not active after it was evicted",
      podOf({}, { phase: "Failed" }),
      { isActive: false, isTerminating: false },
    ],
  ])("%s", (_, pod, view) => {
    expect(toPodView(pod)).toMatchObject(view);
  });

  it("is unschedulable with the words of the scheduler, but not while it has a scheduling gate", () => {
    const withReason = (reason: string) =>
      podOf({}, { conditions: [{ type: "PodScheduled", status: "False", reason, message: WORDS }] });
    expect(toPodView(withReason("Unschedulable")).unschedulable).toBe(WORDS);
    expect(toPodView(withReason("SchedulingGated")).unschedulable).toBeUndefined();
  });

  it("shows when its readiness last changed, or when it was created", () => {
    const creationTimestamp = "2026-06-01T11:00:00Z";
    const made = (conditions: NonNullable<Pod["status"]>["conditions"] = []) =>
      toPodView(podOf({ creationTimestamp }, { conditions }));
    const since = { readyChangedAtMs: Date.parse(RESIZED_AT) };
    const ready = { type: "Ready", status: "True", lastTransitionTime: RESIZED_AT };
    expect(made([ready])).toMatchObject({ isReady: true, ...since });
    expect(made([{ ...ready, status: "False" }])).toMatchObject({ isReady: false, ...since });
    expect(made([{ ...ready, type: "Initialized" }])).toMatchObject({
      isReady: false,
      readyChangedAtMs: Date.parse(creationTimestamp),
    });
  });

  it("has the condition of a resize while that is not done", () => {
    const withStatus = (status: string) =>
      podOf(
        {},
        { conditions: [{ type: "PodResizePending", status, reason: "Deferred", message: "no room" }] },
      );
    expect(toPodView(withStatus("True")).resize).toEqual({
      type: "PodResizePending",
      reason: "Deferred",
      message: "no room",
    });
    expect(toPodView(withStatus("False")).resize).toBeUndefined();
  });

  it("has the condition of the pending resize if an earlier one is in progress, and shows that", () => {
    const conditions = ["PodResizeInProgress", "PodResizePending"].map((type) => ({ type, status: "True" }));
    const resize = { type: "PodResizePending", reason: "", message: "", isAfterAnother: true };
    expect(toPodView(podOf({}, { conditions })).resize).toEqual(resize);
  });

  it("shows when the controller resized it, and not when another writer did", () => {
    const by = (manager: string, subresource: string | undefined) =>
      toPodView(
        podOf({ managedFields: [{ manager, time: RESIZED_AT, ...(subresource ? { subresource } : {}) }] }),
      );
    expect(by(CONTROLLER_FIELD_MANAGER, "resize").resizedAtMs).toBe(Date.parse(RESIZED_AT));
    expect(by(CONTROLLER_FIELD_MANAGER, undefined).resizedAtMs).toBeUndefined();
    expect(by("kubectl", "resize").resizedAtMs).toBeUndefined();
  });

  describe("the last writer that resized a container", () => {
    const EARLIER = "2026-06-01T11:59:59Z";
    const resize = (manager: string, time: string, container = "pipe", subresource = "resize") => ({
      manager,
      time,
      subresource,
      operation: "Update",
      fieldsV1: {
        "f:spec": {
          "f:containers": { [`k:{"name":"${container}"}`]: { "f:resources": { "f:requests": {} } } },
        },
      },
    });
    const ours = (time: string) => resize(CONTROLLER_FIELD_MANAGER, time);
    const theirs = (time: string) => resize("right-sizer", time);

    const created = { manager: "kube-controller-manager", operation: "Update", fieldsV1: { "f:spec": {} } };

    it.each([
      ["no writer did", [created], true],
      ["another container was resized", [created, resize("right-sizer", RESIZED_AT, "proxy")], true],
      ["the kubelet wrote the status", [created, resize("kubelet", RESIZED_AT, "pipe", "status")], true],
      ["the controller did", [created, ours(EARLIER)], false],
      ["another one did", [created, theirs(EARLIER)], false],
      ["nothing shows who did", [], false],
      ["somebody removed all records", [{}], false],
    ])("is known not to exist, or not, if %s", (_, managedFields, expected) => {
      const [container] = toPodView(podOf({ managedFields })).containers;
      expect(container?.isAsCreated).toBe(expected);
    });

    it.each([
      ["unknown if only the controller did", [ours(EARLIER)], undefined],
      ["another one after the controller", [ours(EARLIER), theirs(RESIZED_AT)], "right-sizer"],
      ["another one in the same second", [theirs(RESIZED_AT), ours(RESIZED_AT)], "right-sizer"],
      ["the controller after another one", [theirs(EARLIER), ours(RESIZED_AT)], undefined],
      ["the newest of several", [theirs(EARLIER), resize("boost", RESIZED_AT)], "boost"],
      ["unknown if another container was resized", [resize("right-sizer", RESIZED_AT, "proxy")], undefined],
      ["unknown if a kubelet wrote the status", [resize("kubelet", RESIZED_AT, "pipe", "status")], undefined],
    ])("is %s", (_, managedFields, expected) => {
      const [container] = toPodView(podOf({ managedFields })).containers;
      expect(container?.resizedBy).toBe(expected);
      expect(container?.otherResizedAtMs).toBe(expected && Date.parse(RESIZED_AT));
    });
  });

  it("has what its containers have, run with, and restart for", () => {
    const pod = podOf(
      {},
      {
        observedGeneration: 2,
        containerStatuses: [
          {
            name: "pipe",
            restartCount: 3,
            containerID: "containerd://1",
            state: { running: {} },
            lastState: { terminated: { finishedAt: RESIZED_AT, reason: "OOMKilled" } },
            allocatedResources: FOUR.requests,
            resources: FOUR,
          },
        ],
      },
    );
    const resizePolicy = [
      { resourceName: "cpu", restartPolicy: "NotRequired" },
      { resourceName: "memory", restartPolicy: "RestartContainer" },
    ];
    const view = toPodView({
      ...pod,
      spec: { containers: [{ name: "pipe", resources: FOUR, resizePolicy }] },
    });
    expect(view.observedGeneration).toBe(2);
    expect(view.containers).toEqual([
      {
        name: "pipe",
        resources: FOUR,
        resizedBy: undefined,
        otherResizedAtMs: undefined,
        isAsCreated: false,
        restartsFor: ["memory"],
        isRunning: true,
        restartCount: 3,
        containerId: "containerd://1",
        restartedAtMs: Date.parse(RESIZED_AT),
        isOomKilled: true,
        allocated: FOUR.requests,
        actual: FOUR,
      },
    ]);
  });

  it("has a container that does not run before it has a status", () => {
    expect(toPodView(podOf()).containers).toMatchObject([
      { isRunning: false, restartCount: 0, restartedAtMs: 0 },
    ]);
  });

  it("shares equal values with other pods, because there are thousands", () => {
    const [a, b] = [toPodView(podOf()), toPodView(JSON.parse(JSON.stringify(podOf())))];
    expect(a.containers[0]?.resources).toBe(b.containers[0]?.resources);
  });
});
