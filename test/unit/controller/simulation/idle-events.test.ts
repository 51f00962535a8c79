import { describe, expect, it } from "vitest";
import type { HorizontalPodAutoscaler } from "../../../../src/kube/autoscalers.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;

function autoscaler(name: string): HorizontalPodAutoscaler {
  return {
    metadata: { name, namespace: "pipes", uid: `uid-${name}`, resourceVersion: "1" },
    spec: {
      scaleTargetRef: { kind: "Deployment", name },
      metrics: [{ resource: { target: { type: "Utilization" } } }],
    },
  };
}

describe("a hundred events that change nothing that the controller reads", () => {
  it.each<[string, (group: PipeGroup, index: number) => void]>([
    ["of a HorizontalPodAutoscaler", ({ simulation }) => simulation.applyAutoscaler(autoscaler("pipe-0"))],
    ["of a Deployment", ({ cluster }, index) => cluster.setLabels("pipe-0", { tick: `${index}` })],
    ["of the status of a Deployment", ({ cluster }) => cluster.report("pipe-0", {})],
    [
      "of a pod",
      (group) => {
        for (const pod of group.pods("pipe-0")) group.workloads.scheduler.put(pod, "status");
      },
    ],
  ])("reconcile nothing if they are %s", async (_, act) => {
    const group = await PipeGroup.start({ pipes: 2 });
    const { simulation } = group;
    simulation.applyAutoscaler(autoscaler("pipe-0"));
    await group.run(10 * SECOND);
    const before = simulation.reconciliations;
    for (let index = 0; index < 100; index += 1) {
      act(group, index);
      await group.run(SECOND);
    }
    expect(simulation.reconciliations - before).toBeLessThanOrEqual(1);
  });
});
