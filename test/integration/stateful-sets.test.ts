import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION } from "../../src/controller/names.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, EVENTS, STATEFUL_SETS } from "../../src/kube/paths.ts";
import type { StatefulSet } from "../../src/kube/workloads.ts";
import { Rights } from "../chart/rights.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";
import { cpuOf, Loaders, templateCpu } from "./stateful-loader.ts";

const SLOW = { podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } };
/** So long that the test sees a new pod before it is ready, also on a busy machine. */
const SLOWER = { podAnnotations: { [START_AFTER_ANNOTATION]: "4s" } };

let environment: TestEnvironment;
let loaders: Loaders;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  loaders = new Loaders(environment);
});
afterEach(() => environment.end());

async function message(): Promise<string> {
  return conditionOf(await environment.scaling(), "Ready")?.message ?? "";
}

/** Starts a controller, and waits until all pipes are ready and all pods of StatefulSets are available. */
async function start(...settings: Parameters<TestEnvironment["startController"]>) {
  const stop = await environment.startController(...settings);
  await environment.waitForCondition("Ready", "True");
  const path = collectionPath(STATEFUL_SETS, environment.pipes);
  await waitFor(
    async () => {
      const { items } = await environment.client.json<{ readonly items: readonly StatefulSet[] }>({ path });
      return items.every(({ spec, status }) => status?.availableReplicas === spec.replicas);
    },
    { what: "all pods to be available" },
  );
  return stop;
}

describe("a StatefulSet of three pods", () => {
  it("gets a larger and a smaller size by a rollout, and nothing else of it changes", async () => {
    await loaders.create();
    await start();
    const before = await loaders.read();
    await environment.requestSize(4);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "1/1",
      resizedBy: { "statefulset/loader": "Rollout" },
    });
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
    await environment.requestSize(1);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["1", "1", "1"]);
    const after = await loaders.read();
    expect(after.spec).toEqual(before.spec);
    expect(after.status?.currentRevision).toBe(after.status?.updateRevision);
    expect(environment.errors).toEqual([]);
  });

  it("goes on with the next controller if one ends in the middle", async () => {
    await loaders.create({ ...SLOWER });
    const stop = await start();
    await environment.requestSize(4);
    await waitFor(async () => (await loaders.sizes()).includes("4"), {
      what: "the first pod of the new size",
    });
    await stop();
    expect(new Set(await loaders.sizes()).size).toBe(2);
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });

  it("gets its size without replicas, and has it when it is scaled up", async () => {
    await loaders.create({ replicas: 0 });
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    expect(templateCpu(await loaders.read())).toBe("4");
    await loaders.patch({ replicas: 2 });
    await waitFor(async () => (await environment.scaling()).status?.replicas === 2, { what: "two replicas" });
    await environment.waitForCondition("Ready", "True");
    await waitFor(async () => (await loaders.sizes()).join() === "4,4", { what: "two pods of the new size" });
  });

  it("has an Event that says why it is left alone if its service is unknown", async () => {
    await loaders.create({ name: "unknown", serviceId: "unknown", replicas: 0 });
    await environment.startController();
    interface Report extends KubeObject {
      readonly reason: string;
      readonly regarding: { readonly kind: string; readonly name: string };
    }
    const path = collectionPath(EVENTS, environment.pipes);
    const event = await waitFor(
      async () => {
        const { items } = await environment.client.json<{ readonly items: readonly Report[] }>({ path });
        return items.find(({ reason }) => reason === "UnknownService");
      },
      { what: "the Event" },
    );
    expect(event.regarding).toMatchObject({ kind: "StatefulSet", name: "unknown" });
  });
});

describe("a service with a Deployment and a StatefulSet", () => {
  const waits = (name: string, message: string) =>
    waitFor(
      async () =>
        (await environment.scaling()).status?.pipes?.pending?.some(
          (each) => each.name === name && each.message === message,
        ),
      { what: message },
    );

  it.each([
    ["StatefulSet", "a", "z", "z", "waiting for statefulset/a to prove the size"],
    ["Deployment", "z", "a", "statefulset/z", "waiting for a to prove the size"],
  ])("has a %s as its canary if its name is first", async (_, statefulSet, deployment, waiting, text) => {
    await loaders.create({ name: statefulSet, replicas: 2, ...SLOWER });
    await environment.createPipe({ name: deployment, cores: 1, ...SLOWER });
    await start();
    await environment.requestSize(4);
    await waits(waiting, text);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes?.summary).toBe("2/2");
    expect([await loaders.sizes(statefulSet), await loaders.sizes(deployment)]).toEqual([["4", "4"], ["4"]]);
  });

  it("resizes both if they have the same name", async () => {
    await loaders.create({ name: "same", replicas: 1 });
    await environment.createPipe({ name: "same", cores: 1 });
    await start();
    await environment.requestSize(2);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "2/2",
      resizedBy: { same: "Rollout", "statefulset/same": "Rollout" },
    });
    expect(await loaders.sizes("same")).toEqual(["2", "2"]);
  });
});

