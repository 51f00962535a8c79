import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatSize, sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { numRuns } from "../../../support/num-runs.ts";
import { type Fault, LOST_ANSWER } from "../../../support/simulation/cluster.ts";
import {
  deployResizable,
  PIPES,
  Scenario,
  workloadsOf,
} from "../../../support/simulation/in-place-scenario.ts";
import type { ResizeOutcome } from "../../../support/simulation/kubelets.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const NOT_SUPPORTED: Fault = { error: new KubeApiError("PATCH", 405, "{}") };
/** Maximum number of writes by the controller to one object for one request. */
const MAX_WRITES = 20;

describe("a resize in place of many services", () => {
  const SERVICES = 60;

  /** Requests 4 cores for each service, and looks every `lookMs` until all pipes have them. */
  async function resizeAll(outcome: ResizeOutcome | "NotSupported", lookMs = 10) {
    const simulation = new Simulation({ isInPlace: true });
    const workloads = workloadsOf(simulation);
    const names = Array.from({ length: SERVICES }, (_, index) => `pipe-${index + 1}`);
    for (const [index, name] of names.entries()) {
      const service = index + 1;
      simulation.addService(service);
      deployResizable(simulation, name, service);
    }
    workloads.outcome = () => (outcome === "NotSupported" ? "Done" : outcome);
    simulation.start();
    await simulation.run(5 * SECOND);
    workloads.replaced.length = 0;
    simulation.cluster.fault = ({ path }) =>
      outcome === "NotSupported" && path.endsWith("/resize") ? NOT_SUPPORTED : undefined;
    for (const index of names.keys()) simulation.requestSize(index + 1, 4);
    const [before, size] = [formatSize(sizeOfCores(1)), formatSize(sizeOfCores(4))];
    let [mostPaused, mostBegun, seconds] = [0, 0, 0];
    let resizedAfter: number | undefined;
    while (simulation.sizes(...names).some((each) => each !== size)) {
      await simulation.run(lookMs);
      seconds += lookMs / SECOND;
      const wanted = [...workloads.pods.values()].map(({ spec }) => sizeOf(spec.containers[0]));
      mostBegun = Math.max(mostBegun, wanted.filter((each) => each === size).length);
      if (!wanted.includes(before)) resizedAfter ??= seconds;
      mostPaused = Math.max(
        mostPaused,
        names.filter((name) => simulation.cluster.pipe(name).isPaused).length,
      );
      if (seconds > 3600) throw new Error("the pipes do not get the size");
    }
    // The last ReplicaSets are created.
    await simulation.run(SECOND / 10);
    simulation.stop();
    return { seconds, mostPaused, mostBegun, resizedAfter, replaced: workloads.replaced.length };
  }

  it("resizes all pods at once, and lets six templates at a time follow", async () => {
    const { seconds, mostPaused, mostBegun, resizedAfter, replaced } = await resizeAll("Done");
    expect(replaced).toBe(0);
    expect(mostBegun).toBe(SERVICES);
    expect(resizedAfter).toBeLessThan(1);
    expect(mostPaused).toBe(6);
    expect(seconds).toBeLessThan(SERVICES / 6);
  });

  it("is not slower than rollouts if the API server cannot resize pods", async () => {
    const { seconds, replaced } = await resizeAll("NotSupported");
    expect(replaced).toBe(SERVICES);
    expect(seconds).toBeLessThan(10);
  });

  it("begins other pipes while nodes have no room for the first ones", async () => {
    const { seconds, mostBegun, mostPaused, replaced } = await resizeAll("Deferred", 200);
    expect(mostBegun).toBe(SERVICES);
    expect(mostPaused).toBe(0);
    expect(replaced).toBe(SERVICES);
    expect(seconds).toBeLessThan(90);
  });
});

