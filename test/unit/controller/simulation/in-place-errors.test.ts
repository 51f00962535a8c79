import { describe, expect, it } from "vitest";
import { actionOf } from "../../../../src/kube/call.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { LOST_ANSWER } from "../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { deployResizable, Scenario, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";
import { expectTruth } from "../../../support/simulation/truth.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Maximum number of writes to one object in the first hour. */
const MAX_WRITES = 20;
const MESSAGE = "failed calling webhook";
const ERRORS = [
  ["immediately", 500, 5],
  ["after 6 s", 500, 6 * SECOND],
  ["after 25 s", 500, 25 * SECOND],
  ["immediately with a rejection by a policy", 403, 5],
] as const;
const FAILING = ERRORS.filter(([, code]) => code === 500);

/** Makes the writes fail from now on. Returns how many there were. */
function failing(
  { simulation: { cluster } }: Scenario,
  code: number,
  latencyMs: number,
  isHit: (request: KubeRequest) => boolean,
) {
  const state = { count: 0 };
  cluster.latencyMs = (request) => (isHit(request) ? latencyMs : 5);
  cluster.fault = (request) => {
    if (!isHit(request)) return undefined;
    state.count += 1;
    return { error: new KubeApiError("PATCH", code, JSON.stringify({ message: MESSAGE })) };
  };
  return state;
}

/** For another request than those that are counted. */
const BROKEN = { error: new KubeApiError("PATCH", 500, JSON.stringify({ message: MESSAGE })) };

const textOf = ({ body }: KubeRequest) => JSON.stringify(body ?? {});

describe("a resize of a pod that a webhook denies", () => {
  it.each([403, 404, 409])(
    "leads to a rollout with the words of the webhook if the code is %i",
    async (code) => {
      const scenario = new Scenario(1);
      await scenario.start();
      const { simulation } = scenario;
      const message = 'admission webhook "pods.example.com" denied the request: no resizes today';
      simulation.cluster.fault = ({ path }) =>
        path.endsWith("/resize")
          ? { error: new KubeApiError("PATCH", code, JSON.stringify({ message })) }
          : undefined;
      simulation.requestSize(1, 4);
      await simulation.run(MINUTE);
      expect(simulation.condition(1)?.reason).toBe("Scaled");
      expect(simulation.status(1).pipes?.fallbacks?.[0]).toMatchObject({
        reason: "Refused",
        message: expect.stringContaining(message),
      });
    },
  );
});

describe("an empty ReplicaSet that has the size and cannot be deleted", () => {
  /** Two pipes with four cores, whose empty ReplicaSets have one core. */
  async function withEmptyReplicaSets(): Promise<Scenario> {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation, workloads } = scenario;
    failing(scenario, 405, 5, ({ path }) => path.endsWith("/resize"));
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    simulation.fallbacks.length = 0;
    workloads.replaced.length = 0;
    return scenario;
  }

  const isDeletion = ({ method, path }: KubeRequest) =>
    method === "DELETE" && path.includes("/replicasets/pipe-0-");

  it.each(FAILING)(
    "delays the template of its pipe and restarts no pod if the writes fail %s",
    async (_how, code, latencyMs) => {
      const scenario = await withEmptyReplicaSets();
      const { simulation, workloads } = scenario;
      const deletions = failing(scenario, code, latencyMs, isDeletion);
      simulation.requestSize(1, 1);
      // Until the next attempt after the second one.
      await simulation.run(MINUTE);
      expect(simulation.condition(1)).toMatchObject({ reason: "WriteFailed" });
      expect(simulation.condition(1)?.message).toContain(MESSAGE);
      expect(simulation.status(1).pipes?.pending?.[0]).toMatchObject({ name: "pipe-0", state: "Resized" });
      await simulation.run(HOUR - MINUTE);
      expect(simulation.condition(1)?.message).toContain(MESSAGE);
      expect(simulation.sizes("pipe-0", "pipe-1")).toEqual(["4000m/16Gi", "1000m/4Gi"]);
      expect(scenario.podSizes()).toEqual(["1000m/4Gi", "1000m/4Gi"]);
      expect(deletions.count).toBeGreaterThan(5);
      expect(deletions.count).toBeLessThanOrEqual(MAX_WRITES);
      expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(false);
      simulation.cluster.fault = () => undefined;
      await simulation.run(6 * MINUTE);
      expect(simulation.condition(1)?.reason).toBe("Scaled");
      expect(simulation.status(1).pipes?.resizedBy).toEqual({ "pipe-0": "InPlace", "pipe-1": "InPlace" });
      expect(simulation.fallbacks).toEqual([]);
      expect(workloads.replaced).toEqual([]);
    },
  );

  it("leads to a rollout if a policy refuses the deletion", async () => {
    const scenario = await withEmptyReplicaSets();
    const { simulation, workloads } = scenario;
    const before = scenario.pods("pipe-0")[0]?.metadata.uid;
    const deletions = failing(scenario, 403, 5, isDeletion);
    simulation.requestSize(1, 1);
    await simulation.run(MINUTE);
    expect(deletions.count).toBe(1);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual(["pipe-0 Refused"]);
    expect(simulation.status(1).pipes).toMatchObject({
      resizedBy: { "pipe-0": "Rollout", "pipe-1": "InPlace" },
      fallbacks: [{ pipe: "pipe-0", reason: "Refused", message: MESSAGE }],
    });
    expect(scenario.pods("pipe-0").map(({ metadata }) => metadata.uid)).not.toEqual([before]);
    expect(workloads.replaced).not.toContain("pipe-1");
    expect(scenario.podSizes()).toEqual(["1000m/4Gi", "1000m/4Gi"]);
  });
});

