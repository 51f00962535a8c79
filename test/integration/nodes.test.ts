import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { createNodes } from "@pipe-scaling/local-cluster/ready";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import { Invariants } from "./faults/invariants.ts";
import { conditionOf, resourcesOf, World } from "./world.ts";

describe("a size that fits no node", () => {
  let cluster: Cluster;
  let world: World;
  let invariants: Invariants;

  beforeAll(async () => {
    cluster = await startCluster({ nodeSize: { cpus: 12 } });
    world = await World.create("basic", cluster);
    invariants = await Invariants.observe(world);
    invariants.accept(1);
    await world.startController();
  });
  afterAll(async () => {
    await world?.end();
    await invariants?.close();
    await cluster?.stop();
  });

  it.each([
    ["Recreate", { strategy: "Recreate" }],
    ["maxSurge 0", { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } }],
    ["maxUnavailable 100 %", { rollingUpdate: { maxSurge: "25%", maxUnavailable: "100%" } }],
  ] as const)(
    "is rolled back at once in a pipe with %s, which has lost a running pod, and not tried again by itself",
    async (_strategy, strategy) => {
      await world.createPipe({ name: "pipe-a", cores: 1, replicas: 2, ...strategy });
      try {
        await invariants.settled(1, { quietMs: 0 });
        await expectRollback();
      } finally {
        await world.client.json({
          method: "DELETE",
          path: objectPath(DEPLOYMENTS, world.pipes, "pipe-a"),
        });
        invariants.accept(1);
        await world.askFor(1);
        await waitFor(async () => (await world.scaling()).status?.pipes?.total === 0, { what: "no pipe" });
      }
    },
  );

  async function expectRollback(): Promise<void> {
    const { status: before } = await world.scaling();
    invariants.accept(24);
    await world.askFor(24);
    const stalled = await world.waitForCondition("Stalled", "True", "Unschedulable");
    expect(conditionOf(stalled, "Stalled")?.message).toMatch(
      /^pipe-a could not be given 24 cpu \/ 96 Gi: 0\/1 nodes are available: 1 Insufficient cpu\./,
    );
    const isBack = async () => {
      const { status } = await world.scaling();
      const hasComeUp = status?.pipes?.cameUp?.["pipe-a"] !== before?.pipes?.cameUp?.["pipe-a"];
      const { availableReplicas } = (await world.pipe("pipe-a")).status ?? {};
      return hasComeUp && availableReplicas === 2 ? status : undefined;
    };
    const { failures } = await waitFor(isBack, { what: "the pipe to run again" });
    expect(resourcesOf(await world.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    expect(failures).toMatchObject([{ pipe: "pipe-a", reason: "Unschedulable", attempts: 1 }]);
    expect(failures?.[0]?.nextRetryAt).toBeUndefined();
    await invariants.quiet(500);
  }

  it("is waited for with any other, whose old pods go on, until there is a node that it fits", async () => {
    await world.createPipe({ name: "pipe-b", cores: 1 });
    await waitFor(async () => (await world.pipe("pipe-b")).status?.availableReplicas === 1, {
      what: "pipe-b",
    });
    invariants.accept(16);
    await world.askFor(16);
    const waiting = await waitFor(
      async () => {
        const ready = conditionOf(await world.scaling(), "Ready");
        return ready?.message.includes("Insufficient cpu") ? ready : undefined;
      },
      { what: "a word on the node that is missing" },
    );
    expect(waiting).toMatchObject({ status: "False", reason: "Progressing" });
    expect(waiting.message).toContain("pipe-b fits no node at present: 0/1 nodes are available");
    expect((await world.pipe("pipe-b")).status?.availableReplicas).toBe(1);
    await createNodes(cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "large");
    await invariants.settled(16, { quietMs: 500 });
    await invariants.end();
  });
});