describe("a resize in place on the simulated cluster", () => {
  it("replaces no pod, and ends with the size in the template", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const before = [...workloads.pods.keys()];
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect([...workloads.pods.keys()]).toEqual(before);
    expect(scenario.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi", "4000m/16Gi", "4000m/16Gi"]);
    expect(simulation.sizes(...PIPES)).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    expect(workloads.replaced).toEqual([]);
    expect(simulation.fallbacks).toEqual([]);
  });

  it("returns to the first size if it is requested again while events are delayed", async () => {
    const scenario = new Scenario(1);
    const { simulation } = scenario;
    simulation.cluster.eventDelayMs = 300;
    await scenario.start();
    simulation.requestSize(1, 2);
    await simulation.run(101);
    simulation.requestSize(1, 1);
    await simulation.run(MINUTE);
    expect(scenario.podSizes()).toEqual(["1000m/4Gi", "1000m/4Gi"]);
  });

  it("replaces no pod if the first size is requested again during a slow write", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    simulation.cluster.latencyMs = ({ path }) => (path.endsWith("/resize") ? 8 * SECOND : 5);
    simulation.requestSize(1, 4);
    await simulation.run(7 * SECOND);
    simulation.cluster.latencyMs = () => 5;
    simulation.requestSize(1, 1);
    await simulation.run(5 * MINUTE);
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
    expect(scenario.podSizes()).toEqual(Array.from({ length: 4 }, () => "1000m/4Gi"));
  });

  it("returns to the current size if it is requested again, even after a rollout by the owner", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    for (const name of PIPES) simulation.setImage(name, "image:2");
    await simulation.run(MINUTE);
    workloads.replaced.length = 0;
    let isOver = false;
    simulation.cluster.fault = ({ path }) => {
      if (isOver || !path.endsWith("/resize")) return undefined;
      isOver = true;
      simulation.clock.after(10, () => simulation.requestSize(1, 4));
      return undefined;
    };
    simulation.requestSize(1, 1);
    await simulation.run(MINUTE);
    expect(isOver).toBe(true);
    expect(scenario.podSizes()).toEqual(Array.from({ length: 4 }, () => "4000m/16Gi"));
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });

  it("ends in a rollout if the size is infeasible on the nodes", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    workloads.outcome = () => "Infeasible";
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual(["pipe-0 Infeasible", "pipe-1 Infeasible"]);
    expect(workloads.replaced).toEqual(["pipe-0", "pipe-1"]);
  });

  it("records the reason in the Deployment before the rollout, and does not wait for the status", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const { clock, cluster } = simulation;
    workloads.outcome = () => "Infeasible";
    const recorded: object[] = [];
    let failsUntilMs: number | undefined;
    cluster.fault = ({ method, path, query, body }) => {
      const isWrite =
        path.endsWith("/deployments/pipe-0") && method === "PATCH" && query?.["dryRun"] === undefined;
      if (isWrite && JSON.stringify(body).includes('"template":')) {
        const { reason, message } = cluster.pipe("pipe-0").lastRollout?.inPlaceFailure ?? {};
        recorded.push({ reason, message, pods: scenario.podSizes().slice(0, 2) });
      }
      if (simulation.fallbacks.length > 0) failsUntilMs ??= clock.now() + 20 * SECOND;
      const fails = path.endsWith("/status") && failsUntilMs !== undefined && clock.now() < failsUntilMs;
      return fails ? FAILED : undefined;
    };
    simulation.requestSize(1, 4);
    await simulation.run(10 * SECOND);
    // The pods have their old size again.
    const message = expect.stringMatching(/^pod pipe-0-/);
    const pods = ["1000m/4Gi", "1000m/4Gi"];
    expect(recorded).toEqual([{ reason: "Infeasible", message, pods }]);
    expect(simulation.sizes("pipe-0")).toEqual(["4000m/16Gi"]);
    expect(simulation.status(1).pipes?.fallbacks).toBeUndefined();
    await simulation.run(MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.status(1).pipes?.fallbacks).toMatchObject([
      { pipe: "pipe-0", reason: "Infeasible" },
      { pipe: "pipe-1", reason: "Infeasible" },
    ]);
    expect(workloads.replaced).toEqual(["pipe-0", "pipe-1"]);
  });
});

describe("a container that restarts during the resize of its pod", () => {
  it("leads to a rollout, even if the kubelet reports the new size", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const { cluster } = simulation;
    const [first] = scenario.pods("pipe-0");
    let isOver = false;
    // The container restarts before the second pod is resized.
    cluster.fault = ({ path }) => {
      const isOther = path.endsWith("/resize") && !path.includes(first?.metadata.name ?? "");
      if (isOver || !isOther) return undefined;
      isOver = true;
      workloads.crash(first?.metadata.name ?? "");
      return undefined;
    };
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(isOver).toBe(true);
    expect(simulation.fallbacks).toEqual(["pipe-0 Restarted"]);
    expect(workloads.replaced).toEqual(["pipe-0"]);
    expect(simulation.status(1).pipes).toMatchObject({
      resizedBy: { "pipe-0": "Rollout", "pipe-1": "InPlace" },
      fallbacks: [{ pipe: "pipe-0", reason: "Restarted" }],
    });
  });
});

