import { describe, expect, it } from "vitest";
import type { Container } from "../../../../src/kube/pods.ts";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Resources that are no valid size: the smallest one that holds them has 2 cores and 8 GiB. */
const ODD: Container["resources"] = {
  requests: { cpu: "1500m", memory: "5Gi" },
  limits: { memory: "6500Mi" },
};

type Deployment = NonNullable<Parameters<typeof PipeGroup.start>[0]["deployment"]>;

/** Pipes with these resources that ran before the controller saw their labels. */
function labelled(deployment: Deployment, pipes = 2): Promise<PipeGroup> {
  return PipeGroup.start({ pipes, replicas: 2, deployment: { resources: ODD, ...deployment } });
}

function pendingOf({ simulation }: PipeGroup) {
  return (simulation.status(1).pipes?.pending ?? []).map(({ name, state, reason }) => ({
    name,
    state,
    reason,
  }));
}

const NOT_REQUESTED = ["pipe-0", "pipe-1"].map((name) => ({
  name,
  state: "Waiting",
  reason: "SizeNotRequested",
}));

describe("running pipes whose resources are no valid size", () => {
  it("get the size that holds them in place, with the same pods", async () => {
    const group = await labelled({});
    await group.run(2 * MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
  });

  it("get their first request in place, too, and go on after that", async () => {
    const group = await labelled({});
    for (const cores of [4, 3]) {
      group.request(cores);
      await group.run(2 * MINUTE);
      group.expectSettled(cores);
    }
    group.expectSamePods();
  });

  it("keep their template if the Deployment controller does not respond, and their pods keep the size", async () => {
    const group = await labelled({ podLabels: {} }, 1);
    group.simulation.stop();
    deployResizable(group.simulation, "late", 1, 2, { resources: ODD });
    await group.run(10 * SECOND);
    group.workloads.replaced.length = 0;
    group.workloads.syncMs = 40 * SECOND;
    group.simulation.start();
    await group.run(33 * SECOND);
    expect(group.simulation.condition(1)?.message).toContain("the Deployment controller did not respond");
    const { spec } = group.cluster.deployments.get("late") ?? {};
    expect(spec).not.toHaveProperty("paused", true);
    expect(spec?.template.spec.containers[0]?.resources).toEqual(ODD);
    expect(group.podSizes("late")).toEqual(["2000m/8Gi", "2000m/8Gi"]);
    await group.run(2 * MINUTE);
    group.workloads.syncMs = 20;
    await group.run(HOUR);
    expect(group.simulation.sizes("late")).toEqual(["2000m/8Gi"]);
    expect(group.workloads.replaced).toEqual([]);
    expect(group.busiest()).toEqual([]);
  });

  it.each<[string, Deployment]>([
    ["their program reads its size once", { args: ["-XX:MaxRAMPercentage=75"] }],
    ["their pods lack the labels", { podLabels: {} }],
    ["their pods stop before new ones start, and lack the labels", { podLabels: {}, strategy: "Recreate" }],
    ["they have no memory limit", { resources: { requests: { cpu: "1500m", memory: "5Gi" } } }],
    ["they have a CPU request only", { resources: { requests: { cpu: "1500m" } } }],
  ])("are left alone until somebody requests a size, if %s", async (_, deployment) => {
    const group = await labelled(deployment);
    await group.run(5 * MINUTE);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    expect(group.simulation.condition(1)?.type).toBe("Reconciling");
    await group.run(HOUR);
    expect(group.simulation.condition(1)).toMatchObject({
      type: "Stalled",
      reason: "NotResizedInPlace",
      message: expect.stringMatching(/no size was requested since it got its labels.*: request a size/),
    });
    expect(group.uids()).toEqual(group.before);
    expect(group.workloads.replaced).toEqual([]);
    const written = group.cluster.writes.length;
    await group.run(HOUR);
    expect(group.cluster.writes.slice(written)).toEqual([]);

    group.request(2);
    await group.run(HOUR);
    expect(group.simulation.sizes(...group.names)).toEqual(["2000m/8Gi", "2000m/8Gi"]);
    expect(group.simulation.condition(1)?.type).toBe("Ready");
    expect(group.workloads.replaced.toSorted()).toEqual(["pipe-0", "pipe-1"]);
  });

  it("are reported as fallen back only when somebody requests a size, if their kubelets cannot resize them", async () => {
    const group = await labelled({}, 0);
    const { simulation, workloads } = group;
    simulation.stop();
    deployResizable(simulation, "late", 1, 2, { resources: ODD });
    await group.run(10 * SECOND);
    const [first] = group.pods("late");
    workloads.outcome = ({ metadata }) => (metadata.name === first?.metadata.name ? "Done" : "Infeasible");
    workloads.replaced.length = 0;
    simulation.start();
    await group.run(30 * SECOND);
    expect(simulation.status(1).pipes).not.toHaveProperty("fallbacks");
    const fallenBack = () => simulation.events.filter(({ reason }) => reason === "FellBackToRollout");
    expect(fallenBack()).toEqual([]);
    expect(workloads.replaced).toEqual([]);

    group.request(2);
    await group.run(HOUR);
    expect(simulation.sizes("late")).toEqual(["2000m/8Gi"]);
    expect(simulation.status(1).pipes?.fallbacks).toMatchObject([{ pipe: "late", reason: "Infeasible" }]);
    expect(fallenBack()).toHaveLength(1);
  });

  it("are rolled out when somebody asks for another attempt", async () => {
    const group = await labelled({ args: ["-XX:MaxRAMPercentage=75"] });
    await group.run(5 * MINUTE);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    group.simulation.askToRetry(1);
    await group.run(HOUR);
    group.expectSettled(2);
  });

  it("are rolled out at the time for which somebody asks for another attempt, and not before", async () => {
    const group = await labelled({ args: ["-XX:MaxRAMPercentage=75"] });
    await group.run(5 * MINUTE);
    group.simulation.askToRetry(1, HOUR);
    await group.run(HOUR - SECOND);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    expect(group.uids()).toEqual(group.before);
    await group.run(HOUR);
    group.expectSettled(2);
  });

  it.each<[string, (simulation: PipeGroup["simulation"]) => void]>([
    ["was suspended and resumed", (simulation) => simulation.suspend(1, false)],
    ["got another strategy while it was suspended", (simulation) => simulation.setStrategy(1, "Rollout")],
  ])("wait also after their service %s", async (_, change) => {
    const group = await labelled({ args: ["-XX:MaxRAMPercentage=75"] });
    await group.run(5 * MINUTE);
    group.simulation.suspend(1, true);
    await group.run(MINUTE);
    change(group.simulation);
    group.simulation.suspend(1, false);
    await group.run(HOUR);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    expect(group.uids()).toEqual(group.before);
    expect(group.cluster.adoptionJudge.violations).toEqual([]);

    group.simulation.requestSize(1, 2);
    await group.run(HOUR);
    group.expectSettled(2);
    expect(group.workloads.replaced.toSorted()).toEqual(["pipe-0", "pipe-1"]);
  });

  it.each<[string, (simulation: PipeGroup["simulation"]) => void, string]>([
    ["a boost", (simulation) => simulation.boost(1, 3, 2 * HOUR), "3000m/12Gi"],
    ["the default size of the tier", (simulation) => simulation.requestDefaultSize(1), "1000m/4Gi"],
  ])("are rolled out when somebody requests %s", async (_, request, size) => {
    const group = await labelled({ args: ["-XX:MaxRAMPercentage=75"] });
    await group.run(5 * MINUTE);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    request(group.simulation);
    await group.run(HOUR);
    expect(group.simulation.sizes(...group.names)).toEqual([size, size]);
    expect(group.workloads.replaced.toSorted()).toEqual(["pipe-0", "pipe-1"]);
  });

  it("wait with the strategy Rollout, too", async () => {
    const group = await labelled({ podLabels: {} });
    group.simulation.start("Rollout");
    await group.run(HOUR);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    expect(group.simulation.condition(1)?.message).toContain("because its strategy is Rollout");
    expect(group.uids()).toEqual(group.before);
  });

  it("wait after a restart of the controller, too", async () => {
    const group = await labelled({ podLabels: {} });
    await group.run(5 * MINUTE);
    group.simulation.start();
    await group.run(HOUR);
    expect(pendingOf(group)).toEqual(NOT_REQUESTED);
    expect(group.uids()).toEqual(group.before);
  });

  it("do not keep a pipe that joins without resources from its size", async () => {
    const group = await labelled({ args: ["-XX:MaxRAMPercentage=75"] });
    await group.run(5 * MINUTE);
    group.simulation.deploy("late", 1, { resources: {} });
    await group.run(10 * MINUTE);
    expect(group.simulation.sizes("late")).toEqual(["2000m/8Gi"]);
    expect(group.uids()).toEqual(group.before);
  });

  it("are left alone until somebody requests a size, if they join a service with the default size", async () => {
    const args = ["-XX:MaxRAMPercentage=75"];
    const group = await labelled({ resources: {}, args }, 1);
    await group.run(5 * MINUTE);
    expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
    deployResizable(group.simulation, "late", 1, 2, { cores: 4, args });
    await group.run(10 * SECOND);
    group.workloads.replaced.length = 0;
    await group.run(HOUR);
    expect(pendingOf(group)).toEqual([{ name: "late", state: "Waiting", reason: "SizeNotRequested" }]);
    expect(group.simulation.sizes("late")).toEqual(["4000m/16Gi"]);
    expect(group.workloads.replaced).toEqual([]);

    group.request(1);
    await group.run(HOUR);
    expect(group.simulation.sizes("late")).toEqual(["1000m/4Gi"]);
    group.simulation.deploy("later", 1, { cores: 4, args });
    group.simulation.requestDefaultSize(1);
    await group.run(HOUR);
    expect(group.simulation.sizes("later")).toEqual(["1000m/4Gi"]);
  });

  it("are resized again after their owner has changed a size that they had", async () => {
    const group = await PipeGroup.start({
      pipes: 1,
      replicas: 2,
      deployment: { cores: 2, args: ["-XX:MaxRAMPercentage=75"] },
    });
    await group.run(5 * MINUTE);
    group.expectSettled(2);
    const amounts = { cpu: "1", memory: "4Gi" };
    group.simulation.setResources("pipe-0", { requests: amounts, limits: { memory: amounts.memory } });
    await group.run(HOUR);
    group.expectSettled(2);
  });

  it("are not replaced if they are above the maximum of the tier and cannot get it in place", async () => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { cores: 2 } });
    const { simulation, workloads } = group;
    simulation.setTier("small");
    simulation.addService(2);
    simulation.deploy("above", 2, { cores: 4 });
    await group.run(MINUTE);
    workloads.replaced.length = 0;
    await group.run(HOUR);
    expect(simulation.status(2).pipes?.pending).toMatchObject([
      { name: "above", reason: "SizeNotRequested" },
    ]);
    expect(simulation.sizes("above")).toEqual(["4000m/16Gi"]);
    expect(workloads.replaced).toEqual([]);
  });

  it("get the maximum of a smaller tier later, also if they have to restart for it", async () => {
    const group = await PipeGroup.start({
      pipes: 1,
      replicas: 2,
      deployment: { cores: 4, args: ["-XX:MaxRAMPercentage=75"] },
    });
    await group.run(MINUTE);
    group.expectSettled(4);
    group.simulation.setTier("small");
    await group.run(HOUR);
    expect(group.simulation.sizes("pipe-0")).toEqual(["2000m/8Gi"]);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });
});
