import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const REPLACED = /being replaced/;

/** The messages of all conditions of a service. */
function messagesOf(simulation: Simulation, service = 1): string {
  return (simulation.status(service).conditions ?? []).map(({ message }) => message).join(" ");
}

describe("the message that pods are being replaced", () => {
  it("is absent after a rollback", async () => {
    const group = await PipeGroup.start({ pipes: 2, replicas: 2 });
    group.workloads.outcome = () => "Infeasible";
    group.workloads.kubelets.startMs = ({ spec }) =>
      spec.containers[0]?.resources?.requests?.["cpu"] === "4000m" ? undefined : 500;
    group.request(4);
    await group.run(5 * MINUTE);
    expect(group.messages()).toMatch(REPLACED);
    await group.run(12 * MINUTE);
    expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
    expect(group.messages()).not.toMatch(REPLACED);
  });

  it("is absent if the rollout is refused, so that nothing was replaced", async () => {
    const group = await PipeGroup.start({ pipes: 2, replicas: 2 });
    group.workloads.outcome = () => "Infeasible";
    const message = 'admission webhook "policy.example" denied the request: no';
    group.cluster.fault = ({ path, query }) =>
      path.includes("/deployments/") && query?.["dryRun"] === undefined
        ? { error: new KubeApiError("PATCH", 403, JSON.stringify({ message })) }
        : undefined;
    group.request(4);
    await group.run(5 * MINUTE);
    expect(group.uids()).toEqual(group.before);
    expect(group.messages()).toContain("denied the request");
    expect(group.messages()).not.toMatch(REPLACED);
  });

  it("is absent while the rollout waits", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    group.workloads.outcome = () => "Infeasible";
    // The window opens at two.
    group.simulation.addService(1, { rolloutWindow: '{schedule: "0 2 * * *", duration: 1h}' });
    group.request(4);
    await group.run(5 * MINUTE);
    expect(group.uids()).toEqual(group.before);
    expect(group.messages()).not.toMatch(REPLACED);
  });

  it("is absent after the pods were replaced", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    group.workloads.outcome = () => "Infeasible";
    group.request(4);
    await group.run(5 * MINUTE);
    group.expectSettled(4);
    expect(group.messages()).not.toMatch(REPLACED);
  });
});

describe("pipes without replicas", () => {
  it.each([
    ["all", [0, 0, 0], /run 8 cpu/],
    ["some", [1, 0, 0], /[Aa]ll 3 pipes run|3 of 3 pipes run/],
  ])("do not run a size, if %s have none", async (_, replicas, message) => {
    const simulation = new Simulation();
    simulation.addService(1);
    for (const [index, count] of replicas.entries())
      simulation.deploy(`pipe-${index}`, 1, { replicas: count });
    simulation.start();
    await simulation.run(5 * SECOND);
    simulation.requestSize(1, 8);
    await simulation.run(5 * MINUTE);
    expect(simulation.sizes("pipe-0", "pipe-1", "pipe-2")).toEqual(Array(3).fill("8000m/32Gi"));
    expect(messagesOf(simulation)).not.toMatch(message);
  });
});

it("a PipeScaling in another namespace than its pipes is not told to move, because objects cannot", async () => {
  const simulation = new Simulation();
  simulation.addService(1);
  simulation.cluster.createScaling(idOf(1), { replicaCpuMillicores: 2000, replicaMemoryGb: 8 }, "elsewhere");
  simulation.start();
  await simulation.run(MINUTE);
  expect(messagesOf(simulation)).toContain("namespace");
  expect(messagesOf(simulation)).not.toMatch(/\bmove\b/i);
});