describe("a container that crashes at the end of the commit", () => {
  it("is a matter of health, because its pod ran the size before", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const before = [...workloads.pods.keys()];
    let writes = 0;
    let crashed: string | undefined;
    simulation.cluster.fault = ({ path, body }) => {
      const text = JSON.stringify(body ?? {});
      if (path.endsWith("/deployments/pipe-0") && text.includes('"paused":null'))
        simulation.clock.after(10, () => {
          crashed = scenario.pods("pipe-0")[0]?.metadata.name ?? "";
          workloads.crash(crashed, MINUTE);
        });
      if (path.includes("/replicasets/pipe-0")) writes += 1;
      return undefined;
    };
    // The Deployment controller observes the end of the commit after the crash.
    workloads.syncMs = 100;
    simulation.requestSize(1, 4);
    await simulation.run(5 * MINUTE);
    expect(crashed).toBeDefined();
    expect(writes).toBe(1);
    expect(simulation.fallbacks).toEqual([]);
    expect([...workloads.pods.keys()]).toEqual(before);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.status(1).pipes?.resizedBy).toEqual({ "pipe-0": "InPlace", "pipe-1": "InPlace" });
    expect(scenario.podSizes()).toEqual(Array.from({ length: 4 }, () => "4000m/16Gi"));
  });
});

describe("a commit while the Deployment is paused", () => {
  /** Runs `happens` between the pause and the write to the ReplicaSet, which then fails with a conflict. */
  async function interrupted(happens: (scenario: Scenario) => void): Promise<Scenario> {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation } = scenario;
    let isOver = false;
    simulation.cluster.fault = ({ path }) => {
      if (isOver || !path.includes("/replicasets/")) return undefined;
      isOver = true;
      happens(scenario);
      return CONFLICT;
    };
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(isOver).toBe(true);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(false);
    return scenario;
  }

  it.each<[string, (scenario: Scenario) => void]>([
    ["the service is suspended", ({ simulation }) => simulation.suspend(1, true)],
    ["the PipeScaling is deleted", ({ simulation }) => simulation.removeScaling(1)],
    ["the tier becomes unknown", ({ simulation }) => simulation.setTier("unknown")],
  ])("ends without a restart even if %s", async (_what, happens) => {
    const { workloads } = await interrupted(happens);
    expect(workloads.replaced).toEqual([]);
  });

  it("ends even if the owner adds a container and the pipe container becomes ambiguous", async () => {
    await interrupted(({ simulation }) => {
      const { template } = simulation.cluster.deployments.get("pipe-0")?.spec ?? {};
      const containers = [...(template?.spec.containers ?? []), { name: "sidecar" }];
      simulation.cluster.setSpec("pipe-0", { template: { ...template, spec: { containers } } });
    });
  });
});

