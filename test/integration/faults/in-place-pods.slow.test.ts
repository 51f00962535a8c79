import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import { HORIZONTAL_AUTOSCALERS, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import { type HeldService, HeldServices, PIPE } from "./held-services.ts";

let held: HeldServices | undefined;
afterEach(() => held?.end());

/** Evicts a pod, like `kubectl drain`. */
async function evictPod({ environment }: HeldService, { metadata }: Pod): Promise<void> {
  const { name } = metadata;
  await environment.client.json({
    method: "POST",
    path: `${objectPath(PODS, environment.pipes, name)}/eviction`,
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } },
  });
}

/** Returns an HPA. Only its minimum makes it scale, because the cluster has no metrics. */
function autoscaler(namespace: string): object {
  return {
    apiVersion: "autoscaling/v2",
    kind: "HorizontalPodAutoscaler",
    metadata: { name: PIPE, namespace },
    spec: {
      scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: PIPE },
      minReplicas: 3,
      maxReplicas: 3,
    },
  };
}

// test/unit/controller/simulation/in-place-steps/pods.test.ts has pods that are deleted, crash, or find no room.
it("between any two steps of a resize in place, a pod can be evicted, and the other one does not restart", async () => {
  held = await HeldServices.start();
  const kept = new Map<HeldService, string>();
  await held.between(2, async (service) => {
    const [first, second] = await service.pods();
    if (!first || !second) throw new Error("the pipe does not have two pods");
    kept.set(service, second.metadata.uid);
    await evictPod(service, first);
  });
  await held.each(async (service) => {
    await service.settled(2);
    expect(await service.uids()).toContain(kept.get(service));
    expect(await service.replicaSets()).toHaveLength(1);
  });
});

describe("a resize in place", () => {
  it("continues without a restart when a HorizontalPodAutoscaler adds a pod", async () => {
    held = await HeldServices.start({ steps: ["resize of the second pod", "pause"] });
    const { cluster } = held.environment;
    await held.hold(2);
    await held.each(({ environment }) => apply(cluster, [autoscaler(environment.pipes)]));
    const { environment, services } = held;
    environment.onEnd(() =>
      Promise.all(services.map((each) => each.environment.deleteAll(HORIZONTAL_AUTOSCALERS))),
    );
    await held.each(async (service) => {
      const isScaled = async () => (await service.pods()).length === 3;
      await waitFor(isScaled, { what: "the HorizontalPodAutoscaler to add a pod" });
    });
    held.release();
    await held.each(async (service) => {
      await service.settled(2, 3);
      expect(await service.uids()).toEqual(expect.arrayContaining([...service.before]));
      expect(await service.replicaSets()).toHaveLength(1);
    });
  });

  it("leads to a rollout if a pod that was created during the commit cannot be resized", async () => {
    held = await HeldServices.start({ steps: ["write to the ReplicaSet"] });
    // The new pod gets the old size, because the ReplicaSet still has it.
    await held.hold(2);
    await held.each(async (service) => {
      await service.change({ replicas: 3 });
      const created = await waitFor(
        async () => (await service.pods()).find(({ metadata }) => !service.before.includes(metadata.uid)),
        { what: "the new pod" },
      );
      await service.patchPod(created.metadata.name, {
        metadata: { annotations: { [RESIZE_OUTCOME_ANNOTATION]: "Infeasible" } },
      });
    });
    held.release();
    await held.each(async (service) => {
      await service.settled(2, 3);
      // The first pods had the size, and end with the others.
      const isReplaced = async () => (await service.uids()).every((uid) => !service.before.includes(uid));
      await waitFor(isReplaced, { what: "all pods to be replaced" });
      const sizes = (await service.replicaSets()).map(({ spec }) => [
        spec.replicas,
        spec.template.spec.containers[0]?.resources?.requests?.["cpu"],
      ]);
      // An ordinary rollout leaves the same revisions.
      expect(sizes.toSorted()).toEqual([
        [0, "1"],
        [3, "2"],
      ]);
    });
  });
});
