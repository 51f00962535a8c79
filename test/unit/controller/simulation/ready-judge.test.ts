import { describe, expect, it } from "vitest";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const TWO = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };
const OTHER = { manager: "right-sizer" };

/** Pods and templates of one core with a status that says so, and no controller that could correct it. */
async function judged(): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
  await group.run(MINUTE);
  group.simulation.stop();
  expect(group.simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
  expect(group.cluster.readyJudge.violations).toEqual([]);
  // From here on, a controller that does nothing seems to run.
  group.cluster.readyJudge.controllerStarted();
  await group.run(MINUTE);
  return group;
}

const firstPod = (group: PipeGroup) => group.pods("pipe-0")[0]?.metadata.name ?? "";

describe("the judge of statuses", () => {
  it("accepts a status that follows another writer within a second", async () => {
    const group = await judged();
    group.workloads.resizePod(firstPod(group), TWO, OTHER);
    await group.run(900);
    group.cluster.patchStatus(idOf(1), { conditions: [] });
    await group.run(MINUTE);
    expect(group.cluster.readyJudge.violations).toEqual([]);
  });

  it.each<[string, (group: PipeGroup) => void, string]>([
    [
      "a pod",
      (group) => group.workloads.resizePod(firstPod(group), TWO, OTHER),
      "the pod pipe-0-1-2 has 2000m/8Gi",
    ],
    [
      "a template",
      ({ simulation }) => simulation.setResources("pipe-0", TWO),
      "the template of pipe-0 has 2000m/8Gi",
    ],
  ])(
    "reports a status that does not follow another writer of %s within a second, once",
    async (_, act, problem) => {
      const group = await judged();
      act(group);
      await group.run(900);
      expect(group.cluster.readyJudge.violations).toEqual([]);
      await group.run(MINUTE);
      expect(group.cluster.readyJudge.violations).toEqual([expect.stringContaining(problem)]);
    },
  );

  it.each<[string, (held: HeldSet) => void, string]>([
    [
      "a pod",
      ({ simulation }) => workloadsOf(simulation).resizePod("a-2", TWO, OTHER),
      "the pod a-2 has 2000m/8Gi",
    ],
    ["the template", (held) => held.setSize(2), "the template of a has 2000m/8Gi"],
  ])(
    "reports a status that does not follow another writer of %s of a StatefulSet within a second, once",
    async (_, act, problem) => {
      // With OnDelete, no pod follows the template.
      const held = await HeldSet.start({ updateStrategy: { type: "OnDelete" } });
      const { simulation } = held;
      simulation.stop();
      simulation.cluster.readyJudge.controllerStarted();
      act(held);
      await held.run(900);
      expect(simulation.cluster.readyJudge.violations).toEqual([]);
      await held.run(MINUTE);
      expect(simulation.cluster.readyJudge.violations).toEqual([expect.stringContaining(problem)]);
    },
  );

  it("reports a write of the controller to a pod of a StatefulSet that makes a status false at once", async () => {
    const { simulation } = await HeldSet.start();
    workloadsOf(simulation).resizePod("a-2", TWO, { manager: "pipe-scaling-controller" });
    expect(simulation.cluster.readyJudge.violations).toHaveLength(1);
  });

  it("reports a write of the controller that makes a status false at once", async () => {
    const group = await judged();
    group.workloads.resizePod(firstPod(group), TWO, { manager: "pipe-scaling-controller" });
    expect(group.cluster.readyJudge.violations).toHaveLength(1);
  });

  it("reports a pod that does not run its size yet", async () => {
    const group = await judged();
    const { cluster, workloads, simulation } = group;
    workloads.outcome = () => "Deferred";
    cluster.patchStatus(idOf(1), { conditions: [] });
    workloads.resizePod(firstPod(group), TWO, OTHER);
    await group.run(SECOND);
    const conditions = [
      { type: "Ready", status: "True", reason: "Scaled", message: "", lastTransitionTime: "" },
    ];
    const desired = { replicaCpuMillicores: 2000, replicaMemoryGb: 8, summary: "", source: "Spec" };
    cluster.patchStatus(idOf(1), { conditions, desired });
    await group.run(2 * SECOND);
    expect(simulation.cluster.readyJudge.violations.join()).toContain("has 2000m/8Gi, and runs 1000m/4Gi");
  });

  it("accepts a status of another generation, and a status while no controller is running", async () => {
    const group = await judged();
    group.request(2);
    group.workloads.resizePod(firstPod(group), TWO, OTHER);
    await group.run(MINUTE);
    group.cluster.readyJudge.controllerStopped();
    group.cluster.patchStatus(idOf(1), { observedGeneration: group.simulation.generation(1) });
    await group.run(MINUTE);
    expect(group.cluster.readyJudge.violations).toEqual([]);
  });
});