describe("a commit whose template cannot follow", () => {
  const isReplicaSet = ({ path }: KubeRequest) => path.includes("/replicasets/");

  it("is undone after 30 s if writes to the ReplicaSet fail, and tried again until they succeed", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    const { cluster } = simulation;
    cluster.fault = (request) => (isReplicaSet(request) ? FAILED : undefined);
    simulation.requestSize(1, 4);
    await simulation.run(29 * SECOND);
    expect(cluster.pipe("pipe-0").isPaused).toBe(true);
    while (cluster.pipe("pipe-0").isPaused) await simulation.run(SECOND / 10);
    expect(simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
    expect(scenario.podSizes()).toEqual(Array.from({ length: 4 }, () => "4000m/16Gi"));
    expect(simulation.condition(1)).toMatchObject({
      reason: "WriteFailed",
      message: expect.stringContaining("failed calling webhook"),
    });
    await simulation.run(5 * MINUTE);
    expect(cluster.judge.longestPauseMs).toBeLessThan(32 * SECOND);
    expect(simulation.condition(1)?.reason).toBe("WriteFailed");
    cluster.fault = () => undefined;
    await simulation.run(6 * MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.status(1).pipes).toMatchObject({
      inPlace: 2,
      resizedBy: { "pipe-0": "InPlace", "pipe-1": "InPlace" },
    });
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });

  it("is undone after 30 s if the Deployment controller does not respond, and is reported", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    simulation.requestSize(1, 4);
    workloads.syncMs = 40 * SECOND;
    await simulation.run(33 * SECOND);
    expect(simulation.sizes(...PIPES)).toEqual(["1000m/4Gi", "1000m/4Gi"]);
    expect(simulation.condition(1)).toMatchObject({
      reason: "WriteFailed",
      message: expect.stringContaining("the Deployment controller did not respond"),
    });
    await simulation.run(2 * MINUTE);
    workloads.syncMs = 20;
    await simulation.run(6 * MINUTE);
    expect(simulation.cluster.judge.longestPauseMs).toBeLessThan(32 * SECOND);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.status(1).pipes?.resizedBy).toEqual({ "pipe-0": "InPlace", "pipe-1": "InPlace" });
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a commit that its owner cuts short", () => {
  const setImage = ({ simulation }: Scenario) => simulation.setImage("pipe-0", "image:2");

  it.each<[string, string, (scenario: Scenario) => void, readonly string[], "InPlace" | "Rollout"]>([
    ["by another image", "true", setImage, ["pipe-0 NotSettled"], "Rollout"],
    // All pods ran the size before, and the rollout is the owner's.
    ["by another image at its end", "null", setImage, [], "InPlace"],
    ["by a resumption", "true", (scenario) => scenario.resume("pipe-0"), [], "Rollout"],
  ])("%s does not delay the rollout", async (_how, paused, act, fallbacks, method) => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    let isOver = false;
    // The Deployment controller has not observed the pause yet.
    workloads.syncMs = SECOND;
    simulation.cluster.fault = (request) => {
      const isOfPipe = request.path.includes("pipe-0") && request.path.includes("/deployments/");
      const isCommit = isOfPipe && JSON.stringify(request.body ?? {}).includes(`"paused":${paused}`);
      if (isOver || !isCommit || request.query?.["dryRun"] !== undefined) return undefined;
      isOver = true;
      simulation.clock.after(10, () => act(scenario));
      return undefined;
    };
    simulation.requestSize(1, 4);
    await simulation.run(5 * SECOND);
    expect(isOver).toBe(true);
    expect(simulation.cluster.pipe("pipe-0").isPaused).toBe(false);
    workloads.syncMs = 20;
    await simulation.run(2 * MINUTE);
    expect(workloads.replaced).toEqual(["pipe-0"]);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(scenario.podSizes()).toEqual(Array.from({ length: 4 }, () => "4000m/16Gi"));
    expect(simulation.fallbacks).toEqual(fallbacks);
    const { pipes } = simulation.status(1);
    expect(pipes?.resizedBy).toEqual({ "pipe-0": method, "pipe-1": "InPlace" });
    const message = "its owner changed the pod template meanwhile";
    if (fallbacks.length === 0) expect(pipes?.fallbacks).toBeUndefined();
    else expect(pipes?.fallbacks).toEqual([{ pipe: "pipe-0", reason: "NotSettled", message }]);
  });
});

const FAILED = {
  error: new KubeApiError("PATCH", 500, JSON.stringify({ message: "failed calling webhook" })),
};
const CONFLICT = { error: new KubeApiError("PATCH", 409, "{}") };
const WITHOUT_ROLES = {
  error: new KubeApiError(
    "PATCH",
    403,
    JSON.stringify({
      message:
        'pods "a" is forbidden: User "controller" cannot patch: RBAC: clusterrole.rbac.authorization.k8s.io "b" not found',
    }),
  ),
};

