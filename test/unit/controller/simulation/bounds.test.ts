import { describe, expect, it } from "vitest";
import type { Condition } from "../../../../src/crd/pipe-scaling.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { refusal } from "../../../support/simulation/cluster.ts";
import { deployResizable, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ONE = "1000m/4Gi";
const FOUR = "4000m/16Gi";

async function started(pipes: number, simulation = new Simulation()): Promise<Simulation> {
  simulation.addService(1);
  for (let index = 0; index < pipes; index += 1) simulation.deploy(`pipe-${index}`, 1);
  simulation.start();
  await simulation.run(2 * SECOND);
  return simulation;
}

function resizesOf({ cluster }: Simulation, name: string): number {
  return cluster.writes.filter((line) => line.startsWith(`${name} `)).length;
}

describe("the amount of work", () => {
  it("grows with the number of rollouts, not with the number of services that wait for the rollout budget", async () => {
    const services = 100;
    const simulation = new Simulation({ mostRollouts: 10 });
    for (let service = 1; service <= services; service += 1) {
      simulation.addService(service);
      simulation.deploy(`pipe-${service}`, service, { cores: 2 });
    }
    simulation.cluster.rolloutMs = () => 10 * SECOND;
    simulation.start();
    await simulation.run(2 * SECOND);
    for (let service = 1; service <= services; service += 1) simulation.requestDefaultSize(service);
    const before = simulation.reconciliations;
    await simulation.run(HOUR);
    expect(simulation.cluster.sizeOf(`pipe-${services}`)).toBe(ONE);
    expect(simulation.cluster.judge.mostRolling).toBe(10);
    // The events of a rollout reconcile its own service a few times, and the end of a rollout wakes one other service.
    expect(simulation.reconciliations - before).toBeLessThan(12 * services);
  });

  it("is about the same per pipe for status updates of large and small services", async () => {
    const bytesFor = async (pipes: number) => {
      const simulation = await started(pipes);
      // Every rollout completes at a different time.
      simulation.cluster.rolloutMs = ({ metadata }) =>
        10_000 + ((Number(metadata.name.slice(5)) * 7919) % MINUTE);
      simulation.cluster.statusPatchBytes.length = 0;
      simulation.requestSize(1, 4);
      await simulation.run(6 * HOUR);
      expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
      return simulation.cluster.statusPatchBytes.reduce((sum, bytes) => sum + bytes, 0) / pipes;
    };
    expect((await bytesFor(100)) / (await bytesFor(10))).toBeLessThan(1.5);
  });

  it("does not grow with every event when writes to many pipes are rejected", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    const names = Array.from({ length: 30 }, (_, index) => `pipe-${index}`);
    for (const name of names) simulation.deploy(name, 1, { replicas: 0 });
    simulation.start();
    await simulation.run(2 * SECOND);
    let attempts = 0;
    simulation.cluster.fault = (_, pipe) => {
      if (!pipe) return undefined;
      attempts += 1;
      return refusal("not here");
    };
    simulation.requestSize(1, 4);
    for (let times = 0; times < 20; times += 1) {
      await simulation.run(5 * SECOND);
      simulation.setTier(times % 2 === 0 ? "scale" : "basic");
    }
    expect(attempts).toBe(names.length);
  });
});

describe("a writer that repeatedly replaces the Deployment", () => {
  it("causes few writes and a field conflict in the status, but never Ready", async () => {
    const simulation = await started(1);
    const manifest = pipeDeployment({ name: "pipe-0", namespace: "pipes", serviceId: "", cores: 1 });
    simulation.requestSize(1, 4);
    const states = new Set<string>();
    for (let times = 0; times < 300; times += 1) {
      await simulation.run(SECOND);
      simulation.replace("pipe-0", manifest);
      states.add(`${simulation.condition(1)?.type}=${simulation.condition(1)?.reason}`);
    }
    // The annotation, the resize, and three times again.
    expect(resizesOf(simulation, "pipe-0")).toBe(5);
    expect(simulation.cluster.writes.length).toBeLessThanOrEqual(20);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
    expect([...states]).not.toContain("Ready=Scaled");
    // Nothing in the cluster shows a new leader what was tried, so it tries again, with the same bound.
    const before = resizesOf(simulation, "pipe-0");
    simulation.start();
    for (let times = 0; times < 300; times += 1) {
      await simulation.run(SECOND);
      simulation.replace("pipe-0", manifest);
    }
    expect(resizesOf(simulation, "pipe-0")).toBeLessThanOrEqual(before + 4);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
  });
});

