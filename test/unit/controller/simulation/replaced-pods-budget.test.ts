import { describe, expect, it } from "vitest";
import { deployResizable, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { isRunning } from "../../../support/simulation/pod-status.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const FOUR = "4000m/16Gi";

describe("pods that have to be replaced because they cannot get the size of their template in place", () => {
  it.each([
    ["keeps running", () => undefined],
    ["restarts", (simulation: Simulation) => simulation.start()],
  ])("count against the rollout budget while the controller %s", async (_, then) => {
    const simulation = new Simulation({ isInPlace: true, mostRollouts: 1 });
    const workloads = workloadsOf(simulation);
    const services = [1, 2, 3, 4, 5, 6];
    for (const service of services) {
      simulation.addService(service);
      deployResizable(simulation, `pipe-${service}`, service, 2);
    }
    simulation.start();
    await simulation.run(5 * SECOND);
    workloads.replaced.length = 0;
    // The first pod of each pipe gets the size, and no other pod can be resized any more, not even back.
    const podsOf = (name: string) => {
      const deployment = simulation.cluster.deployments.get(name);
      return deployment ? workloads.podsOf(deployment) : [];
    };
    for (const service of services) simulation.requestSize(service, 4);
    const isBegun = (name: string) =>
      podsOf(name).some(({ status }) => sizeOf(status?.containerStatuses?.[0]) === FOUR);
    for (let ms = 0; ms < 5 * SECOND && !services.every((each) => isBegun(`pipe-${each}`)); ms += 5)
      await simulation.run(5);
    workloads.outcome = () => "NotObserved";
    for (const service of services) simulation.requestSize(service, 1);
    workloads.kubelets.startMs = () => 90 * SECOND;
    let most = 0;
    for (let ms = 0; ms < 20 * MINUTE; ms += SECOND) {
      await simulation.run(SECOND);
      if (ms % (10 * SECOND) === 0 && workloads.replaced.length > 0) then(simulation);
      const starting = services.filter((each) => podsOf(`pipe-${each}`).some((pod) => !isRunning(pod)));
      most = Math.max(most, starting.length);
    }
    expect(workloads.replaced.toSorted()).toEqual(services.map((each) => `pipe-${each}`));
    expect(most).toBe(1);
  });
});

it("the canary of the next size waits for pods that the controller is replacing", async () => {
  const group = await PipeGroup.start({ pipes: 4, replicas: 2 });
  const { simulation, workloads } = group;
  group.request(4);
  expect(await group.runUntil(() => group.podSizes().includes("4000m/16Gi"), 5 * SECOND)).toBeDefined();
  workloads.outcome = () => "NotObserved";
  workloads.kubelets.startMs = () => 90 * SECOND;
  group.request(1);
  await group.runUntil(() => workloads.replaced.length > 0, 10 * MINUTE);
  expect(workloads.replaced).toEqual(["pipe-0"]);
  await group.run(5 * SECOND);
  simulation.setStrategy(1, "Rollout");
  group.request(2);
  let most = 0;
  for (let ms = 0; ms < 60 * SECOND; ms += SECOND) {
    await group.run(SECOND);
    most = Math.max(
      most,
      group.names.filter((name) => group.pods(name).some((pod) => !isRunning(pod))).length,
    );
  }
  expect(most).toBe(1);
});
