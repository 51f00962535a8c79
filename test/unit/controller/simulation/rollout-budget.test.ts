import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { deployResizable, Scenario, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const FOUR = "4000m/16Gi";

describe("a service that is suspended during a resize in place", () => {
  it("replaces no pod after it is resumed 3 minutes later", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    simulation.cluster.fault = ({ path }) => {
      // After the write to the first pod.
      if (path.endsWith("/resize")) simulation.clock.after(10, () => simulation.suspend(1, true));
      return undefined;
    };
    simulation.requestSize(1, 4);
    await simulation.run(3 * MINUTE);
    expect(new Set(scenario.podSizes()).size).toBe(2);
    simulation.cluster.fault = () => undefined;
    simulation.suspend(1, false);
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(scenario.podSizes()).toEqual([FOUR, FOUR, FOUR, FOUR]);
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a rollout budget of one, for which many services wait", () => {
  it.each([
    [1, 20],
    [6, 15],
  ])(
    "is used all the time if a dry run takes %i s and one round longer than a dry run counts",
    async (dryRunS, least) => {
      const simulation = new Simulation({ isInPlace: true, mostRollouts: 1 });
      const workloads = workloadsOf(simulation);
      simulation.cluster.nodes = [aNode("node", { cpu: "1000", memory: "8Ti" })];
      workloads.scheduler.capacityMillicores = 1_000_000;
      const names = Array.from({ length: 40 }, (_, index) => `pipe-${index}`);
      for (const [index, name] of names.entries()) {
        simulation.addService(index + 1);
        // A JVM reads the memory when it starts, so the pipe is not resized in place.
        deployResizable(simulation, name, index + 1, 1, { strategy: "Recreate" });
        const args = ["-XX:MaxRAMPercentage=75"];
        simulation.cluster.change(name, { template: { spec: { containers: [{ name: "pipe", args }] } } });
      }
      simulation.start();
      await simulation.run(2 * MINUTE);
      workloads.replaced.length = 0;
      workloads.kubelets.startMs = () => 20 * SECOND;
      simulation.cluster.latencyMs = ({ query }) => (query?.["dryRun"] ? dryRunS * SECOND : 5);
      const before = simulation.cluster.attempts.length;
      for (const index of names.keys()) simulation.requestSize(index + 1, 4);
      await simulation.run(10 * MINUTE);
      // Each takes 20 s to start, and a dry run before.
      expect(workloads.replaced.length).toBeGreaterThan(least);
      const dryRuns = simulation.cluster.attempts.slice(before).filter(({ isDryRun }) => isDryRun).length;
      expect(dryRuns).toBeLessThanOrEqual(3 * names.length + 4 * workloads.replaced.length);
    },
  );
});

describe("resizes in place", () => {
  const isDryRun = ({ path, query }: KubeRequest) =>
    path.includes("/deployments/") && query?.["dryRun"] !== undefined;

  it("leave the rollout budget to rollouts, even while their kubelets do not respond", async () => {
    const scenario = new Scenario(2, { mostRollouts: 1 });
    const { simulation, workloads } = scenario;
    simulation.addService(2);
    simulation.deploy("other", 2);
    await scenario.start();
    workloads.outcome = () => "NotObserved";
    simulation.requestSize(1, 4);
    await simulation.run(10 * SECOND);
    expect(simulation.status(1).pipes?.pending).toMatchObject([
      { name: "pipe-0", state: "Rolling" },
      { name: "pipe-1", state: "Waiting" },
    ]);
    simulation.requestSize(2, 4);
    await simulation.run(10 * SECOND);
    expect(simulation.condition(2)?.reason).toBe("Scaled");
    expect(simulation.status(2).pipes?.resizedBy).toEqual({ other: "Rollout" });
    expect(workloads.replaced).toEqual(["other"]);
  });

  it("begin while another service has the whole rollout budget", async () => {
    const scenario = new Scenario(2, { mostRollouts: 1 });
    const { simulation, workloads } = scenario;
    for (const service of [2, 3]) simulation.addService(service);
    simulation.deploy("slow", 2);
    simulation.deploy("other", 3);
    await scenario.start();
    workloads.kubelets.startMs = () => undefined;
    simulation.requestSize(2, 4);
    simulation.requestSize(3, 4);
    await simulation.run(10 * SECOND);
    expect(simulation.condition(3)?.message).toContain("across all services is reached");
    simulation.requestSize(1, 4);
    await simulation.run(10 * SECOND);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.status(1).pipes?.inPlace).toBe(2);
    expect(workloads.replaced).toEqual(["slow"]);
  });

  it("begin although a pipe of their service that must restart comes first and waits for the budget", async () => {
    const scenario = new Scenario(2, { mostRollouts: 1 });
    const { simulation, workloads } = scenario;
    simulation.addService(2);
    simulation.deploy("slow", 2);
    // Without labels, its pods are not resized in place.
    simulation.deploy("a-pipe", 1);
    await scenario.start();
    workloads.kubelets.startMs = ({ metadata }) => (metadata.name.startsWith("slow") ? 5 * MINUTE : 500);
    simulation.requestSize(2, 4);
    await simulation.run(10 * SECOND);
    simulation.requestSize(1, 4);
    await simulation.run(10 * SECOND);
    expect(scenario.podSizes()).toEqual([FOUR, FOUR, FOUR, FOUR]);
    expect(simulation.status(1).pipes?.pending).toMatchObject([{ name: "a-pipe", state: "Waiting" }]);
    expect(simulation.condition(1)?.message).toContain("across all services is reached");
    expect(workloads.replaced).toEqual(["slow"]);
    await simulation.run(5 * MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(workloads.replaced).toEqual(["slow", "a-pipe"]);
  });

  it("begin at once in all services, even if the API server is slow", async () => {
    const simulation = new Simulation({ isInPlace: true, mostRollouts: 1 });
    const workloads = workloadsOf(simulation);
    const services = [1, 2, 3, 4, 5];
    const names = services.map((service) => `pipe-${service}`);
    for (const service of services) {
      simulation.addService(service);
      deployResizable(simulation, `pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(5 * SECOND);
    workloads.replaced.length = 0;
    simulation.cluster.latencyMs = (request) => (isDryRun(request) ? 2 * SECOND : 5);
    for (const service of services) simulation.requestSize(service, 4);
    // The dry runs of all services are made at the same time.
    await simulation.run(3 * SECOND);
    expect(simulation.sizes(...names)).toEqual(names.map(() => FOUR));
    expect(workloads.replaced).toEqual([]);
  });

  it("begin only once, even if the dry run takes longer than a reconciliation waits for it", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation } = scenario;
    const dryRuns: string[] = [];
    simulation.cluster.latencyMs = (request) => (isDryRun(request) ? 12 * SECOND : 5);
    simulation.cluster.fault = (request) => {
      if (isDryRun(request) && JSON.stringify(request.body).includes('"paused":true'))
        dryRuns.push(request.path);
      return undefined;
    };
    simulation.requestSize(1, 4);
    await simulation.run(20 * SECOND);
    await simulation.run(2 * MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(new Set(dryRuns).size).toBe(2);
    expect(dryRuns).toHaveLength(2);
    expect(simulation.fallbacks).toEqual([]);
  });
});

describe("services that wait for the rollout budget", () => {
  it("do not wait until a large service, whose pods start at different times, needs no more of it", async () => {
    const simulation = new Simulation({ isInPlace: true, mostRollouts: 5 });
    const { kubelets } = workloadsOf(simulation);
    for (const service of [1, 2]) simulation.addService(service);
    for (let index = 0; index < 60; index += 1) deployResizable(simulation, `pipe-${index}`, 1);
    deployResizable(simulation, "other", 2);
    simulation.start("Rollout");
    await simulation.run(5 * SECOND);
    let started = 0;
    kubelets.startMs = () => {
      started += 7;
      return 20 * SECOND + 2 * SECOND * (started % 10);
    };
    simulation.requestSize(1, 4);
    await simulation.run(40 * SECOND);
    simulation.requestSize(2, 4);
    // All rollouts that were in progress have ended meanwhile.
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.message).toContain("across all services is reached");
    expect(simulation.sizes("other")).toEqual([FOUR]);
  });

  it("begin as soon as a fallback of another service ends", async () => {
    const simulation = new Simulation({ isInPlace: true, mostRollouts: 1 });
    const workloads = workloadsOf(simulation);
    const services = [1, 2, 3, 4, 5, 6];
    const names = services.map((service) => `pipe-${service}`);
    for (const service of services) {
      simulation.addService(service);
      deployResizable(simulation, `pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(5 * SECOND);
    workloads.replaced.length = 0;
    workloads.outcome = () => "Infeasible";
    for (const service of services) simulation.requestSize(service, 4);
    let mostRolling = 0;
    for (let times = 0; times < 50; times += 1) {
      await simulation.run(SECOND / 10);
      const rolling = names.filter((name) => !simulation.cluster.pipe(name).rollout.isComplete);
      mostRolling = Math.max(mostRolling, rolling.length);
    }
    expect(simulation.sizes(...names)).toEqual(names.map(() => FOUR));
    expect(workloads.replaced.toSorted()).toEqual(names);
    expect(mostRolling).toBe(1);
  });

  it.each([
    ["resized in place", true],
    ["replaced", false],
  ])("do not wait until all pods of a large service are %s", async (_what, isInPlace) => {
    const simulation = new Simulation({ isInPlace, mostRollouts: 1 });
    const names = Array.from({ length: 12 }, (_, index) => `pipe-${index}`);
    for (const service of [1, 2]) simulation.addService(service);
    for (const name of names) deployResizable(simulation, name, 1);
    deployResizable(simulation, "other", 2);
    simulation.start();
    await simulation.run(5 * SECOND);
    simulation.requestSize(1, 4);
    await simulation.run(SECOND / 10);
    simulation.requestSize(2, 4);
    while (simulation.cluster.sizeOf("other") !== FOUR) await simulation.run(SECOND / 10);
    const resized = simulation.sizes(...names).filter((size) => size === FOUR).length;
    // Templates that follow do so within 100 ms.
    expect(resized).toBeLessThanOrEqual(isInPlace ? names.length / 2 : 3);
  });
});