describe("a Deployment that cannot be resumed after the commit", () => {
  it.each(ERRORS)(
    "gets few writes and is reported if they fail %s, and other pipes do not wait for it",
    async (_how, code, latencyMs) => {
      const scenario = new Scenario(1);
      await scenario.start();
      const { simulation, workloads } = scenario;
      const { cluster } = simulation;
      const writes = failing(
        scenario,
        code,
        latencyMs,
        (request) => request.path.endsWith("/pipe-0") && textOf(request).includes('"paused":null'),
      );
      simulation.requestSize(1, 4);
      await simulation.run(MINUTE);
      expect(simulation.condition(1)?.message).toContain(MESSAGE);
      expect(simulation.sizes("pipe-1")).toEqual(["4000m/16Gi"]);
      expect(cluster.pipe("pipe-1").isPaused).toBe(false);
      await simulation.run(HOUR - MINUTE);
      expect(writes.count).toBeGreaterThan(5);
      expect(writes.count).toBeLessThanOrEqual(MAX_WRITES);
      expect(simulation.condition(1)?.message).toContain(MESSAGE);
      expect(simulation.sizes("pipe-1")).toEqual(["4000m/16Gi"]);
      expect(cluster.pipe("pipe-0").isPaused).toBe(true);
      cluster.fault = () => undefined;
      await simulation.run(6 * MINUTE);
      expect(simulation.condition(1)?.reason).toBe("Scaled");
      expect(cluster.pipe("pipe-0").isPaused).toBe(false);
      expect(workloads.replaced).toEqual([]);
    },
  );

  it("does not hold up rollouts of other services", async () => {
    const scenario = new Scenario(1, { mostRollouts: 1 });
    const { simulation } = scenario;
    simulation.addService(2);
    simulation.deploy("other", 2);
    await scenario.start();
    failing(scenario, 403, 5, (request) => textOf(request).includes('"paused":null'));
    simulation.requestSize(1, 4);
    await simulation.run(2 * SECOND);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(true);
    simulation.requestSize(2, 4);
    await simulation.run(5 * SECOND);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(true);
    expect(simulation.sizes("other")).toEqual(["4000m/16Gi"]);
    expect(simulation.condition(2)?.reason).toBe("Scaled");
  });

  it("holds up the templates of other services for two minutes only", async () => {
    const simulation = new Simulation({ isInPlace: true });
    const workloads = workloadsOf(simulation);
    const services = [1, 2, 3, 4, 5, 6];
    for (const service of [...services, 7]) {
      simulation.addService(service);
      deployResizable(simulation, `pipe-${service}`, service);
    }
    simulation.start();
    await simulation.run(5 * SECOND);
    workloads.replaced.length = 0;
    simulation.cluster.fault = (request) =>
      textOf(request).includes('"paused":null') && !request.path.endsWith("/pipe-7") ? BROKEN : undefined;
    for (const service of services) simulation.requestSize(service, 4);
    await simulation.run(2 * SECOND);
    simulation.requestSize(7, 4);
    await simulation.run(SECOND);
    // The pods of this service wait for nothing.
    const { desired, effective, pipes } = simulation.status(7);
    expect(effective).toEqual(expect.objectContaining({ summary: desired?.summary }));
    expect(pipes).toMatchObject({ summary: "1/1", pending: [{ state: "Resized" }] });
    await simulation.run(115 * SECOND);
    expect(simulation.sizes("pipe-7")).toEqual(["1000m/4Gi"]);
    await simulation.run(10 * SECOND);
    expect(simulation.sizes("pipe-7")).toEqual(["4000m/16Gi"]);
    expect(simulation.condition(7)?.reason).toBe("Scaled");
    expect(workloads.replaced).toEqual([]);
  });

  it("gets few writes while its service is suspended", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation } = scenario;
    const isResumption = (request: KubeRequest) =>
      request.path.endsWith("/pipe-0") && textOf(request).includes('"paused":null');
    const writes = failing(scenario, 500, 6 * SECOND, isResumption);
    simulation.requestSize(1, 4);
    await simulation.run(2 * SECOND);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(true);
    simulation.suspend(1, true);
    await simulation.run(HOUR);
    expect(writes.count).toBeGreaterThan(5);
    expect(writes.count).toBeLessThanOrEqual(MAX_WRITES);
    simulation.cluster.fault = () => undefined;
    await simulation.run(6 * MINUTE);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(false);
    expect(simulation.condition(1)?.reason).toBe("Suspended");
  });
});