describe("a transient error", () => {
  const isCommit = ({ body }: KubeRequest) => JSON.stringify(body ?? {}).includes('"paused":true');
  it.each<[string, Fault, (request: KubeRequest) => boolean]>([
    ["of the dry run", FAILED, (request) => isCommit(request) && request.query?.["dryRun"] !== undefined],
    ["of the pause", FAILED, (request) => isCommit(request) && request.query?.["dryRun"] === undefined],
    ["of the resize of a pod", FAILED, ({ path }) => path.endsWith("/resize")],
    [
      "of the resize of a pod while the roles are not loaded yet",
      WITHOUT_ROLES,
      ({ path }) => path.endsWith("/resize"),
    ],
    ["of the write to the ReplicaSet", FAILED, ({ path }) => path.includes("/replicasets/")],
  ])("%s restarts no pod", async (_what, fault, isHit) => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    let hits = 0;
    simulation.cluster.fault = (request) => {
      if (!isHit(request) || hits === 2) return undefined;
      hits += 1;
      return fault;
    };
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(hits).toBe(2);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a lost connection during the commit of the canary", () => {
  it.each([true, false])(
    "restarts no pod, and pods of other pipes follow those of the canary (the API server got the write: %s)",
    async (isDone) => {
      const scenario = new Scenario(2);
      await scenario.start();
      const { simulation, workloads } = scenario;
      const error = new KubeUnreachableError("cut short");
      let isLost = false;
      let podsOfCanary: readonly string[] | undefined;
      simulation.cluster.fault = ({ path, body, query }) => {
        if (path.includes("/pods/pipe-1-") && path.endsWith("/resize"))
          podsOfCanary ??= scenario.podSizes().slice(0, 2);
        const isPause =
          JSON.stringify(body ?? {}).includes('"paused":true') && query?.["dryRun"] === undefined;
        if (!isPause || isLost) return undefined;
        isLost = true;
        return { error, isDone };
      };
      simulation.requestSize(1, 4);
      await simulation.run(MINUTE);
      expect(isLost).toBe(true);
      expect(podsOfCanary).toEqual(["4000m/16Gi", "4000m/16Gi"]);
      expect(simulation.condition(1)?.reason).toBe("Scaled");
      expect(simulation.fallbacks).toEqual([]);
      expect(workloads.replaced).toEqual([]);
    },
  );

  it("restarts no pod, and is reported, if no commit gets a response for an hour", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    let writes = 0;
    simulation.cluster.fault = ({ path, body, query }) => {
      const isPause = JSON.stringify(body ?? {}).includes('"paused":true') && query?.["dryRun"] === undefined;
      if (!path.includes("pipe-0") || !isPause) return undefined;
      writes += 1;
      return { error: new KubeUnreachableError("cut short") };
    };
    simulation.requestSize(1, 4);
    await simulation.run(MINUTE);
    expect(simulation.sizes("pipe-1")).toEqual([formatSize(sizeOfCores(4))]);
    await simulation.run(HOUR - MINUTE);
    expect(writes).toBeGreaterThan(10);
    expect(writes).toBeLessThanOrEqual(MAX_WRITES);
    expect(simulation.condition(1)).toMatchObject({
      reason: "WriteFailed",
      message: expect.stringContaining("cut short"),
    });
    simulation.cluster.fault = () => undefined;
    await simulation.run(6 * MINUTE);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual([]);
    expect(workloads.replaced).toEqual([]);
  });
});

describe("a webhook that makes every resize of a pod fail", () => {
  it("leads to a rollout with few writes", async () => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation, workloads } = scenario;
    let calls = 0;
    simulation.cluster.fault = ({ path }) => {
      if (!path.endsWith("/resize")) return undefined;
      calls += 1;
      return { error: new KubeApiError("PATCH", 500, "{}") };
    };
    simulation.requestSize(1, 4);
    await simulation.run(HOUR);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.fallbacks).toEqual(["pipe-0 ResizeTimeout", "pipe-1 ResizeTimeout"]);
    expect(workloads.replaced).toEqual(["pipe-0", "pipe-1"]);
    expect(calls).toBeLessThanOrEqual(MAX_WRITES * PIPES.length);
  });
});

type Act<T> = (scenario: Scenario, value: T, pipe: string) => void;

/** One random step of a history, and the time until the next step. */
function step<T>(name: string, values: fc.Arbitrary<T>, act: Act<T>, weight = 1) {
  const waits = fc.oneof(fc.nat(30), fc.nat(300), fc.nat(5000), fc.nat(150_000));
  const arbitrary = fc.tuple(fc.constantFrom(...PIPES), values, waits).map(([pipe, value, waitMs]) => ({
    [fc.toStringMethod]: () => `${name}(${pipe}, ${JSON.stringify(value)}), ${waitMs} ms`,
    waitMs,
    act: (scenario: Scenario) => act(scenario, value, pipe),
  }));
  return { arbitrary, weight };
}

const nothing = fc.constant(undefined);
const cores = fc.constantFrom(1, 2, 4);
const outcomes = fc.constantFrom<ResizeOutcome>("Deferred", "Infeasible", "Error", "NotObserved");

