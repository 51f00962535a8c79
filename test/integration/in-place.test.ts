import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { Pod, ReplicaSet } from "../../src/kube/objects.ts";
import { collectionPath, objectPath, PODS, REPLICA_SETS } from "../../src/kube/paths.ts";
import { conditionOf, resourcesOf, World } from "./world.ts";

describe("with the strategy InPlaceOrRollout, the controller", () => {
  let world: World;
  beforeEach(async () => {
    world = await World.create();
  });
  afterEach(() => world.end());

  async function pods(): Promise<readonly Pod[]> {
    const { items } = await world.client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, world.pipes),
    });
    return items;
  }

  async function replicaSets(): Promise<readonly ReplicaSet[]> {
    const { items } = await world.client.json<{ readonly items: readonly ReplicaSet[] }>({
      path: collectionPath(REPLICA_SETS, world.pipes),
    });
    return items;
  }

  async function uids(): Promise<readonly string[]> {
    return (await pods()).map(({ metadata }) => metadata.uid).sort();
  }

  async function runningPods(count: number): Promise<void> {
    const areRunning = async () => {
      const all = await pods();
      return all.length === count && all.every(({ status }) => status?.containerStatuses?.[0]?.resources);
    };
    await waitFor(areRunning, { what: "the pods to run" });
  }

  /** As the controller does it. */
  async function resize(pod: string): Promise<void> {
    const resources = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
    await world.client.json({
      method: "PATCH",
      path: `${objectPath(PODS, world.pipes, pod)}/resize`,
      patchType: "application/strategic-merge-patch+json",
      body: { spec: { containers: [{ name: "pipe", resources }] } },
    });
  }

  it("resizes every pod without a restart, and the Deployment keeps its ReplicaSet", async () => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    for (const name of ["pipe-a", "pipe-b"]) await world.createPipe({ name, cores: 1, replicas: 2 });
    await world.waitForCondition("Ready", "True");
    await runningPods(4);
    const before = await uids();
    await world.askFor(4);
    await world.waitForCondition("Ready", "True");
    expect(await uids()).toEqual(before);
    for (const name of ["pipe-a", "pipe-b"]) {
      const pipe = await world.pipe(name);
      expect(resourcesOf(pipe)).toBe("4 16Gi 16Gi");
      expect(pipe.spec.paused).toBeUndefined();
    }
    expect(await replicaSets()).toHaveLength(2);
    for (const pod of await pods()) {
      expect(pod.status?.containerStatuses).toMatchObject([
        { restartCount: 0, resources: { requests: { cpu: "4", memory: "16Gi" } } },
      ]);
    }
  });

  it("replaces the pods of a pipe whose node can never give the size, and says why", async () => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.createPipe({
      name: "pipe-a",
      cores: 1,
      podAnnotations: { [RESIZE_OUTCOME_ANNOTATION]: "Infeasible" },
    });
    await world.waitForCondition("Ready", "True");
    await runningPods(1);
    const [before] = await pods();
    await world.askFor(4);
    const why = await waitFor(
      async () => {
        const message = conditionOf(await world.scaling(), "Ready")?.message ?? "";
        return message.includes("in place") ? message : undefined;
      },
      { what: "the reason for the rollout in the status" },
    );
    expect(why).toContain(
      "The pods of pipe-a are replaced, because they cannot be resized in place: pod pipe-a-",
    );
    await world.waitForCondition("Ready", "True");
    expect(resourcesOf(await world.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
    expect((await pods()).map(({ metadata }) => metadata.uid)).not.toContain(before?.metadata.uid);
  });

  it("finishes a commit that its predecessor began, without a restart", async () => {
    const end = await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.createPipe({ name: "pipe-a", cores: 1, replicas: 2 });
    await world.waitForCondition("Ready", "True");
    await runningPods(2);
    const before = await uids();
    await end();
    for (const { metadata } of await pods()) await resize(metadata.name);
    const resources = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
    await world.patchPipe(
      "pipe-a",
      { spec: { paused: true, template: { spec: { containers: [{ name: "pipe", resources }] } } } },
      CONTROLLER_FIELD_MANAGER,
    );
    await world.askFor(4);
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.waitForCondition("Ready", "True");
    expect((await world.pipe("pipe-a")).spec.paused).toBeUndefined();
    expect(await uids()).toEqual(before);
    expect(await replicaSets()).toHaveLength(1);
  });

  it("resumes a Deployment that it paused, although the service is suspended", async () => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.createPipe({ name: "pipe-a", cores: 1 });
    await world.waitForCondition("Ready", "True");
    await world.patchScaling({ suspend: true });
    await world.waitForCondition("Ready", "Unknown");
    await world.patchPipe("pipe-a", { spec: { paused: true } }, CONTROLLER_FIELD_MANAGER);
    await waitFor(async () => (await world.pipe("pipe-a")).spec.paused === undefined, {
      what: "the Deployment to be resumed",
    });
  });

  it("never resumes a Deployment that its owner paused", async () => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.createPipe({ name: "pipe-a", cores: 1 });
    await world.waitForCondition("Ready", "True");
    await world.patchPipe("pipe-a", { spec: { paused: true } }, "kubectl");
    await world.askFor(4);
    await waitFor(async () => (await world.scaling()).status?.pipes?.pending?.[0]?.state === "Paused", {
      what: "the pipe to be reported as paused",
    });
    expect((await world.pipe("pipe-a")).spec.paused).toBe(true);
  });
});
