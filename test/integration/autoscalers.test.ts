import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HORIZONTAL_AUTOSCALERS, objectPath, VERTICAL_AUTOSCALERS } from "../../src/kube/paths.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../support/test-environment.ts";

const target = { apiVersion: "apps/v1", kind: "Deployment", name: "pipe-a" };

describe("a pipe with an autoscaler", () => {
  let environment: TestEnvironment;

  beforeAll(async () => {
    environment = await TestEnvironment.create();
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
  });
  afterAll(() => environment?.end());

  it("is left alone while a VerticalPodAutoscaler targets it, which the status names", async () => {
    const { metadata } = await environment.create(VERTICAL_AUTOSCALERS, environment.pipes, {
      apiVersion: VERTICAL_AUTOSCALERS.apiVersion,
      kind: "VerticalPodAutoscaler",
      metadata: { name: "recommender" },
      spec: { targetRef: target },
    });
    const stalled = await environment.waitForCondition("Stalled", "True", "FieldConflict");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      'the VerticalPodAutoscaler "recommender" also sets',
    );
    await environment.requestSize(4);
    await environment.waitForCondition("Stalled", "True", "FieldConflict");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    await environment.client.json({
      method: "DELETE",
      path: objectPath(VERTICAL_AUTOSCALERS, environment.pipes, metadata.name),
    });
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
  });

  it("is resized while the policies of a VerticalPodAutoscaler leave its container alone", async () => {
    const vertical = (containerPolicies: readonly object[]) => ({
      apiVersion: VERTICAL_AUTOSCALERS.apiVersion,
      kind: "VerticalPodAutoscaler",
      metadata: { name: "other-containers", namespace: environment.pipes },
      spec: { targetRef: target, resourcePolicy: { containerPolicies } },
    });
    await apply(environment.cluster, [vertical([{ containerName: "*", mode: "Off" }])]);
    await environment.requestSize(3);
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("3 12Gi 12Gi");
    await apply(environment.cluster, [vertical([{ containerName: "*", controlledResources: ["memory"] }])]);
    const stalled = await environment.waitForCondition("Stalled", "True", "FieldConflict");
    expect(conditionOf(stalled, "Stalled")?.message).toContain(
      'the VerticalPodAutoscaler "other-containers"',
    );
    await apply(environment.cluster, [vertical([{ containerName: "*", controlledResources: [] }])]);
    await environment.waitForCondition("Ready", "True");
  });

  it("is resized with a HorizontalPodAutoscaler, which the status names", async () => {
    const metrics = [
      {
        type: "Resource",
        resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
      },
    ];
    await environment.create(HORIZONTAL_AUTOSCALERS, environment.pipes, {
      apiVersion: HORIZONTAL_AUTOSCALERS.apiVersion,
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "by-cpu" },
      spec: { scaleTargetRef: target, minReplicas: 1, maxReplicas: 3, metrics },
    });
    await environment.requestSize(2);
    const event = await waitFor(
      async () => {
        const scaling = await environment.scaling();
        const ready = conditionOf(scaling, "Ready");
        const isSeen = scaling.status?.observedGeneration === scaling.metadata.generation;
        return isSeen && ready?.status === "True" && ready.message.includes("by-cpu") ? ready : undefined;
      },
      { what: "the size of the pipe with the autoscaler" },
    );
    expect(event.message).toMatch(
      /^The one pipe runs 2 cpu \/ 8 Gi\. The HorizontalPodAutoscaler .* scales pipe-a by/,
    );
  });

  it("is not looked at when only the status of its HorizontalPodAutoscaler changes", async () => {
    const path = `${objectPath(HORIZONTAL_AUTOSCALERS, environment.pipes, "by-cpu")}/status`;
    const before = await reconciliations();
    const until = performance.now() + 3000;
    for (let desiredReplicas = 1; performance.now() < until; desiredReplicas += 1)
      await environment.client.json({
        method: "PATCH",
        path,
        patchType: "application/merge-patch+json",
        body: { status: { desiredReplicas: (desiredReplicas % 9) + 1 } },
      });
    // The least time between two reconciliations is 100 ms, so there would be about 30.
    expect((await reconciliations()) - before).toBeLessThanOrEqual(2);
  });

  async function reconciliations(): Promise<number> {
    const metrics = await environment.scrape();
    const counts = metrics.matchAll(/^controller_runtime_reconcile_total\{.*\} (\d+)$/gm);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
  }
});
