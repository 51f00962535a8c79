import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { createNodes, nodesReady } from "@pipe-scaling/local-cluster/ready";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RETRY_ANNOTATION } from "../../src/controller/names.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, NODES, objectPath, PODS } from "../../src/kube/paths.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { Invariants } from "./faults/invariants.ts";

describe("a size that fits no node", () => {
  let cluster: Cluster;
  let environment: TestEnvironment;
  let invariants: Invariants;

  beforeAll(async () => {
    // A cluster of its own, because every node counts, and that of the shared cluster is large enough for all sizes.
    cluster = await startCluster({ nodeSize: { cpus: 12 } });
    environment = await TestEnvironment.create("basic", cluster);
    invariants = await Invariants.observe(environment);
    invariants.accept(1);
    await environment.startController();
  });
  afterAll(async () => {
    await environment?.end();
    await invariants?.close();
    await cluster?.stop();
  });

  it.each([
    ["maxSurge 0", { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } }],
    ["maxUnavailable 100 %", { rollingUpdate: { maxSurge: "25%", maxUnavailable: "100%" } }],
  ] as const)(
    "leaves the pods of a pipe with %s alone until a retry is requested, which is rolled back immediately",
    (_strategy, strategy) =>
      withPipe({ cores: 1, replicas: 2, ...strategy }, async () => {
        await expectNoTouch();
        await expectRollback();
      }),
  );

  it("leaves the pods of a Recreate pipe alone until a node is large enough", async () => {
    await withPipe({ cores: 1, replicas: 2, strategy: "Recreate" }, async () => {
      await expectNoTouch();
      await expectRollback();
      await createNodes(cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "added");
      await nodesReady(cluster, 2, { untainted: true, timeoutMs: 30_000 });
      await retry();
      await invariants.settled(24, { quietMs: 0 });
    });
    await environment.client.json({ method: "DELETE", path: `${collectionPath(NODES, undefined)}/added-0` });
  });

  /** Creates a running pipe, which is deleted after the test. */
  async function withPipe(
    options: Omit<Parameters<TestEnvironment["createPipe"]>[0], "name">,
    test: () => Promise<void>,
  ): Promise<void> {
    await environment.createPipe({ name: "pipe-a", ...options });
    try {
      await invariants.settled(1, { quietMs: 0 });
      await test();
    } finally {
      await environment.client.json({
        method: "DELETE",
        path: objectPath(DEPLOYMENTS, environment.pipes, "pipe-a"),
      });
      invariants.accept(1);
      await environment.requestSize(1);
      await waitFor(async () => (await environment.scaling()).status?.pipes?.total === 0, {
        what: "no pipe",
      });
    }
  }

  async function podUids(): Promise<readonly string[]> {
    const path = collectionPath(PODS, environment.pipes);
    const query = { labelSelector: "app=pipe-a" };
    const { items } = await environment.client.json<{ readonly items: readonly KubeObject[] }>({
      path,
      query,
    });
    return items.map(({ metadata }) => metadata.uid).toSorted();
  }

  async function retry(): Promise<void> {
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  }

  async function expectNoTouch(): Promise<void> {
    const before = {
      pods: await podUids(),
      generation: (await environment.pipe("pipe-a")).metadata.generation,
    };
    invariants.accept(24);
    await environment.requestSize(24);
    const stalled = await environment.waitForCondition("Stalled", "True", "NoNodeLargeEnough");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      "pipe-a could not be resized to 24 cpu / 96 Gi: its pod would request 24 cpu / 96 Gi, and the one node that it may run on has 12 cpu / 1024 Gi allocatable",
    );
    expect(stalled.status?.failures).toMatchObject([{ attempts: 1, nextRetryAt: expect.any(String) }]);
    await invariants.quiet(500);
    const { metadata, status } = await environment.pipe("pipe-a");
    expect({ pods: await podUids(), generation: metadata.generation }).toEqual(before);
    expect(status?.availableReplicas).toBe(before.pods.length);
  }

  async function expectRollback(): Promise<void> {
    const { status: before } = await environment.scaling();
    await retry();
    const stalled = await environment.waitForCondition("Stalled", "True", "Unschedulable");
    expect(conditionOf(stalled, "Stalled")?.message).toMatch(
      /^pipe-a could not be resized to 24 cpu \/ 96 Gi: 0\/1 nodes are available: 1 Insufficient cpu\./,
    );
    const isBack = async () => {
      const { status } = await environment.scaling();
      const rollout = status?.pipes?.cameUp?.["pipe-a"];
      // While the pipe has another size, the entry names the last good size and no rollout (`-`).
      const hasComeUp = rollout !== before?.pipes?.cameUp?.["pipe-a"] && !rollout?.includes("/-/");
      const { availableReplicas } = (await environment.pipe("pipe-a")).status ?? {};
      return hasComeUp && availableReplicas === 2 ? status : undefined;
    };
    const { failures } = await waitFor(isBack, { what: "the pipe to run again" });
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    expect(failures).toMatchObject([{ pipe: "pipe-a", reason: "Unschedulable", attempts: 2 }]);
    expect(failures?.[0]?.nextRetryAt).toBeUndefined();
    await invariants.quiet(500);
  }

  it("keeps the old pods of other pipes running until a node is large enough", async () => {
    await environment.createPipe({ name: "pipe-b", cores: 1 });
    await waitFor(async () => (await environment.pipe("pipe-b")).status?.availableReplicas === 1, {
      what: "pipe-b",
    });
    invariants.accept(16);
    await environment.requestSize(16);
    const waiting = await waitFor(
      async () => {
        const ready = conditionOf(await environment.scaling(), "Ready");
        return ready?.message.includes("Insufficient cpu") ? ready : undefined;
      },
      { what: "a message about the missing node" },
    );
    expect(waiting).toMatchObject({ status: "False", reason: "Progressing" });
    expect(waiting.message).toContain("pipe-b fits no node at present: 0/1 nodes are available");
    expect((await environment.pipe("pipe-b")).status?.availableReplicas).toBe(1);
    await createNodes(cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "large");
    await invariants.settled(16, { quietMs: 500 });
    await invariants.end();
  });
});