describe("a commit that can neither end nor be undone", () => {
  it.each(ERRORS)("gets few writes and is reported if they fail %s", async (_how, code, latencyMs) => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const before = [...workloads.pods.keys()];
    const isTakenBack = (request: KubeRequest) =>
      request.path.endsWith("/pipe-0") && textOf(request).includes('"paused":null');
    const resumptions = failing(scenario, code, latencyMs, isTakenBack);
    const { fault } = simulation.cluster;
    simulation.cluster.fault = (request, pipe) =>
      request.path.includes("/replicasets/pipe-0") ? BROKEN : fault(request, pipe);
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    expect(resumptions.count).toBeGreaterThan(5);
    expect(resumptions.count).toBeLessThanOrEqual(MAX_WRITES);
    expect(simulation.condition(1)?.message).toContain(MESSAGE);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(true);
    expect(simulation.sizes("pipe-1")).toEqual(["4000m/16Gi"]);
    expect(scenario.podSizes()).toEqual(Array.from({ length: 4 }, () => "4000m/16Gi"));
    simulation.cluster.fault = () => undefined;
    // At most 5 min until it is undone, and then 10 min, because so many writes came before.
    await simulation.run(16 * MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.sizes("pipe-0")).toEqual(["4000m/16Gi"]);
    expect(simulation.fallbacks).toEqual([]);
    expect([...workloads.pods.keys()]).toEqual(before);
  });
});

describe("writes that fail slowly", () => {
  it("to pods are repeated with growing delays", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation } = scenario;
    const writes = failing(scenario, 500, 6 * SECOND, ({ path }) => path.includes("/pods/pipe-0-"));
    simulation.requestSize(1, 4);
    await simulation.run(2 * MINUTE);
    expect(writes.count).toBeGreaterThan(3);
    expect(writes.count).toBeLessThan(14);
  });
});

