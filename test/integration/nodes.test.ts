import { createNodes } from "@pipe-scaling/local-cluster/ready";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SmallNode } from "./small-node.ts";

describe("a size that fits no node", () => {
  let nodes: SmallNode;
  beforeAll(async () => {
    nodes = await SmallNode.start();
  });
  afterAll(() => nodes?.end());

  it("leaves the pods of a pipe with maxSurge 0 alone until a retry is requested, which is rolled back within seconds", () =>
    nodes.withPipe({ cores: 1, replicas: 2, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } }, async () => {
      await nodes.expectNoTouch();
      await nodes.expectRollback();
    }));

  it("leaves the pods of a pipe that is resized in place alone until a node is large enough, and then replaces them", async () => {
    await nodes.withPipe({ cores: 1, replicas: 2 }, async () => {
      await nodes.environment.patchScaling({ strategy: "InPlaceOrRollout" });
      await nodes.expectNoTouch();
      await nodes.addNode();
      await nodes.retry();
      await nodes.invariants.settled(24, { quietMs: 0 });
      const { status } = await nodes.environment.scaling();
      expect(status?.pipes?.fallbacks).toMatchObject([{ pipe: "pipe-a", reason: "Infeasible" }]);
    });
    await nodes.environment.patchScaling({ strategy: null });
    await nodes.removeNode();
  });

  it("keeps the old pods of other pipes running until a node is large enough", async () => {
    await nodes.environment.createPipe({ name: "pipe-b", cores: 1, podLabels: nodes.podLabels() });
    await waitFor(async () => (await nodes.environment.pipe("pipe-b")).status?.availableReplicas === 1, {
      what: "pipe-b",
    });
    nodes.invariants.accept(16);
    await nodes.environment.requestSize(16);
    await nodes.expectToldAboutNodes("pipe-b");
    expect((await nodes.environment.pipe("pipe-b")).status?.availableReplicas).toBe(1);
    await createNodes(nodes.cluster, 1, { cpus: 64, memoryGib: 1024, pods: 100 }, "large");
    await nodes.invariants.settled(16, { quietMs: 500 });
    await nodes.invariants.end();
  });
});
