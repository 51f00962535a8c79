import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { NEVER_READY_LABEL } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import { HORIZONTAL_AUTOSCALERS } from "../../../src/controller/observe/autoscaler-view.ts";
import type { Pod } from "../../../src/kube/objects.ts";
import { objectPath, PODS } from "../../../src/kube/paths.ts";
import { type HeldService, HeldServices, PIPE } from "./held-services.ts";

let held: HeldServices | undefined;
afterEach(() => held?.end());

async function deletePod({ environment }: HeldService, { metadata }: Pod): Promise<void> {
  await environment.client.json({
    method: "DELETE",
    path: objectPath(PODS, environment.pipes, metadata.name),
  });
}

/** Evicts a pod, like `kubectl drain`. */
async function evictPod({ environment }: HeldService, { metadata }: Pod): Promise<void> {
  const { name } = metadata;
  await environment.client.json({
    method: "POST",
    path: `${objectPath(PODS, environment.pipes, name)}/eviction`,
    body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name } },
  });
}

/** Its minimum is the only reason to scale, because the cluster has no metrics. */
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

/** The container runs out of memory, and the kubelet restarts it before the controller can see it stopped. */
async function restartAfterOutOfMemory(service: HeldService, { metadata, status }: Pod): Promise<void> {
  const now = new Date().toISOString();
  const terminated = { exitCode: 137, reason: "OOMKilled", startedAt: now, finishedAt: now };
  const restarted = { restartCount: 1, containerID: "test://restarted", lastState: { terminated } };
  const containerStatuses = status?.containerStatuses?.map((each) => ({ ...each, ...restarted }));
  await service.patchPod(metadata.name, { status: { containerStatuses } }, "/status");
}

function whereCondition(reason: string, pods: readonly Pod[]): readonly Pod[] {
  return pods.filter(({ status }) => status?.conditions?.some((each) => each.reason === reason));
}

describe("between any two steps of a resize in place", () => {
  it.each([
    ["deleted", deletePod],
    ["evicted", evictPod],
  ])("a pod can be %s, and the other one does not restart", async (_, remove) => {
    held = await HeldServices.start();
    const kept = new Map<HeldService, string>();
    await held.between(2, async (service) => {
      const [first, second] = await service.pods();
      if (!first || !second) throw new Error("the pipe does not have two pods");
      kept.set(service, second.metadata.uid);
      await remove(service, first);
    });
    await held.each(async (service) => {
      await service.settled(2);
      expect(await service.uids()).toContain(kept.get(service));
      expect(await service.replicaSets()).toHaveLength(1);
    });
  });

  it("a container can crash and start again", async () => {
    held = await HeldServices.start();
    const crashing = new Map<HeldService, string>();
    await held.between(2, async (service) => {
      const { metadata } = await service.aPod();
      crashing.set(service, metadata.name);
      await service.patchPod(metadata.name, { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } });
    });
    await held.each(async (service) => {
      const name = crashing.get(service) ?? "";
      const isReplaced = async () => !(await service.pods()).some(({ metadata }) => metadata.name === name);
      const hasCrashed = async () =>
        (await service.pods()).some(
          ({ metadata, status }) => metadata.name === name && !status?.containerStatuses?.[0]?.state?.running,
        );
      await waitFor(async () => (await isReplaced()) || (await hasCrashed()), {
        what: "the container to crash",
      });
      if (!(await isReplaced())) {
        await service.patchPod(name, { metadata: { labels: { [NEVER_READY_LABEL]: null } } });
      }
      await service.settled(2);
    });
  });
});

describe("a resize in place", () => {
  it("continues when a full node has room again", async () => {
    held = await HeldServices.start({ steps: ["second pod"] });
    await held.hold(2);
    await held.each(async (service) => {
      for (const { metadata } of await service.pods()) {
        await service.patchPod(metadata.name, {
          metadata: { annotations: { [RESIZE_OUTCOME_ANNOTATION]: "Deferred" } },
        });
      }
    });
    held.release();
    await held.each(async (service) => {
      const deferred = await waitFor(
        async () => {
          const found = whereCondition("Deferred", await service.pods());
          return found.length > 0 && found;
        },
        { what: "a deferred resize" },
      );
      for (const { metadata } of deferred) {
        await service.patchPod(metadata.name, {
          metadata: { annotations: { [RESIZE_OUTCOME_ANNOTATION]: null } },
        });
      }
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("continues without a restart when a HorizontalPodAutoscaler adds a pod", async () => {
    held = await HeldServices.start({ steps: ["second pod", "pause"] });
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

  it("leads to a rollout with the reason in the status if a container of a resized pod runs out of memory", async () => {
    held = await HeldServices.start({ steps: ["second pod"] });
    await held.hold(2);
    await held.each(async (service) => {
      const resized = (await service.pods()).find(
        ({ spec }) => spec.containers[0]?.resources?.requests?.["cpu"] === "2",
      );
      if (!resized) throw new Error("the first pod is not resized");
      await restartAfterOutOfMemory(service, resized);
    });
    held.release();
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectFallback("Restarted", "its container pipe restarted during the resize");
      expect((await service.uids()).filter((uid) => service.before.includes(uid))).toEqual([]);
    });
  });

  it("leads to a rollout if a pod that was created during the commit cannot be resized", async () => {
    held = await HeldServices.start({ steps: ["ReplicaSet"] });
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
      const kept = (await service.uids()).filter((uid) => service.before.includes(uid));
      expect(kept).toEqual([]);
      const sizes = (await service.replicaSets()).map(({ spec }) => [
        spec.replicas,
        spec.template.spec.containers[0]?.resources?.requests?.["cpu"],
      ]);
      // The same revisions as after an ordinary rollout.
      expect(sizes.toSorted()).toEqual([
        [0, "1"],
        [3, "2"],
      ]);
    });
  });
});
