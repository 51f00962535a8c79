import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { Pod, ReplicaSet } from "../../src/kube/objects.ts";
import { collectionPath, objectPath, PODS, REPLICA_SETS } from "../../src/kube/paths.ts";
import { mayDo, Rights } from "../chart/rights.ts";
import type { PipeOptions } from "../gen/pipe.ts";
import { accountName, inPlaceAccount } from "../gen/shipped-account.ts";
import { conditionOf, resourcesOf, World } from "./world.ts";

describe("with the strategy InPlaceOrRollout, the controller", () => {
  let world: World;
  let rights: Rights;
  beforeEach(async () => {
    world = await World.create();
    await apply(world.cluster, await inPlaceAccount(world.records));
    rights = await Rights.of("controller", world);
    const user = `system:serviceaccount:${world.records}:${accountName("controller")}`;
    const right = { verb: "patch", group: "", resource: "pods/resize" };
    await waitFor(() => mayDo(world.client, user, world.pipes, right), { what: "permission to resize pods" });
  });
  afterEach(async () => {
    await world.end();
    await rights.close();
  });

  function createPipe(options: Parameters<World["createPipe"]>[0]): Promise<unknown> {
    const podLabels = { [SERVICE_LABEL]: world.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    return world.createPipe({ podLabels, ...options });
  }

  /** Waits until the status says why a pipe is not resized in place. */
  function fallbackMessage(): Promise<string> {
    const read = async () => {
      const message = conditionOf(await world.scaling(), "Ready")?.message ?? "";
      return message.includes("in place") ? message : undefined;
    };
    return waitFor(read, { what: "the reason for the rollout in the status", intervalMs: 20 });
  }

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
    for (const name of ["pipe-a", "pipe-b"]) await createPipe({ name, cores: 1, replicas: 2 });
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
    await createPipe({
      name: "pipe-a",
      cores: 1,
      podAnnotations: { [RESIZE_OUTCOME_ANNOTATION]: "Infeasible" },
    });
    await world.waitForCondition("Ready", "True");
    await runningPods(1);
    const [before] = await pods();
    await world.askFor(4);
    expect(await fallbackMessage()).toContain(
      "The pods of pipe-a are replaced, because they cannot be resized in place: pod pipe-a-",
    );
    await world.waitForCondition("Ready", "True");
    expect(resourcesOf(await world.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
    expect((await pods()).map(({ metadata }) => metadata.uid)).not.toContain(before?.metadata.uid);
  });

  it("finishes a commit that its predecessor began, without a restart", async () => {
    const end = await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe({ name: "pipe-a", cores: 1, replicas: 2 });
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
    await createPipe({ name: "pipe-a", cores: 1 });
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
    await createPipe({ name: "pipe-a", cores: 1 });
    await world.waitForCondition("Ready", "True");
    await world.patchPipe("pipe-a", { spec: { paused: true } }, "kubectl");
    await world.askFor(4);
    await waitFor(async () => (await world.scaling()).status?.pipes?.pending?.[0]?.state === "Paused", {
      what: "the pipe to be reported as paused",
    });
    expect((await world.pipe("pipe-a")).spec.paused).toBe(true);
  });

  const LABELS = [SERVICE_LABEL, TYPE_LABEL];

  it.each<[string, Partial<PipeOptions>, string]>([
    ["has no labels", { podLabels: {} }, `does not have the label ${SERVICE_LABEL}=`],
    [
      "has the labels of another type",
      { podLabels: Object.fromEntries(LABELS.map((label) => [label, "files"])) },
      `${TYPE_LABEL}=${DATABASE_TYPE}`,
    ],
    [
      "has several containers and no annotation",
      { containers: ["pipe", "helper"], annotations: { [CONTAINER_ANNOTATION]: "pipe" } },
      `does not have the annotation ${CONTAINER_ANNOTATION}=pipe`,
    ],
    [
      "has an annotation that names another container",
      {
        containers: ["pipe", "helper"],
        annotations: { [CONTAINER_ANNOTATION]: "pipe" },
        podAnnotations: { [CONTAINER_ANNOTATION]: "helper" },
      },
      `does not have the annotation ${CONTAINER_ANNOTATION}=pipe`,
    ],
  ])("replaces the pods of a pipe whose pod template %s", async (_, options, message) => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe({ name: "pipe-a", cores: 1, ...options });
    await world.waitForCondition("Ready", "True");
    await runningPods(1);
    const [before] = await pods();
    await world.askFor(2);
    expect(await fallbackMessage()).toContain(message);
    await world.waitForCondition("Ready", "True");
    expect(resourcesOf(await world.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect((await pods()).map(({ metadata }) => metadata.uid)).not.toContain(before?.metadata.uid);
  });

  it("resizes the container that the annotations of the Deployment and its pod template name", async () => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    const annotations = { [CONTAINER_ANNOTATION]: "pipe" };
    const containers = ["pipe", "helper"];
    await createPipe({ name: "pipe-a", cores: 1, containers, annotations, podAnnotations: annotations });
    await world.waitForCondition("Ready", "True");
    await runningPods(1);
    const before = await uids();
    await world.askFor(2);
    await world.waitForCondition("Ready", "True");
    expect(resourcesOf(await world.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect(await uids()).toEqual(before);
  });

  it("deletes an empty ReplicaSet that would take the place of the current one", async () => {
    const end = await world.startController({ resizeStrategy: "Rollout" });
    await createPipe({ name: "pipe-a", cores: 2 });
    await world.waitForCondition("Ready", "True");
    await world.askFor(1);
    await world.waitForCondition("Ready", "True");
    await end();
    await runningPods(1);
    const before = await uids();
    const empty = (await replicaSets()).find(({ spec }) => spec.replicas === 0);
    expect(empty).toBeDefined();
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await world.askFor(2);
    await world.waitForCondition("Ready", "True");
    expect(await uids()).toEqual(before);
    expect((await replicaSets()).map(({ metadata }) => metadata.uid)).not.toContain(empty?.metadata.uid);
  });

  it.each([
    "watch apps/replicasets",
    "patch pods/resize",
    "patch apps/replicasets",
    "delete apps/replicasets",
  ])("replaces the pods within seconds without permission to %s", async (right) => {
    const end = await world.startController({ resizeStrategy: "Rollout" });
    await createPipe({ name: "pipe-a", cores: 2 });
    await world.waitForCondition("Ready", "True");
    // The ReplicaSet of the first size is empty, and would take the place of the current one.
    await world.askFor(1);
    await world.waitForCondition("Ready", "True");
    await end();
    await runningPods(1);
    const [before] = await pods();
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    await rights.without(right, async (refusal) => {
      const startedAt = performance.now();
      await world.askFor(2);
      expect(await fallbackMessage()).toContain(refusal);
      expect(performance.now() - startedAt).toBeLessThan(8000);
      await world.waitForCondition("Ready", "True");
    });
    const pipe = await world.pipe("pipe-a");
    expect(resourcesOf(pipe)).toBe("2 8Gi 8Gi");
    expect(pipe.spec.paused).toBeUndefined();
    if (before) expect(await uids()).not.toContain(before.metadata.uid);
  });
});