describe("the update strategy of a StatefulSet", () => {
  it("keeps the pods below its partition, until the owner lowers it", async () => {
    const rollingUpdate = { partition: 2 };
    await loaders.create({ updateStrategy: { type: "RollingUpdate", rollingUpdate } });
    await start();
    const [first, second] = await loaders.uids();
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(conditionOf(scaling, "Stalled")).toBeUndefined();
    expect(scaling.status?.pipes?.pending).toMatchObject([
      {
        name: "statefulset/loader",
        state: "Paused",
        message: expect.stringContaining("2 of its 3 pods are below the partition 2"),
      },
    ]);
    expect(await loaders.sizes()).toEqual(["1", "1", "4"]);
    expect((await loaders.uids()).slice(0, 2)).toEqual([first, second]);
    expect((await loaders.read()).spec.updateStrategy?.rollingUpdate?.partition).toBe(2);
    await loaders.patch({ updateStrategy: { rollingUpdate: { partition: 0 } } });
    // The last pod may be missing for a moment, because the owner replaces it.
    await loaders.ready();
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });

  it("is never overruled if it is OnDelete", async () => {
    await loaders.create({ updateStrategy: { type: "OnDelete" } });
    await start();
    const before = await loaders.uids();
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(await message()).toMatch(/its update strategy is OnDelete, so only its owner replaces its pods/);
    expect([templateCpu(await loaders.read()), await loaders.uids()]).toEqual(["1", before]);
    await loaders.patch({ updateStrategy: { type: "RollingUpdate" } });
    // The last pod may be missing for a moment, because the owner replaces it.
    await loaders.ready();
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });
});

describe("a StatefulSet whose pod of the new size does not become ready", () => {
  /** The last pod crashes as soon as it has four cores. Returns its UID. */
  async function crashLastPod(): Promise<string> {
    const { metadata } = await waitFor(async () => (await loaders.pods()).find((pod) => cpuOf(pod) === "4"), {
      what: "the first pod of the new size",
    });
    await loaders.patchPod(metadata.name, { labels: { [NEVER_READY_LABEL]: "true" } });
    return metadata.uid;
  }

  it.each(["OrderedReady", "Parallel"] as const)(
    "is rolled back with the policy %s, and only that pod is replaced",
    async (podManagementPolicy) => {
      await loaders.create({ podManagementPolicy, ...SLOWER });
      await start({ rolloutTimeoutMs: 8000 });
      const before = await loaders.uids();
      await environment.requestSize(4);
      const stuck = await crashLastPod();
      await environment.waitForCondition("Stalled", "True", "RolloutTimeout");
      await waitFor(
        async () => (await loaders.sizes()).join() === "1,1,1" && !(await loaders.uids()).includes(stuck),
        {
          what: "the stuck pod to be replaced by one of the old size",
        },
      );
      expect((await loaders.uids()).slice(0, 2)).toEqual(before.slice(0, 2));
      const { status, metadata } = await waitFor(
        async () => {
          const current = await loaders.read();
          return current.status?.availableReplicas === 3 ? current : undefined;
        },
        { what: "all pods to be available" },
      );
      expect(status?.updatedReplicas).toBe(3);
      expect(JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "{}")).toMatchObject({
        isRollback: true,
      });
    },
  );

  it("gets a size that is requested meanwhile, although Kubernetes would wait for the pod", async () => {
    await loaders.create({ ...SLOWER });
    await start();
    await environment.requestSize(4);
    const stuck = await crashLastPod();
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["2", "2", "2"]);
    expect(await loaders.uids()).not.toContain(stuck);
  });

  it("is cleaned up by the next controller if the first one ended after the rollback", async () => {
    await loaders.create({ ...SLOWER });
    const stop = await start({ rolloutTimeoutMs: 8000 });
    const rights = await Rights.of("controller", environment);
    try {
      await rights.without("delete pods", async () => {
        await environment.requestSize(4);
        const stuck = await crashLastPod();
        await expect
          .poll(message, { timeout: 60_000 })
          .toContain("the size that failed, because it could not be deleted");
        await stop();
        expect(await loaders.uids()).toContain(stuck);
      });
    } finally {
      await rights.close();
    }
    await environment.startController({ rolloutTimeoutMs: 8000 });
    await waitFor(async () => (await loaders.sizes()).join() === "1,1,1", {
      what: "the old size of all pods",
    });
  });
});

describe("a StatefulSet whose first pod crashes with a size that worked before", () => {
  it.each(["OrderedReady", "Parallel"] as const)(
    "gets another size with the policy %s, although Kubernetes may wait for the pod",
    async (podManagementPolicy) => {
      await loaders.create({ podManagementPolicy, ...SLOW });
      await start({}, { timeouts: { stuckPodMs: 1000 } });
      await environment.requestSize(2);
      await loaders.ready();
      await loaders.patchPod("loader-0", { labels: { [NEVER_READY_LABEL]: "true" } });
      await waitFor(async () => (await loaders.read()).status?.availableReplicas === 2, {
        what: "the crash of the first pod",
      });
      await environment.requestSize(4);
      await loaders.ready();
      expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
    },
  );
});
