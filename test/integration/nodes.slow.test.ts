import { STOP_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SmallNode } from "./small-node.ts";

describe("a size that fits no node", () => {
  let nodes: SmallNode;
  beforeAll(async () => {
    nodes = await SmallNode.start();
  });
  afterAll(() => nodes?.end());

  it("leaves the pods of a pipe with maxUnavailable 100 % alone until a retry is requested, which is rolled back within seconds", () =>
    nodes.withPipe(
      { cores: 1, replicas: 2, rollingUpdate: { maxSurge: "25%", maxUnavailable: "100%" } },
      async () => {
        await nodes.expectNoTouch();
        await nodes.expectRollback();
      },
    ));

  it("leaves the pods of a Recreate pipe alone until a node is large enough", async () => {
    await nodes.withPipe({ cores: 1, replicas: 2, strategy: "Recreate" }, async () => {
      await nodes.expectNoTouch();
      await nodes.expectRollback();
      await nodes.addNode();
      await nodes.retry();
      await nodes.invariants.settled(24, { quietMs: 0 });
    });
    await nodes.removeNode();
  });

  it("is rolled back at the deadline of the Deployment, and not before, if the controller does not see the pods", async () => {
    // Longer than the time after which an unschedulable pod that it sees has no chance.
    const deadlineS = 25;
    const options = { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 }, podLabels: {} };
    await nodes.withPipe(
      { cores: 1, replicas: 2, ...options, progressDeadlineSeconds: deadlineS },
      async () => {
        await nodes.expectNoTouch();
        const startedAt = Date.now();
        await nodes.expectRollback(
          "ProgressDeadlineExceeded",
          /^[^:]+: ReplicaSet "pipe-a-[^"]+" has timed out progressing\. 0 of 1 pipes run/,
        );
        // Times of the Deployment controller have whole seconds.
        expect(Date.now() - startedAt).toBeGreaterThan((deadlineS - 1) * 1000);
      },
    );
  });

  it("waits for room, and is not rolled back, while the old pod of a pipe with maxSurge 0 takes 15 s to end", async () => {
    const podAnnotations = { [STOP_AFTER_ANNOTATION]: "15s" };
    const rollingUpdate = { maxSurge: 0, maxUnavailable: 1 };
    await nodes.withPipe({ cores: 1, rollingUpdate, podAnnotations, graceSeconds: 60 }, async () => {
      for (const cores of [8, 10]) {
        nodes.invariants.accept(cores);
        await nodes.environment.requestSize(cores);
        if (cores === 10) await nodes.expectToldAboutNodes("pipe-a");
        await nodes.invariants.settled(cores, { quietMs: 0 });
      }
    });
    expect(
      nodes.environment.log.filter(({ msg, size }) => msg === "resize" && size === "10000m/40Gi"),
    ).toHaveLength(1);
    await nodes.invariants.end();
  });
});
