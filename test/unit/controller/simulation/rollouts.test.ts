import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { RETRY_ANNOTATION } from "../../../../src/controller/names.ts";
import { ControllerMetrics } from "../../../../src/controller/report/metrics.ts";
import { formatScalingRequest, REQUEST_ANNOTATION } from "../../../../src/crd/scaling-request.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { refusal } from "../../../support/simulation/cluster.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const [ONE, TWO, FOUR] = ["1000m/4Gi", "2000m/8Gi", "4000m/16Gi"];
/** A change by another writer. */
const OTHERS = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A simulation of one service with these pipes of one core each, after the controller has settled. */
async function settled(names: readonly string[], simulation = new Simulation()): Promise<Simulation> {
  simulation.addService(1);
  for (const name of names) simulation.deploy(name, 1);
  simulation.start();
  await simulation.run(2 * SECOND);
  return simulation;
}

/** Returns how often the controller applied the size to the pipe. */
function triesOf({ cluster }: Simulation, name: string, size: string | undefined): number {
  return cluster.writes.filter((line) => line === `${name} ${size}`).length;
}

describe("the rollout budget", () => {
  it("starts a waiting rollout as soon as another rollout ends, even if it is a canary", async () => {
    const simulation = new Simulation({ mostRollouts: 2 });
    for (const service of [1, 2, 3, 4, 5]) {
      simulation.addService(service);
      simulation.deploy(`pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(2 * SECOND);
    for (const service of [1, 2, 3, 4, 5]) simulation.requestSize(service, 2);
    await simulation.run(10 * SECOND);
    expect(simulation.sizes("pipe-1", "pipe-2", "pipe-3", "pipe-4", "pipe-5")).toEqual(Array(5).fill(TWO));
    expect(simulation.cluster.judge.mostRolling).toBe(2);
  });

  it("counts a rollback until it ends", async () => {
    const simulation = new Simulation({ mostRollouts: 1 });
    for (const service of [1, 2]) {
      simulation.addService(service);
      simulation.deploy(`pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(2 * SECOND);
    const { cluster, rolloutTimeoutMs } = simulation;
    // The rollout of the first pipe never completes, and its rollback takes four minutes, less than the delay of a retry.
    cluster.rolloutMs = ({ metadata: { name } }) => {
      if (name === "pipe-2") return SECOND;
      return cluster.sizeOf(name) === FOUR ? undefined : 4 * MINUTE;
    };
    simulation.requestSize(1, 4);
    await simulation.run(rolloutTimeoutMs - MINUTE);
    expect(simulation.sizes("pipe-1")).toEqual([FOUR]);
    simulation.requestSize(2, 4);
    await simulation.run(4 * MINUTE);
    expect(simulation.sizes("pipe-1", "pipe-2")).toEqual([ONE, ONE]);
    await simulation.run(2 * MINUTE);
    expect(simulation.sizes("pipe-1", "pipe-2")).toEqual([ONE, FOUR]);
    expect(cluster.judge.mostRolling).toBe(1);
  });

  it("still counts a rollout while its old pods terminate", async () => {
    const simulation = new Simulation({ mostRollouts: 1 });
    for (const service of [1, 2, 3]) {
      simulation.addService(service);
      simulation.deploy(`pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(2 * SECOND);
    for (const service of [1, 2, 3]) simulation.requestSize(service, 2);
    await simulation.run(MINUTE);
    expect(simulation.sizes("pipe-1", "pipe-2", "pipe-3")).toEqual([TWO, TWO, TWO]);
    simulation.cluster.rolloutMs = () => MINUTE;
    for (const service of [1, 2, 3]) {
      simulation.cluster.report(`pipe-${service}`, { terminatingReplicas: 1 });
      simulation.requestSize(service, 4);
    }
    await simulation.run(10 * SECOND);
    expect(simulation.cluster.judge.mostRolling).toBe(1);
  });

  it.each([
    ["keeps running", () => undefined],
    ["restarts", (simulation: Simulation) => simulation.start()],
  ])(
    "still counts a rollout whose annotation another writer removes, while the controller %s",
    async (_, then) => {
      const simulation = new Simulation({ mostRollouts: 1 });
      for (const service of [1, 2]) {
        simulation.addService(service);
        simulation.deploy(`pipe-${service}`, service);
      }
      simulation.start();
      await simulation.run(2 * SECOND);
      simulation.cluster.rolloutMs = () => MINUTE;
      simulation.requestSize(1, 4);
      await simulation.run(SECOND);
      simulation.cluster.removeAnnotation("pipe-1");
      then(simulation);
      simulation.requestSize(2, 4);
      await simulation.run(30 * SECOND);
      expect(simulation.sizes("pipe-1", "pipe-2")).toEqual([FOUR, ONE]);
      await simulation.run(MINUTE);
      expect(simulation.sizes("pipe-1", "pipe-2")).toEqual([FOUR, FOUR]);
      expect(simulation.cluster.judge.mostRolling).toBe(1);
    },
  );

  it("starts a waiting rollout when another rollout times out", async () => {
    const simulation = new Simulation({ mostRollouts: 1 });
    for (const service of [1, 2]) simulation.addService(service);
    simulation.deploy("stuck", 1, { cores: 2 });
    simulation.deploy("other", 2, { cores: 2 });
    simulation.cluster.rolloutMs = ({ metadata }) => (metadata.name === "stuck" ? undefined : SECOND);
    simulation.start();
    await simulation.run(2 * SECOND);
    for (const service of [1, 2]) simulation.requestSize(service, 1);
    await simulation.run(10 * MINUTE);
    // A change by the owner restarts the timeout of the rollout, so it leaves the rollout budget before it fails.
    simulation.setImage("stuck", "registry.example/pipe:2");
    expect(simulation.sizes("stuck", "other")).toEqual([ONE, TWO]);
    await simulation.run(6 * MINUTE);
    expect(simulation.sizes("stuck", "other")).toEqual([ONE, ONE]);
  });
});

describe("a pipe that has come up", () => {
  it.each<[string, (simulation: Simulation) => void]>([
    ["is scaled", ({ cluster }) => cluster.change("a", { replicas: 2 })],
    ["gets a new image", (simulation) => simulation.setImage("a", "registry.example/pipe:2")],
    [
      "gets an image that never starts",
      (simulation) => {
        simulation.cluster.rolloutMs = () => undefined;
        simulation.setImage("a", "registry.example/pipe:broken");
      },
    ],
  ])("keeps its size when it %s later while another pipe of its service fails", async (_, change) => {
    const simulation = await settled(["a", "b"]);
    const { cluster } = simulation;
    cluster.rolloutMs = ({ metadata }) => (metadata.name === "b" ? undefined : MINUTE);
    simulation.requestSize(1, 4);
    await simulation.run(20 * MINUTE);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "RolloutTimeout" });
    change(simulation);
    await simulation.run(HOUR);
    expect(cluster.judge.wronged).toEqual([]);
    expect(simulation.sizes("a")).toEqual([FOUR]);
  });

  it("keeps its size when another size is requested and superseded before it is applied", async () => {
    const simulation = await settled(["a", "b"]);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    simulation.cluster.rolloutMs = () => MINUTE;
    simulation.requestSize(1, 8);
    await simulation.run(SECOND);
    expect(simulation.sizes("a", "b")).toEqual(["8000m/32Gi", FOUR]);
    simulation.cluster.change("b", { replicas: 2 });
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    expect(simulation.cluster.judge.wronged).toEqual([]);
    expect(simulation.sizes("a", "b")).toEqual([FOUR, FOUR]);
  });

  it("keeps its size when it is scaled from zero and available within a second", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    simulation.deploy("a", 1, { replicas: 0 });
    simulation.cluster.rolloutMs = () => MINUTE;
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    simulation.cluster.change("a", { replicas: 2 });
    await simulation.run(HOUR);
    expect(simulation.cluster.judge.wronged).toEqual([]);
  });

  it.each([
    ["starts", MINUTE],
    ["never starts", undefined],
  ])(
    "keeps its size when its PipeScaling is deleted while its owner rolls out an image that %s",
    async (_, rolloutMs) => {
      const simulation = await settled(["a"]);
      simulation.requestSize(1, 4);
      await simulation.run(DAY);
      simulation.cluster.rolloutMs = () => rolloutMs;
      simulation.setImage("a", "registry.example/pipe:2");
      await simulation.run(5 * SECOND);
      simulation.removeScaling(1);
      await simulation.run(HOUR);
      expect(simulation.cluster.judge.wronged).toEqual([]);
      expect(simulation.sizes("a")).toEqual([FOUR]);
      expect(simulation.hasScaling(1)).toBe(true);
    },
  );

  it("is not reported as done while its size is reapplied after a change by another writer", async () => {
    const simulation = await settled(["a"]);
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.type).toBe("Ready");
    simulation.cluster.rolloutMs = () => MINUTE;
    simulation.setResources("a", OTHERS);
    await simulation.run(10 * SECOND);
    expect(simulation.sizes("a")).toEqual([FOUR]);
    expect(simulation.condition(1)?.type).toBe("Reconciling");
    await simulation.run(2 * MINUTE);
    expect(simulation.condition(1)?.type).toBe("Ready");
  });
});

describe("a pipe whose rollout stops its old pods first", () => {
  const TOO_SMALL = [aNode("small", { cpu: "3", memory: "64Gi" })];

  async function tooLarge(): Promise<Simulation> {
    const simulation = new Simulation();
    simulation.addService(1);
    simulation.deploy("a", 1, { strategy: "Recreate" });
    simulation.cluster.nodes = TOO_SMALL;
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    return simulation;
  }

  it("is not resized until a node is large enough, even by the next controller", async () => {
    const simulation = await tooLarge();
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NoNodeLargeEnough" });
    expect(simulation.status(1).failures).toMatchObject([{ attempts: 1 }]);
    // The next controller makes an attempt of its own, which is a dry run.
    simulation.start();
    await simulation.run(4 * MINUTE);
    expect(simulation.status(1).failures).toMatchObject([{ attempts: 1 }]);
    await simulation.run(2 * MINUTE);
    expect(simulation.status(1).failures).toMatchObject([{ attempts: 2 }]);
    expect(triesOf(simulation, "a", FOUR)).toBe(0);
    simulation.cluster.nodes = [...TOO_SMALL, aNode("large", { cpu: "4", memory: "16Gi" })];
    await simulation.run(10 * MINUTE);
    expect(simulation.sizes("a")).toEqual([FOUR]);
    expect(simulation.condition(1)?.type).toBe("Ready");
  });

  it("is resized without a check of the nodes if a retry is requested", async () => {
    const simulation = await tooLarge();
    simulation.askToRetry(1);
    await simulation.run(MINUTE);
    expect(simulation.sizes("a")).toEqual([FOUR]);
  });

  it("is checked against the nodes, unlike a pipe with another strategy", async () => {
    const simulation = await settled(["a", "b"]);
    simulation.cluster.nodes = TOO_SMALL;
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.sizes("a", "b")).toEqual([FOUR, FOUR]);
  });

  it("waits and reports the error while the nodes cannot be listed", async () => {
    const simulation = await tooLarge();
    const { cluster } = simulation;
    const error = new KubeApiError("GET /api/v1/nodes", 500, JSON.stringify({ message: "etcd is slow" }));
    cluster.nodes = [aNode("large", { cpu: "8", memory: "64Gi" })];
    cluster.fault = ({ path }) => (path.endsWith("/nodes") ? { error } : undefined);
    // The list of nodes is cached for a minute.
    await simulation.run(MINUTE);
    simulation.requestSize(1, 2);
    await simulation.run(2 * SECOND);
    expect(simulation.condition(1)).toMatchObject({ type: "Reconciling", reason: "WriteFailed" });
    expect(simulation.condition(1)?.message).toContain("the nodes cannot be listed: etcd is slow");
    expect(simulation.sizes("a")).toEqual([ONE]);
    cluster.fault = () => undefined;
    await simulation.run(MINUTE);
    expect(simulation.sizes("a")).toEqual([TWO]);
  });

  it("is resized without a check of the nodes if a webhook does not support dry runs", async () => {
    const simulation = await tooLarge();
    const message = 'admission webhook "w" does not support dry run';
    const error = new KubeApiError("PATCH", 400, JSON.stringify({ message }));
    simulation.cluster.fault = ({ query }) => (query?.["dryRun"] === undefined ? undefined : { error });
    simulation.requestSize(1, 8);
    await simulation.run(MINUTE);
    expect(simulation.sizes("a")).toEqual(["8000m/32Gi"]);
  });
});

describe("a pipe with visible pods that stops its old pods first", () => {
  const STRATEGIES = ["Rollout", "InPlaceOrRollout"] as const;
  const withFaultyDryRuns = async (strategy: (typeof STRATEGIES)[number], code: number, message: string) => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
    group.simulation.start(strategy);
    await group.run(5 * SECOND);
    const error = new KubeApiError("PATCH", code, JSON.stringify({ message }));
    group.cluster.fault = ({ query, path }) =>
      query?.["dryRun"] !== undefined && path.includes("/deployments/") ? { error } : undefined;
    group.request(2);
    await group.run(5 * MINUTE);
    return group;
  };

  it.each(STRATEGIES)(
    "is resized without a search for room if a webhook does not support dry runs (%s)",
    async (strategy) => {
      const group = await withFaultyDryRuns(strategy, 400, 'admission webhook "w" does not support dry run');
      group.expectSettled(2);
      expect(group.workloads.replaced).toHaveLength(1);
    },
  );

  it.each(STRATEGIES)("keeps its pods while the dry run fails otherwise (%s)", async (strategy) => {
    const group = await withFaultyDryRuns(strategy, 500, "etcd is slow");
    expect(group.workloads.replaced).toEqual([]);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Reconciling" });
    group.cluster.fault = () => undefined;
    await group.run(10 * MINUTE);
    group.expectSettled(2);
  });
});

describe("a pipe that cannot run its size", () => {
  it("is rolled back to the resources that its owner set, even if they do not form a valid size", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    simulation.deploy("a", 1, { strategy: "Recreate" });
    simulation.setResources("a", { requests: { cpu: "500m", memory: "512Mi" }, limits: { memory: "1Gi" } });
    await simulation.run(2 * SECOND);
    simulation.cluster.rolloutMs = () => undefined;
    simulation.start();
    await simulation.run(SECOND);
    simulation.requestSize(1, 1);
    await simulation.run(SECOND);
    expect(simulation.sizes("a")).toEqual([ONE]);
    await simulation.run(HOUR);
    expect(simulation.sizes("a")).toEqual([
      '{"requests":{"cpu":"500m","memory":"512Mi"},"limits":{"memory":"1Gi"}}',
    ]);
    // Even if a new controller knows only the annotations.
    simulation.removeScaling(1);
    simulation.start();
    await simulation.run(DAY);
    expect(triesOf(simulation, "a", ONE)).toBe(1);
    // No controller observed the deletion, so the PipeScaling may have been suspended.
    expect(simulation.condition(1)).toMatchObject({ status: "Unknown", reason: "Suspended" });
  });

  it("is rolled back to the last good size, even while its owner rolls out another change", async () => {
    const simulation = await settled(["a", "b"]);
    const { cluster } = simulation;
    // A pipe that fails keeps the rescale of the service from completing.
    cluster.rolloutMs = ({ metadata }) => (metadata.name === "b" ? undefined : SECOND);
    simulation.requestSize(1, 2);
    await simulation.run(HOUR);
    cluster.rolloutMs = () => undefined;
    simulation.setImage("a", "registry.example/pipe:2");
    await simulation.run(SECOND);
    cluster.remove("b");
    simulation.requestSize(1, 4);
    await simulation.run(SECOND);
    expect(simulation.sizes("a")).toEqual([FOUR]);
    await simulation.run(HOUR);
    expect(simulation.sizes("a")).toEqual([TWO]);
  });

  it("is rolled back to the last good size, even if it waited for the canary", async () => {
    const simulation = await settled(["a", "b"]);
    const { cluster } = simulation;
    simulation.requestSize(1, 2);
    await simulation.run(MINUTE);
    cluster.rolloutMs = ({ metadata }) => (metadata.name === "b" ? undefined : MINUTE);
    simulation.requestSize(1, 4);
    await simulation.run(10 * SECOND);
    simulation.setImage("b", "registry.example/pipe:2");
    await simulation.run(MINUTE);
    expect(simulation.sizes("a", "b")).toEqual([FOUR, FOUR]);
    await simulation.run(16 * MINUTE);
    expect(simulation.sizes("a", "b")).toEqual([FOUR, TWO]);
  });

  it("is reported as stalled if the last good size is requested and it does not come up with that size either", async () => {
    const simulation = await settled(["a"]);
    simulation.requestSize(1, 2);
    await simulation.run(MINUTE);
    simulation.cluster.rolloutMs = () => undefined;
    simulation.requestSize(1, 4);
    await simulation.run(15 * MINUTE + 10 * SECOND);
    expect(simulation.sizes("a")).toEqual([TWO]);
    simulation.requestSize(1, 2);
    await simulation.run(10 * SECOND);
    expect(simulation.condition(1)?.type).toBe("Reconciling");
    await simulation.run(20 * MINUTE);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "RolloutTimeout" });
  });
});

describe("a retry", () => {
  it("happens once at the requested time if the time is in the future, and its failure is reported", async () => {
    const simulation = await settled(["a"]);
    simulation.cluster.fault = (_, pipe) => pipe && refusal("not here");
    simulation.requestSize(1, 4);
    await simulation.run(30 * SECOND);
    const before = simulation.cluster.writes.length;
    simulation.askToRetry(1, 5 * SECOND);
    await simulation.run(4 * SECOND);
    expect(simulation.status(1).failures).toMatchObject([{ attempts: 1 }]);
    await simulation.run(10 * SECOND);
    expect(simulation.condition(1)).toMatchObject({
      type: "Stalled",
      message:
        "a could not be resized to 4 cpu / 16 Gi: not here. Attempt 2; the next one is at 2026-01-01T00:10:37Z. 0 of 1 pipes run 4 cpu / 16 Gi.",
    });
    expect(simulation.status(1).failures).toMatchObject([{ attempts: 2 }]);
    // One status update announces the next attempt, and the other one reports its result.
    expect(simulation.cluster.writes.length - before).toBe(2);
  });

  it("does not replace the retry delays if its local time with a Z suffix is hours ahead", async () => {
    const simulation = await settled(["a"]);
    simulation.cluster.rolloutMs = () => undefined;
    simulation.requestSize(1, 4);
    await simulation.run(SECOND);
    simulation.askToRetry(1, 9 * HOUR);
    await simulation.run(9 * HOUR);
    expect(triesOf(simulation, "a", FOUR)).toBeLessThan(14);
  });

  it("is rejected with an example of a valid time if its time is malformed", async () => {
    const simulation = await settled(["a"]);
    simulation.cluster.fault = (_, pipe) => pipe && refusal("not here");
    simulation.requestSize(1, 4);
    const [name = ""] = simulation.cluster.scalings.keys();
    simulation.cluster.patchScaling(name, undefined, { [RETRY_ANNOTATION]: "now" });
    await simulation.run(SECOND);
    expect(simulation.condition(1)?.message).toMatch(
      /The annotation .*retry-requested-at is not a valid time: write it as 2026-01-31T12:00:00Z\.$/,
    );
  });

  it("happens as soon as the Deployment changes if the size was rejected", async () => {
    const simulation = await settled(["a"]);
    const { cluster } = simulation;
    cluster.fault = (_, pipe) =>
      pipe?.spec.replicas === 1 ? refusal("only for pipes of two replicas") : undefined;
    simulation.requestSize(1, 4);
    await simulation.run(3 * HOUR);
    expect(simulation.sizes("a")).toEqual([ONE]);
    cluster.change("a", { replicas: 2 });
    await simulation.run(SECOND);
    expect(simulation.sizes("a")).toEqual([FOUR]);
  });
});

describe("a field conflict", () => {
  it("is resolved like the first one after months without a conflict", async () => {
    const simulation = await settled(["a"]);
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    for (const _ of [1, 2, 3, 4, 5, 6]) {
      simulation.setResources("a", OTHERS);
      await simulation.run(90 * DAY);
      expect(simulation.sizes("a")).toEqual([FOUR]);
    }
  });
});

describe("a waiting service", () => {
  it("gets the part of the rollout budget that another service reserved and did not need", async () => {
    const simulation = new Simulation({ mostRollouts: 1 });
    for (const service of [1, 2]) simulation.addService(service);
    simulation.deploy("refused", 1);
    simulation.deploy("other", 2);
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.cluster.fault = (_, pipe) => (pipe?.metadata.name === "refused" ? refusal("no") : undefined);
    simulation.requestSize(1, 4);
    simulation.requestSize(2, 4);
    await simulation.run(MINUTE);
    expect(simulation.sizes("refused", "other")).toEqual([ONE, FOUR]);
  });

  it("continues after the timeout if old pods never terminate", async () => {
    const names = ["a", "b", "c", "d", "e", "f"];
    const simulation = await settled(names);
    const { cluster } = simulation;
    simulation.requestSize(1, 4);
    // The old pods of the first three pipes are on a dead node.
    for (let step = 0; step < 60; step += 1) {
      await simulation.run(100);
      for (const name of ["a", "b", "c"])
        if (cluster.judge.cameUp.has(name) && !cluster.deployments.get(name)?.status?.terminatingReplicas)
          cluster.report(name, { terminatingReplicas: 1 });
    }
    expect(simulation.sizes("f")).toEqual([ONE]);
    await simulation.run(HOUR);
    expect(simulation.sizes(...names)).toEqual(names.map(() => FOUR));
  });
});

describe("the report on a service", () => {
  it("is written in the same reconciliation, even if writes to pipes fail", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    for (const name of ["broken", "refused"]) simulation.deploy(name, 1, { replicas: 0 });
    simulation.start();
    await simulation.run(2 * SECOND);
    const broken = {
      error: new KubeApiError("PATCH", 500, JSON.stringify({ message: "failed calling webhook" })),
    };
    simulation.cluster.fault = (_, pipe) =>
      pipe && (pipe.metadata.name === "refused" ? refusal("not here") : broken);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    const { observedGeneration, failures } = simulation.status(1);
    expect(observedGeneration).toBe(2);
    expect(failures).toMatchObject([
      { pipe: "refused", reason: "Refused", message: "not here" },
      { pipe: "broken", reason: "WriteFailed", message: "failed calling webhook" },
    ]);
  });

  it("has a message that is truncated between characters to fit in the status", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    const names = Array.from({ length: 25 }, (_, index) => `pipe-${index}`);
    for (const name of names) simulation.deploy(name, 1, { replicas: 0 });
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.cluster.fault = (_, pipe) => pipe && refusal(`x${"🙂".repeat(50_000)}`);
    simulation.requestSize(1, 4);
    await simulation.run(SECOND);
    const status = JSON.stringify(simulation.status(1));
    expect(status.length).toBeLessThan(50_000);
    expect(status).not.toMatch(/\\ud83d/);
  });

  it("counts the duration of a rescale once, even if a pipe is added later", async () => {
    const registry = new Registry();
    const simulation = new Simulation();
    const metrics = new ControllerMetrics(registry, simulation.clock);
    const observed = await settled(["a"], new Simulation({ metrics }));
    observed.requestSize(1, 4);
    await observed.run(14 * DAY);
    observed.deploy("b", 1);
    await observed.run(MINUTE);
    const [, seconds] = /pipe_scaling_propagation_seconds_sum (\S+)/.exec(await registry.metrics()) ?? [];
    expect(Number(seconds)).toBeLessThan(100);
  });

  describe("counts the duration", () => {
    /** `count`: of the durations that were counted since the controller settled. */
    async function counted(options: Omit<Parameters<typeof PipeGroup.start>[0], "metrics">) {
      const registry = new Registry();
      const metrics = new ControllerMetrics(registry, { now: () => Date.now() });
      const group = await PipeGroup.start({ ...options, metrics });
      const count = async () =>
        Number(/propagation_seconds_count (\S+)/.exec(await registry.metrics())?.[1] ?? Number.NaN);
      return { group, count };
    }

    function request(group: PipeGroup, cores: number, requestId: string): void {
      const { cpuMillicores, memoryGib } = sizeOfCores(cores);
      const size = { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib };
      const requestedAt = new Date(group.simulation.clock.now()).toISOString();
      const annotation = formatScalingRequest({ ...size, requestId, apiKey: "key", requestedAt });
      group.cluster.patchScaling(idOf(1), size, { [REQUEST_ANNOTATION]: annotation });
    }

    it.each(["InPlaceOrRollout", "Rollout"] as const)(
      "of each rescale with the strategy %s, and of no adoption and no second request for a size",
      async (strategy) => {
        const { group, count } = await counted({ pipes: 2 });
        group.simulation.start(strategy);
        await group.run(5 * SECOND);
        expect(await count()).toBe(0);
        for (const [index, cores] of [4, 2].entries()) {
          for (const requestId of ["a", "b"]) {
            request(group, cores, requestId);
            await group.run(5 * MINUTE);
            expect(group.simulation.status(1).propagation?.requestId).toBe(requestId);
            group.expectSettled(cores);
            expect(await count()).toBe(index + 1);
          }
        }
      },
    );

    it("of no rescale of a service that runs nothing", async () => {
      const { group, count } = await counted({ pipes: 2, replicas: 0 });
      group.request(4);
      await group.run(MINUTE);
      group.expectSettled(4);
      for (const name of group.names) group.cluster.remove(name);
      group.request(2);
      await group.run(MINUTE);
      const { pipes, propagation } = group.simulation.status(1);
      expect([pipes?.total, propagation?.completedAt]).toEqual([0, expect.any(String)]);
      expect(await count()).toBe(0);
    });
  });

  /** `age`: of the oldest rescale in progress, in seconds. */
  async function rescaledWithMetrics() {
    const registry = new Registry();
    const metrics = new ControllerMetrics(registry, { now: () => simulation.clock.now() });
    const age = async () =>
      Number(/oldest_propagation_seconds (\d\S*)/.exec(await registry.metrics())?.[1] ?? Number.NaN);
    const simulation: Simulation = await settled(["a"], new Simulation({ metrics }));
    simulation.requestSize(1, 4);
    return { simulation, age };
  }

  it("counts as in progress while the writes to a pipe that was added later fail", async () => {
    const { simulation, age } = await rescaledWithMetrics();
    await simulation.run(DAY);
    expect(await age()).toBe(0);
    const message = 'deployments.apps "b" is forbidden: User "a" cannot patch resource "deployments"';
    const error = new KubeApiError("PATCH", 403, JSON.stringify({ message }));
    simulation.cluster.fault = (_, pipe) => (pipe?.metadata.name === "b" ? { error } : undefined);
    simulation.deploy("b", 1);
    await simulation.run(2 * HOUR);
    expect(simulation.status(1).propagation?.completedAt).toBeDefined();
    expect(simulation.condition(1)?.type).toBe("Reconciling");
    expect(Math.abs((await age()) - 7200)).toBeLessThan(10);
    simulation.cluster.fault = () => undefined;
    await simulation.run(HOUR);
    expect(await age()).toBe(0);
  });

  it("counts as in progress since its rollout window opened if a pipe was added long before", async () => {
    const { simulation, age } = await rescaledWithMetrics();
    await simulation.run(HOUR);
    // The clock starts on a Thursday.
    simulation.addService(1, { rolloutWindow: '{schedule: "0 0 * * 6", duration: 1h}' });
    simulation.cluster.rolloutMs = () => 10 * MINUTE;
    simulation.deploy("b", 1);
    await simulation.run(46 * HOUR);
    expect(simulation.condition(1)).toMatchObject({ type: "Reconciling", reason: "WaitingForWindow" });
    expect(await age()).toBe(0);
    await simulation.run(HOUR + 5 * MINUTE);
    expect(simulation.condition(1)).toMatchObject({ type: "Reconciling", reason: "Progressing" });
    expect(Math.abs((await age()) - 300)).toBeLessThan(10);
  });

  it("counts the service as stalled if its record is malformed", async () => {
    const registry = new Registry();
    const metrics = new ControllerMetrics(registry, new Simulation().clock);
    const simulation = await settled(["a"], new Simulation({ metrics }));
    simulation.addService(1, { namespace: "No Namespace" });
    await simulation.run(SECOND);
    expect(await registry.metrics()).toContain('pipe_scaling_services{condition="Stalled"} 1');
  });
});

describe("deleting a PipeScaling", () => {
  it("resizes no pipe, not even one that was deployed with the requested size", async () => {
    const simulation = await settled(["blue"]);
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    simulation.deploy("green", 1, { cores: 4 });
    await simulation.run(MINUTE);
    simulation.cluster.remove("blue");
    await simulation.run(MINUTE);
    expect(simulation.cluster.writes.filter((line) => line === "green noted")).toHaveLength(1);
    simulation.removeScaling(1);
    await simulation.run(MINUTE);
    expect(simulation.sizes("green")).toEqual([FOUR]);
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
  });

  it("resizes no pipe even if no controller observes the deletion, regardless of which annotations were removed", async () => {
    const names = ["blue", "green", "red"];
    const simulation = await settled(names);
    simulation.requestSize(1, 4);
    await simulation.run(5 * MINUTE);
    for (const removed of [[], ["blue"], ["blue", "green"], names]) {
      for (const name of removed) simulation.cluster.removeAnnotation(name);
      simulation.stop();
      simulation.removeScaling(1);
      simulation.start();
      await simulation.run(5 * MINUTE);
      expect(simulation.sizes(...names)).toEqual([FOUR, FOUR, FOUR]);
      expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
    }
  });
});