describe("a writer that replaces the Deployment after each rollback", () => {
  it("does not make the controller repeat a failed rollout", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    const options = {
      name: "pipe-0",
      namespace: "pipes",
      serviceId: "",
      cores: 1,
      strategy: "Recreate",
    } as const;
    simulation.deploy("pipe-0", 1, { strategy: "Recreate" });
    simulation.cluster.rolloutMs = ({ metadata }) =>
      simulation.cluster.sizeOf(metadata.name) === "8000m/32Gi" ? undefined : SECOND;
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.requestSize(1, 2);
    await simulation.run(MINUTE);
    simulation.requestSize(1, 8);
    for (let times = 0; times < 24 * 60; times += 1) {
      await simulation.run(MINUTE);
      if (simulation.sizes("pipe-0")[0] === "2000m/8Gi")
        simulation.replace("pipe-0", pipeDeployment(options));
    }
    expect(simulation.cluster.writes.filter((line) => line === "pipe-0 8000m/32Gi")).toHaveLength(1);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "RolloutTimeout" });
    // An administrator can ask for another attempt.
    simulation.cluster.rolloutMs = () => SECOND;
    simulation.askToRetry(1);
    await simulation.run(MINUTE);
    expect(simulation.sizes("pipe-0")).toEqual(["8000m/32Gi"]);
  });
});