describe("a lost response to the resize of a pod", () => {
  it("leaves its kubelet the same time as a response, even if the resize of the pipe began long before", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const [first, second] = scenario.pods("pipe-0").map(({ metadata }) => metadata.name);
    workloads.outcome = ({ metadata: { name } }) =>
      name === first || name === second ? "NotObserved" : "Done";
    let isLost = false;
    simulation.cluster.fault = ({ path }) => {
      if (isLost || !path.endsWith(`/${second}/resize`)) return undefined;
      isLost = true;
      return LOST_ANSWER;
    };
    simulation.requestSize(1, 4);
    await simulation.run(100 * SECOND);
    workloads.outcome = ({ metadata: { name } }) => (name === second ? "NotObserved" : "Done");
    workloads.look();
    await simulation.run(MINUTE);
    expect(isLost).toBe(true);
    workloads.outcome = () => "Done";
    workloads.look();
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a commit after eight failed dry runs", () => {
  it("is repeated if it fails once", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const { cluster } = simulation;
    const error = new KubeApiError("PATCH", 500, JSON.stringify({ message: MESSAGE }));
    let [dryRuns, commits] = [0, 0];
    cluster.fault = (request) => {
      if (!request.path.endsWith("/pipe-0") || !textOf(request).includes('"paused":true')) return undefined;
      if (request.query?.["dryRun"] !== undefined) dryRuns += 1;
      else commits += 1;
      return (commits === 0 ? dryRuns <= 8 : commits === 1) ? { error } : undefined;
    };
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    expect([dryRuns, commits]).toEqual([9, 2]);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a commit that the permissions do not allow", () => {
  it("is tried again without a restart, and reported as Forbidden", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const message = 'deployments.apps "pipe-0" is forbidden: User "controller" cannot patch resource';
    simulation.cluster.fault = (request) => {
      const isPause = request.path.endsWith("/pipe-0") && textOf(request).includes('"paused":true');
      if (!isPause || request.query?.["dryRun"] !== undefined) return undefined;
      return { error: new KubeApiError("PATCH", 403, JSON.stringify({ message })) };
    };
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.condition(1)).toMatchObject({
      reason: "Forbidden",
      message: expect.stringContaining(message),
    });
    expect(simulation.sizes("pipe-0", "pipe-1")).toEqual(["1000m/4Gi", "4000m/16Gi"]);
    expect(scenario.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    simulation.cluster.fault = () => undefined;
    await simulation.run(6 * MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.status(1).pipes?.resizedBy).toEqual({ "pipe-0": "InPlace", "pipe-1": "InPlace" });
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a commit that is slower than a reconciliation waits for it", () => {
  it("is made once, and the pods of other pipes do not wait for it", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const isCommit = ({ path, query, ...request }: KubeRequest) =>
      path.endsWith("/pipe-0") &&
      query?.["dryRun"] === undefined &&
      textOf({ path, ...request }).includes('"paused":true');
    let commits = 0;
    simulation.cluster.fault = (request) => {
      if (isCommit(request)) commits += 1;
      return undefined;
    };
    simulation.cluster.latencyMs = (request) => (isCommit(request) ? 20 * SECOND : 5);
    simulation.requestSize(1, 4);
    await simulation.run(15 * SECOND);
    // An event of the pipe causes a reconciliation during the write.
    workloads.look();
    simulation.setTier("scale");
    await simulation.run(SECOND);
    expect(commits).toBe(0);
    expect(scenario.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    expect(simulation.sizes("pipe-0", "pipe-1")).toEqual(["1000m/4Gi", "4000m/16Gi"]);
    const { pending, summary } = simulation.status(1).pipes ?? {};
    expect(pending).toEqual([{ name: "pipe-0", state: "Resized", message: "its template follows its pods" }]);
    expect(summary).toBe("2/2");
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(commits).toBe(1);
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

it("a failed write is in the status before the service is reconciled again", async () => {
  const scenario = new Scenario(1, {}, ["pipe-0"]);
  await scenario.start();
  const { simulation } = scenario;
  const { cluster } = simulation;
  const failed = { atReconciliation: 0 };
  cluster.fault = ({ path, query }) => {
    if (!path.endsWith("/resize") || query?.["dryRun"] !== undefined) return undefined;
    failed.atReconciliation ||= simulation.reconciliations;
    return BROKEN;
  };
  simulation.requestSize(1, 4);
  for (let ms = 0; ms < MINUTE && !simulation.status(1).failures; ms += 1) await simulation.run(1);
  expect(simulation.status(1).failures).toMatchObject([{ pipe: "pipe-0", reason: "WriteFailed" }]);
  // The one that made the write has not ended yet, or only just.
  expect(simulation.reconciliations - failed.atReconciliation).toBeLessThanOrEqual(1);
});

it("a pod whose resize got no response keeps its service from being Ready with the size that is requested back, although its watch is late", async () => {
  const pipe = await HeldPipe.start();
  const { simulation, cluster } = pipe;
  await pipe.request(4);
  pipe.expectSettled(4);
  let isLost = false;
  cluster.fault = (request) => {
    if (isLost || actionOf(request).resource !== "pods/resize") return undefined;
    isLost = true;
    simulation.requestSize(1, 4);
    cluster.eventDelayMs = 3000;
    return LOST_ANSWER;
  };
  await pipe.request(2, 20_000);
  expect(isLost).toBe(true);
  cluster.eventDelayMs = 0;
  await pipe.run(300_000);
  expectTruth(pipe, 4);
});
