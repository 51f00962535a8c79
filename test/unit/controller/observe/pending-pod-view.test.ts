import { describe, expect, it } from "vitest";
import {
  toPendingPodView,
  unschedulableReason,
} from "../../../../src/controller/observe/pending-pod-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { Pod } from "../../../../src/kube/objects.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";

const WORDS = "0/1 nodes are available: 1 Insufficient cpu.";

function aPod(changes: Partial<Pod["metadata"]> = {}, reason = "Unschedulable"): Pod {
  return {
    metadata: {
      name: "orders-v2-5d8f-x7k2p",
      namespace: "pipes",
      uid: "u",
      resourceVersion: "1",
      labels: { "pod-template-hash": "5d8f" },
      ownerReferences: [{ kind: "ReplicaSet", name: "orders-v2-5d8f", uid: "r" }],
      ...changes,
    },
    spec: {
      containers: [
        { name: "pipe", resources: { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } } },
      ],
    },
    status: { conditions: [{ type: "PodScheduled", status: "False", reason, message: WORDS }] },
  };
}

describe("a pod without a node", () => {
  it("belongs to the Deployment that its ReplicaSet is named after, even if the name has dashes", () => {
    expect(toPendingPodView(aPod())).toMatchObject({ pipeName: "orders-v2", unschedulable: WORDS });
  });

  it.each<[string, Pod]>([
    ["owned by a Job", aPod({ ownerReferences: [{ kind: "Job", name: "orders-v2-5d8f", uid: "j" }] })],
    ["without an owner", aPod({ ownerReferences: [] })],
    ["of a ReplicaSet without a Deployment", aPod({ labels: {} })],
    ["being deleted", aPod({ deletionTimestamp: "2026-01-01T00:00:00Z" })],
  ])("belongs to no pipe if it is %s", (_, pod) => {
    expect(toPendingPodView(pod).pipeName).toBeUndefined();
  });

  it("is not unschedulable while it has a scheduling gate", () => {
    expect(toPendingPodView(aPod({}, "SchedulingGated")).unschedulable).toBeUndefined();
  });

  it("counts for a pipe only if it has the pipe's current size", () => {
    const pods = [toPendingPodView(aPod())];
    expect(unschedulableReason(aPipe("orders-v2", { size: sizeOfCores(4) }), pods)).toBe(WORDS);
    expect(unschedulableReason(aPipe("orders-v2", { size: sizeOfCores(2) }), pods)).toBeUndefined();
    expect(unschedulableReason(aPipe("orders-v2", { size: undefined }), pods)).toBeUndefined();
  });
});
