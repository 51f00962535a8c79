import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { createNodes, nodesReady } from "@pipe-scaling/local-cluster/ready";
import { STOP_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import type { FailureReason } from "../../src/crd/reasons.ts";
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
    // A test must not see the nodes of the one before it.
    await environment.startController({}, { timeouts: { nodesMs: 200 } });
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
    "leaves the pods of a pipe with %s alone until a retry is requested, which is rolled back within seconds",
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
      await addNode();
      await retry();
      await invariants.settled(24, { quietMs: 0 });
    });
    await removeNode();
  });

  it("leaves the pods of a pipe that is resized in place alone until a node is large enough, and then replaces them", async () => {
    await withPipe({ cores: 1, replicas: 2 }, async () => {
      await environment.patchScaling({ strategy: "InPlaceOrRollout" });
      await expectNoTouch();
      await addNode();
      await retry();
      await invariants.settled(24, { quietMs: 0 });
      const { status } = await environment.scaling();
      expect(status?.pipes?.fallbacks).toMatchObject([{ pipe: "pipe-a", reason: "Infeasible" }]);
    });
    await environment.patchScaling({ strategy: null });
    await removeNode();
  });

  async function addNode(): Promise<void> {
    await createNodes(cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "added");
    await nodesReady(cluster, 2, { untainted: true, timeoutMs: 30_000 });
  }

  async function removeNode(): Promise<void> {
    await environment.client.json({ method: "DELETE", path: `${collectionPath(NODES, undefined)}/added-0` });
  }

  it("is rolled back at the deadline of the Deployment, and not before, if the controller does not see the pods", async () => {
    // Longer than the time after which an unschedulable pod that it sees has no chance.
    const deadlineS = 25;
    const options = { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 }, podLabels: {} };
    await withPipe({ cores: 1, replicas: 2, ...options, progressDeadlineSeconds: deadlineS }, async () => {
      await expectNoTouch();
      const startedAt = Date.now();
      await expectRollback(
        "ProgressDeadlineExceeded",
        /^[^:]+: ReplicaSet "pipe-a-[^"]+" has timed out progressing\. 0 of 1 pipes run/,
      );
      // Times of the Deployment controller have whole seconds.
      expect(Date.now() - startedAt).toBeGreaterThan((deadlineS - 1) * 1000);
    });
  });

  /** Creates a running pipe, which is deleted after the test. */
  async function withPipe(
    options: Omit<Parameters<TestEnvironment["createPipe"]>[0], "name">,
    test: () => Promise<void>,
  ): Promise<void> {
    await environment.createPipe({ name: "pipe-a", podLabels: podLabels(), ...options });
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
      await waitFor(async () => (await podUids()).length === 0, { what: "no pod" });
    }
  }

  /** The labels by which the controller sees pods. */
  function podLabels(): Readonly<Record<string, string>> {
    return { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
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
    const before = { pods: await podUids(), spec: (await environment.pipe("pipe-a")).spec };
    invariants.accept(24);
    await environment.requestSize(24);
    const stalled = await environment.waitForCondition("Stalled", "True", "NoNodeLargeEnough");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      "pipe-a could not be resized to 24 cpu / 96 Gi: its pod would request 24 cpu / 96 Gi, and the one node that it may run on has 12 cpu / 1024 Gi allocatable",
    );
    expect(stalled.status?.failures).toMatchObject([{ attempts: 1, nextRetryAt: expect.any(String) }]);
    await invariants.quiet(500);
    const { spec, status } = await environment.pipe("pipe-a");
    expect({ pods: await podUids(), spec }).toEqual(before);
    expect(status?.availableReplicas).toBe(before.pods.length);
  }

  async function expectRollback(
    reason: FailureReason = "Unschedulable",
    message = /: 0\/1 nodes are available: 1 Insufficient cpu\./,
  ): Promise<void> {
    const before = (await environment.pipe("pipe-a")).metadata.generation;
    await retry();
    const stalled = await environment.waitForCondition("Stalled", "True", reason);
    const told = conditionOf(stalled, "Stalled")?.message ?? "";
    expect(told).toMatch(/^pipe-a could not be resized to 24 cpu \/ 96 Gi: /);
    expect(told).toMatch(message);
    const isBack = async () => {
      const { status } = await environment.scaling();
      const { metadata, status: deployed } = await environment.pipe("pipe-a");
      const isSeen = (deployed?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
      const { replicas, updatedReplicas, availableReplicas } = deployed ?? {};
      const hasComeUp = [replicas, updatedReplicas, availableReplicas].every((count) => count === 2);
      return isSeen && hasComeUp && metadata.generation !== before ? status : undefined;
    };
    const { failures } = await waitFor(isBack, { what: "the pipe to run again" });
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    expect(failures).toMatchObject([{ pipe: "pipe-a", reason, attempts: 1 }]);
    expect(failures?.[0]?.nextRetryAt).toBeUndefined();
    await invariants.quiet(500);
  }

  it("waits for room, and is not rolled back, while the old pod of a pipe with maxSurge 0 takes 15 s to end", async () => {
    const podAnnotations = { [STOP_AFTER_ANNOTATION]: "15s" };
    const rollingUpdate = { maxSurge: 0, maxUnavailable: 1 };
    await withPipe({ cores: 1, rollingUpdate, podAnnotations, graceSeconds: 60 }, async () => {
      for (const cores of [8, 10]) {
        invariants.accept(cores);
        await environment.requestSize(cores);
        if (cores === 10) await expectToldAboutNodes("pipe-a");
        await invariants.settled(cores, { quietMs: 0 });
      }
    });
    expect(
      environment.log.filter(({ msg, size }) => msg === "resize" && size === "10000m/40Gi"),
    ).toHaveLength(1);
  });

  /** Expects that the pipe is still rolling out, and that its pod fits no node at present. */
  async function expectToldAboutNodes(name: string): Promise<void> {
    const ready = await waitFor(
      async () => {
        const condition = conditionOf(await environment.scaling(), "Ready");
        return condition?.message.includes("Insufficient cpu") ? condition : undefined;
      },
      { what: "a message about the missing node" },
    );
    expect(ready).toMatchObject({ status: "False", reason: "Progressing" });
    expect(ready.message).toContain(`${name} fits no node at present: 0/1 nodes are available`);
  }

  it("keeps the old pods of other pipes running until a node is large enough", async () => {
    await environment.createPipe({ name: "pipe-b", cores: 1, podLabels: podLabels() });
    await waitFor(async () => (await environment.pipe("pipe-b")).status?.availableReplicas === 1, {
      what: "pipe-b",
    });
    invariants.accept(16);
    await environment.requestSize(16);
    await expectToldAboutNodes("pipe-b");
    expect((await environment.pipe("pipe-b")).status?.availableReplicas).toBe(1);
    await createNodes(cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "large");
    await invariants.settled(16, { quietMs: 500 });
    await invariants.end();
  });
});