describe("a webhook that removes the annotation", () => {
  it("causes few writes, and the rollout budget is never exceeded", async () => {
    const simulation = new Simulation({ mostRollouts: 1 });
    for (const service of [1, 2, 3]) {
      simulation.addService(service);
      simulation.deploy(`pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.cluster.isStripping = true;
    simulation.cluster.rolloutMs = () => MINUTE;
    const before = simulation.cluster.writes.length;
    for (const service of [1, 2, 3]) simulation.requestSize(service, 4);
    await simulation.run(DAY);
    expect(simulation.cluster.judge.mostRolling).toBe(1);
    expect(simulation.sizes("pipe-1", "pipe-2", "pipe-3")).toEqual([FOUR, FOUR, FOUR]);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
    expect(simulation.cluster.writes.length - before).toBeLessThanOrEqual(3 * 20);
    simulation.cluster.isStripping = false;
    simulation.askToRetry(1);
    await simulation.run(HOUR);
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
  });
});

describe("a webhook that removes the annotation from a pipe whose resources are no valid size", () => {
  it("causes few writes, and the pipe is rolled out if it cannot be resized in place", async () => {
    const amounts = { cpu: "500m", memory: "512Mi" };
    const resources = { requests: amounts, limits: { memory: amounts.memory } };
    const simulation = new Simulation({ isInPlace: true });
    simulation.addService(1);
    deployResizable(simulation, "pipe-0", 1, 1, { resources });
    simulation.cluster.isStripping = true;
    workloadsOf(simulation).outcome = () => "Infeasible";
    simulation.start();
    // The default of its tier does not restart it.
    await simulation.run(HOUR);
    expect(simulation.cluster.attempts.length).toBeLessThan(10);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    expect(simulation.cluster.attempts.length).toBeLessThan(30);
    expect(simulation.sizes("pipe-0")).toEqual([FOUR]);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
  });
});

describe("another writer of the status", () => {
  const audited: Condition = {
    type: "Audited",
    status: "True",
    reason: "Audited",
    message: "An auditor saw it.",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
  const addsItsCondition = (simulation: Simulation) => {
    simulation.setConditions(1, (all) => [audited, ...all.filter(({ type }) => type !== "Audited")]);
  };
  const removesOurs = (simulation: Simulation) => {
    simulation.setConditions(1, (all) =>
      [...all.filter(({ type }) => type === "Audited"), audited].slice(0, 1),
    );
  };
  const empties = (simulation: Simulation) => simulation.emptyStatus(1);

  /** Runs an action every second, and returns the number of status writes that the controller tried meanwhile. */
  async function statusWritesDuring(simulation: Simulation, ms: number, act: (second: number) => void) {
    const { attempts } = simulation.cluster;
    const before = attempts.length;
    for (let second = 0; second < ms / SECOND; second += 1) {
      act(second);
      await simulation.run(SECOND);
    }
    return attempts.slice(before).filter(({ target }) => target.startsWith("pipescalings/status ")).length;
  }

  it("keeps a condition of its own, and causes no write of the controller", async () => {
    const simulation = await started(1);
    const types = () => simulation.status(1).conditions?.map(({ type }) => type);
    expect(await statusWritesDuring(simulation, HOUR, () => addsItsCondition(simulation))).toBe(0);
    simulation.requestSize(1, 4);
    await simulation.run(SECOND);
    expect(types()).toEqual(["Audited", "Ready", "Reconciling"]);
    await simulation.run(HOUR);
    expect(types()).toEqual(["Audited", "Ready"]);
    expect(simulation.status(1).conditions?.[0]).toEqual(audited);
  });

  it.each<[string, (simulation: Simulation, second: number) => void]>([
    ["removes the conditions of the controller", removesOurs],
    ["empties the status", empties],
    ["does the one and the other", (simulation, second) => [removesOurs, empties][second % 2]?.(simulation)],
  ])(
    "causes few writes if it %s every second, and the status is complete within an hour after it",
    async (_, act) => {
      const simulation = await started(1);
      const during = () => statusWritesDuring(simulation, HOUR, (second) => act(simulation, second));
      expect(await during()).toBeLessThanOrEqual(20);
      expect(await during()).toBeLessThanOrEqual(2);
      await simulation.run(HOUR);
      expect(simulation.status(1)).toMatchObject({
        conditions: expect.arrayContaining([expect.objectContaining({ type: "Ready", status: "True" })]),
        pipes: { updated: 1 },
      });
    },
  );

  it("does not delay the next state of a rescale if it empties the status every second", async () => {
    const simulation = await started(3);
    simulation.cluster.rolloutMs = () => MINUTE;
    await statusWritesDuring(simulation, HOUR, () => empties(simulation));
    simulation.requestSize(1, 4);
    const before = simulation.cluster.writes.length;
    await statusWritesDuring(simulation, 5 * MINUTE, () => empties(simulation));
    const states = simulation.cluster.writes.slice(before).flatMap((line) => {
      const [, state] = /^0{8}-\S+ (.*)/.exec(line) ?? [];
      return state ?? [];
    });
    expect([...new Set(states)]).toEqual(["Progressing 0/3", "Progressing 1/3", "Scaled 3/3"]);
  });
});

describe("a deleted PipeScaling", () => {
  it("is re-created as suspended with the requested size, and no pipe is resized", async () => {
    const simulation = await started(2);
    simulation.requestSize(1, 6);
    await simulation.run(MINUTE);
    simulation.suspend(1, true);
    simulation.deploy("pipe-2", 1, { cores: 1 });
    await simulation.run(MINUTE);
    const sizes = simulation.sizes("pipe-0", "pipe-1", "pipe-2");
    simulation.removeScaling(1);
    await simulation.run(29 * SECOND);
    expect(simulation.hasScaling(1)).toBe(false);
    await simulation.run(DAY);
    expect(simulation.condition(1)).toMatchObject({ status: "Unknown", reason: "Suspended" });
    expect(simulation.sizes("pipe-0", "pipe-1", "pipe-2")).toEqual(sizes);
    simulation.suspend(1, false);
    await simulation.run(HOUR);
    // To resume is no request of a size, and the one before the deletion is not known any more.
    expect(simulation.sizes("pipe-2")).toEqual(["1000m/4Gi"]);
    expect(simulation.status(1).failures).toMatchObject([
      { pipe: "pipe-2", message: expect.stringContaining("no size was requested") },
    ]);
    simulation.requestSize(1, 6);
    await simulation.run(HOUR);
    expect(simulation.sizes("pipe-0", "pipe-1", "pipe-2")).toEqual([
      "6000m/24Gi",
      "6000m/24Gi",
      "6000m/24Gi",
    ]);
  });
});

describe("removing a pipe", () => {
  it("does not complete a rescale a second time", async () => {
    const simulation = await started(2);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    const { completedAt } = simulation.status(1).propagation ?? {};
    const events = simulation.events.length;
    await simulation.run(30 * DAY);
    simulation.cluster.remove("pipe-1");
    await simulation.run(HOUR);
    expect(simulation.status(1).propagation?.completedAt).toBe(completedAt);
    expect(simulation.events.length).toBe(events);
  });
});

describe("a pipe that cannot be resized", () => {
  it("causes a single Event if its service has no PipeScaling", async () => {
    const simulation = new Simulation();
    simulation.setTier("gold");
    simulation.addService(1);
    simulation.deploy("pipe-1", 1);
    simulation.deploy("pipe-2", 2);
    simulation.start();
    await simulation.run(HOUR);
    simulation.setImage("pipe-1", "another");
    simulation.setImage("pipe-2", "another");
    await simulation.run(HOUR);
    const events = simulation.events.map(
      ({ regarding, reason }) => `${regarding.kind} ${regarding.name} ${reason}`,
    );
    expect(events.sort()).toEqual(["Deployment pipe-1 UnknownTier", "Deployment pipe-2 UnknownService"]);
  });
});

describe("the rollout window of a service", () => {
  it("holds back rollouts until it opens, and services without a window use the window of their organization", async () => {
    const simulation = new Simulation();
    // The clock starts on a Thursday at midnight UTC.
    const window = '{schedule: "0 2 * * *", duration: 1h}';
    simulation.addService(1, { rolloutWindow: window });
    simulation.addService(2);
    for (const service of [1, 2]) simulation.deploy(`pipe-${service}`, service, { cores: 2 });
    simulation.setTier("basic", { rolloutWindow: '{schedule: "0 4 * * *", duration: 1h}' });
    simulation.start();
    await simulation.run(SECOND);
    for (const service of [1, 2]) simulation.requestDefaultSize(service);
    await simulation.run(2 * HOUR - 2 * SECOND);
    expect(simulation.sizes("pipe-1", "pipe-2")).toEqual(["2000m/8Gi", "2000m/8Gi"]);
    expect(simulation.condition(1)).toMatchObject({
      reason: "WaitingForWindow",
      message: expect.stringContaining("which opens at 2026-01-01T02:00:00Z"),
    });
    await simulation.run(MINUTE);
    expect(simulation.sizes("pipe-1", "pipe-2")).toEqual([ONE, "2000m/8Gi"]);
    await simulation.run(2 * HOUR);
    expect(simulation.sizes("pipe-2")).toEqual([ONE]);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    expect(simulation.sizes("pipe-1")).toEqual([ONE]);
    await simulation.run(22 * HOUR);
    expect(simulation.sizes("pipe-1")).toEqual([FOUR]);
  });
});
