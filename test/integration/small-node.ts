import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { createNodes, nodesReady } from "@pipe-scaling/local-cluster/ready";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import type { FailureReason } from "../../src/crd/reasons.ts";
import { collectionPath, DEPLOYMENTS, NODES, objectPath } from "../../src/kube/paths.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { Invariants } from "./faults/invariants.ts";
import { podUids } from "./pods.ts";

/** A service in a cluster whose one node has 12 cores, and what happens to a size of 24. */
export class SmallNode {
  readonly environment: TestEnvironment;
  readonly invariants: Invariants;
  readonly cluster: Cluster;

  private constructor(cluster: Cluster, environment: TestEnvironment, invariants: Invariants) {
    this.cluster = cluster;
    this.environment = environment;
    this.invariants = invariants;
  }

  /** A cluster of its own, because every node counts, and that of the shared cluster is large enough for all sizes. */
  static async start(): Promise<SmallNode> {
    const cluster = await startCluster({ nodeSize: { cpus: 12 } });
    try {
      const environment = await TestEnvironment.create("basic", cluster);
      const invariants = await Invariants.observe(environment);
      invariants.accept(1);
      // A test must not see the nodes of the one before it.
      await environment.startController({}, { timeouts: { nodesMs: 200 } });
      return new SmallNode(cluster, environment, invariants);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  async end(): Promise<void> {
    await this.environment.end();
    await this.invariants.close();
    await this.cluster.stop();
  }

  async addNode(): Promise<void> {
    await createNodes(this.cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "added");
    await nodesReady(this.cluster, 2, { untainted: true, timeoutMs: 30_000 });
  }

  async removeNode(): Promise<void> {
    await this.environment.client.json({
      method: "DELETE",
      path: `${collectionPath(NODES, undefined)}/added-0`,
    });
  }

  /** Creates a running pipe, which is deleted after the test. */
  async withPipe(
    options: Omit<Parameters<TestEnvironment["createPipe"]>[0], "name">,
    test: () => Promise<void>,
  ): Promise<void> {
    await this.environment.createPipe({ name: "pipe-a", podLabels: this.podLabels(), ...options });
    try {
      await this.invariants.settled(1, { quietMs: 0 });
      await test();
    } finally {
      await this.environment.client.json({
        method: "DELETE",
        path: objectPath(DEPLOYMENTS, this.environment.pipes, "pipe-a"),
      });
      this.invariants.accept(1);
      await this.environment.requestSize(1);
      await waitFor(async () => (await this.environment.scaling()).status?.pipes?.total === 0, {
        what: "no pipe",
      });
      await waitFor(async () => (await podUids(this.environment)).length === 0, { what: "no pod" });
    }
  }

  /** The labels by which the controller sees pods. */
  podLabels(): Readonly<Record<string, string>> {
    return { [SERVICE_LABEL]: this.environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  }

  async retry(): Promise<void> {
    await this.environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  }

  async expectNoTouch(): Promise<void> {
    const before = {
      pods: await podUids(this.environment),
      spec: (await this.environment.pipe("pipe-a")).spec,
    };
    this.invariants.accept(24);
    await this.environment.requestSize(24);
    const stalled = await this.environment.waitForCondition("Stalled", "True", "NoNodeLargeEnough");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      "pipe-a could not be resized to 24 cpu / 96 Gi: its pod would request 24 cpu / 96 Gi, and the one node that it may run on has 12 cpu / 1024 Gi allocatable",
    );
    expect(stalled.status?.failures).toMatchObject([{ attempts: 1, nextRetryAt: expect.any(String) }]);
    await this.invariants.quiet(500);
    const { spec, status } = await this.environment.pipe("pipe-a");
    expect({ pods: await podUids(this.environment), spec }).toEqual(before);
    expect(status?.availableReplicas).toBe(before.pods.length);
  }

  async expectRollback(
    reason: FailureReason = "Unschedulable",
    message = /: 0\/1 nodes are available: 1 Insufficient cpu\./,
  ): Promise<void> {
    const before = (await this.environment.pipe("pipe-a")).metadata.generation;
    await this.retry();
    const stalled = await this.environment.waitForCondition("Stalled", "True", reason);
    const told = conditionOf(stalled, "Stalled")?.message ?? "";
    expect(told).toMatch(/^pipe-a could not be resized to 24 cpu \/ 96 Gi: /);
    expect(told).toMatch(message);
    const isBack = async () => {
      const { status } = await this.environment.scaling();
      const { metadata, status: deployed } = await this.environment.pipe("pipe-a");
      const isSeen = (deployed?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
      const { replicas, updatedReplicas, availableReplicas } = deployed ?? {};
      const hasComeUp = [replicas, updatedReplicas, availableReplicas].every((count) => count === 2);
      return isSeen && hasComeUp && metadata.generation !== before ? status : undefined;
    };
    const { failures } = await waitFor(isBack, { what: "the pipe to run again" });
    expect(resourcesOf(await this.environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    expect(failures).toMatchObject([{ pipe: "pipe-a", reason, attempts: 1 }]);
    expect(failures?.[0]?.nextRetryAt).toBeUndefined();
    await this.invariants.quiet(500);
  }

  /** Expects that the pipe is still rolling out, and that its pod fits no node at present. */
  async expectToldAboutNodes(name: string): Promise<void> {
    const ready = await waitFor(
      async () => {
        const condition = conditionOf(await this.environment.scaling(), "Ready");
        return condition?.message.includes("Insufficient cpu") ? condition : undefined;
      },
      { what: "a message about the missing node" },
    );
    expect(ready).toMatchObject({ status: "False", reason: "Progressing" });
    expect(ready.message).toContain(`${name} fits no node at present: 0/1 nodes are available`);
  }
}