const steps = fc.oneof(
  step("request a size", cores, (scenario, value) => scenario.requestSize(value), 6),
  step("restart the controller", nothing, ({ simulation }) => simulation.start(), 6),
  step("suspend", fc.boolean(), ({ simulation }, isOn) => simulation.suspend(1, isOn)),
  step("pause", nothing, ({ simulation }, _, pipe) => simulation.cluster.change(pipe, { paused: true })),
  step("resume", nothing, (scenario, _, pipe) => scenario.resume(pipe), 2),
  step("set the image", fc.nat(2), ({ simulation }, tag, pipe) => simulation.setImage(pipe, `image:${tag}`)),
  step("scale", fc.nat(3), ({ simulation }, replicas, pipe) => simulation.cluster.change(pipe, { replicas })),
  step("undo the rollout", nothing, ({ simulation }, _, pipe) => {
    // kubectl rejects an undo while the Deployment is paused.
    if (!simulation.cluster.pipe(pipe).isPaused) simulation.undo(pipe);
  }),
  step("delete a pod", nothing, (scenario, _, pipe) =>
    scenario.workloads.deletePod(scenario.pods(pipe)[0]?.metadata.name ?? ""),
  ),
  step(
    "obstruct the resize of a pod",
    outcomes,
    (scenario, outcome, pipe) => {
      const name = scenario.pods(pipe).at(-1)?.metadata.name;
      if (name !== undefined) scenario.outcomes.set(name, outcome);
    },
    3,
  ),
  step("crash a container", fc.constantFrom(0, 1000, 30_000), (scenario, stopMs, pipe) =>
    scenario.workloads.crash(scenario.pods(pipe)[0]?.metadata.name ?? "", stopMs),
  ),
  step("make room", nothing, (scenario) => {
    scenario.outcomes.clear();
    scenario.workloads.look();
  }),
  step("slow down the Deployment controller", fc.constantFrom(20, 2000, 40_000), ({ workloads }, ms) => {
    workloads.syncMs = ms;
  }),
  step("lose responses", fc.array(fc.boolean(), { maxLength: 4 }), ({ simulation }, lost) => {
    simulation.cluster.fault = () => (lost.shift() ? LOST_ANSWER : undefined);
  }),
  step("reject writes", fc.array(fc.boolean(), { maxLength: 12 }), ({ simulation }, rejected) => {
    simulation.cluster.fault = () => (rejected.shift() ? CONFLICT : undefined);
  }),
  step("fail writes", fc.array(fc.boolean(), { maxLength: 20 }), ({ simulation }, failed) => {
    simulation.cluster.fault = () => (failed.shift() ? FAILED : undefined);
  }),
  step("slow down writes", fc.constantFrom(5, 7000), ({ simulation: { cluster } }, ms) => {
    cluster.latencyMs = ({ method }) => (method === "PATCH" || method === "DELETE" ? ms : 5);
  }),
);

// After a failure, shrinking the counterexample takes minutes.
it("after random faults, pods and template reach the requested size, nothing stays paused, and writes are bounded", {
  timeout: 300_000,
}, async () => {
  const histories = fc.record({
    replicas: fc.constantFrom(1, 2, 3),
    eventDelayMs: fc.constantFrom(0, 10, 300),
    happens: fc.array(steps, { maxLength: 25, size: "max" }),
    // `undefined`: no new request, so that the last one stays in effect.
    lastCores: fc.constantFrom(undefined, 8),
  });
  await fc.assert(
    fc.asyncProperty(histories, async ({ replicas, eventDelayMs, happens, lastCores }) => {
      const scenario = new Scenario(replicas);
      const { simulation } = scenario;
      simulation.cluster.eventDelayMs = eventDelayMs;
      await scenario.start();
      for (const each of happens) {
        each.act(scenario);
        await simulation.run(each.waitMs);
      }
      scenario.heal();
      await simulation.run(MINUTE);
      simulation.cluster.writes.length = 0;
      if (lastCores !== undefined) scenario.requestSize(lastCores);
      simulation.askToRetry(1);
      await simulation.run(HOUR);

      const size = formatSize(sizeOfCores(scenario.requestedCores));
      expect(simulation.cluster.violations).toEqual([]);
      expect(simulation.condition(1)?.reason).toBe("Scaled");
      expect(simulation.sizes(...PIPES)).toEqual(PIPES.map(() => size));
      expect(scenario.podSizes().filter((each) => each !== size)).toEqual([]);
      expect(PIPES.filter((name) => simulation.cluster.pipe(name).isPaused)).toEqual([]);
      const counts = new Map<string, number>();
      for (const line of simulation.cluster.writes) {
        const [name = ""] = line.split(" ");
        counts.set(name, (counts.get(name) ?? 0) + 1);
      }
      expect([...counts].filter(([, count]) => count > MAX_WRITES)).toEqual([]);
      const written = simulation.cluster.writes.length;
      await simulation.run(HOUR);
      expect(simulation.cluster.writes.slice(written)).toEqual([]);
      simulation.stop();
    }),
    { numRuns: numRuns(100) },
  );
});
