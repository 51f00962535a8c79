import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { numRuns } from "../../../support/num-runs.ts";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const ONE = "1000m/4Gi";
const FOUR = "4000m/16Gi";

/** Notes pods that get the smaller size again after they got the larger one back. */
function watchForFlapping(group: PipeGroup): readonly string[] {
  const flaps: string[] = [];
  const sizes = new Map<string, string[]>();
  group.cluster.onPod.push(({ metadata: { uid }, spec }) => {
    const size = sizeOf(spec.containers[0]);
    const before = sizes.get(uid) ?? [];
    if (before.at(-1) === size) return;
    if (size === ONE && before.slice(before.indexOf(ONE)).includes(FOUR) && before.includes(ONE))
      flaps.push(uid);
    sizes.set(uid, [...before, size]);
  });
  return flaps;
}

function kill(group: PipeGroup, pipe: string, stopMs = 10 * SECOND): void {
  for (const { metadata } of group.pods(pipe)) group.workloads.crash(metadata.name, stopMs, "OOMKilled");
}

/** A service whose pipes had four cores, and get one. */
async function start(pipes: number, replicas = 1): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes, replicas, deployment: { cores: 4 } });
  group.request(4);
  await group.run(10 * SECOND);
  return group;
}

function conditionOf(group: PipeGroup) {
  return group.simulation.condition(1);
}

/** Expects that all pods are the first ones and have four cores, and that the status says why. */
function expectGivenBack(group: PipeGroup): void {
  expect(group.podSizes()).toEqual(group.before.map(() => FOUR));
  expect(group.simulation.sizes(...group.names)).toEqual(group.names.map(() => FOUR));
  expect(group.uids()).toEqual(group.before);
  expect(group.workloads.replaced).toEqual([]);
  expect(group.cluster.readyJudge.violations).toEqual([]);
  expect(group.paused()).toEqual([]);
  expect(conditionOf(group)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
  expect(group.simulation.status(1)).toMatchObject({
    desired: { replicaCpuMillicores: 1000 },
    effective: { replicaCpuMillicores: 4000 },
  });
}

describe("a service whose pipe is OOM-killed twice after a smaller memory in place", () => {
  let group: PipeGroup;
  let flaps: readonly string[];
  beforeEach(async () => {
    group = await start(3);
    flaps = watchForFlapping(group);
    group.request(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
    kill(group, "pipe-1");
    await group.run(MINUTE);
    group.expectSettled(1);
    kill(group, "pipe-1");
    await group.run(MINUTE);
  });

  it("gets its previous size back in place, and keeps it, also after a restart of the controller", async () => {
    expectGivenBack(group);
    const writes = group.cluster.attempts.length;
    await group.run(HOUR);
    expect(group.cluster.attempts.length).toBe(writes);
    group.simulation.start();
    await group.run(HOUR);
    expectGivenBack(group);
    expect(group.attemptsOf(/^pods/, { sinceMs: group.cluster.clock.monotonic() - HOUR })).toBe(0);
    expect(flaps).toEqual([]);
  });

  it("keeps it even if its status is emptied, and while one of its pods is replaced", async () => {
    group.simulation.emptyStatus(1);
    group.workloads.deletePod(group.pods("pipe-1")[0]?.metadata.name ?? "");
    await group.run(MINUTE);
    expect(group.podSizes()).toEqual(group.names.map(() => FOUR));
    expect(conditionOf(group)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
  });

  it("follows the maximum of its tier, which always limits the size that it has back", async () => {
    group.simulation.setTier("small");
    await group.run(2 * MINUTE);
    expect(group.podSizes()).toEqual(group.names.map(() => "2000m/8Gi"));
    expect(conditionOf(group)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
    expect(conditionOf(group)?.message).toContain("; the tier limits them to 2 cpu / 8 Gi");
    group.simulation.setTier("basic");
    await group.run(2 * MINUTE);
    expectGivenBack(group);
    expect(flaps).toEqual([]);
  });

  it("gets the smaller size again when people ask for a retry, and gives it back again", async () => {
    group.simulation.askToRetry(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
    kill(group, "pipe-1");
    kill(group, "pipe-2");
    await group.run(MINUTE);
    expectGivenBack(group);
  });

  it("gets the smaller size again when it is requested after another one", async () => {
    group.request(4);
    await group.run(MINUTE);
    group.expectSettled(4);
    group.request(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
  });
});

it("a conflict of the write that records the return of a service is not reported", async () => {
  const group = await start(3);
  group.request(1);
  await group.run(2 * MINUTE);
  const { cluster, simulation } = group;
  const events = simulation.events.length;
  cluster.latencyMs = () => 7 * SECOND;
  let conflicts = 0;
  cluster.fault = ({ method, body }) => {
    const isRecord = method === "PATCH" && JSON.stringify(body).includes("outOfMemory");
    if (!isRecord || conflicts > 0) return undefined;
    conflicts += 1;
    return { error: new KubeApiError("PATCH", 409, "{}") };
  };
  kill(group, "pipe-1");
  await group.run(MINUTE);
  kill(group, "pipe-1");
  await group.run(5 * MINUTE);
  expect(conflicts).toBe(1);
  expectGivenBack(group);
  const warnings = simulation.events.slice(events).filter(({ type }) => type === "Warning");
  expect(warnings.map(({ reason }) => reason)).toEqual(["OutOfMemory"]);
});

describe("a service with a pipe that could not get its previous size back", () => {
  let group: PipeGroup;
  beforeEach(async () => {
    group = await start(3);
    group.simulation.setStrategy(1, "InPlace");
    group.request(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
    const stuck = group.pods("pipe-1").map(({ metadata }) => metadata.name);
    group.workloads.outcome = ({ metadata }) => (stuck.includes(metadata.name) ? "Infeasible" : "Done");
    for (let times = 0; times < 2; times += 1) {
      kill(group, "pipe-1", SECOND);
      await group.run(20 * SECOND);
    }
    expect(group.podSizes()).toEqual([FOUR, ONE, FOUR]);
    group.workloads.outcome = () => "Done";
  });

  it.each([1, 60])("gets the smaller size again when a retry is requested %i min later", async (minutes) => {
    await group.run(minutes * MINUTE);
    group.simulation.askToRetry(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
    expect(group.uids()).toEqual(group.before);
    kill(group, "pipe-0");
    kill(group, "pipe-2");
    await group.run(MINUTE);
    expectGivenBack(group);
  });

  it("counts the kills after the retry also of the pipe that kept the smaller size", async () => {
    group.simulation.askToRetry(1);
    await group.run(2 * MINUTE);
    kill(group, "pipe-1");
    await group.run(MINUTE);
    group.expectSettled(1);
    kill(group, "pipe-2");
    await group.run(MINUTE);
    expectGivenBack(group);
  });
});

it("a service whose pods must not be replaced gets its previous size back when its node has room, although its containers are killed meanwhile", async () => {
  const group = await PipeGroup.start({ pipes: 1, deployment: { cores: 4 }, nodeCores: 4 });
  group.simulation.setStrategy(1, "InPlace");
  group.request(4);
  await group.run(10 * SECOND);
  group.request(1);
  await group.run(2 * MINUTE);
  group.expectSettled(1);
  group.workloads.fillNode(0);
  for (let times = 0; times < 20; times += 1) {
    kill(group, "pipe-0");
    await group.run(2 * MINUTE);
  }
  expect(group.podSizes()).toEqual([ONE]);
  expect(group.busiest()).toEqual([]);
  // The kubelet keeps the smaller limit of the pod, and reports the larger one.
  group.workloads.kubelets.grantsStopped = true;
  kill(group, "pipe-0");
  await group.run(SECOND);
  group.workloads.emptyNode();
  await group.run(SECOND);
  expect(group.messages()).toMatch(/Restarted: .* the next one is at /);
  await group.run(12 * MINUTE);
  expectGivenBack(group);
  expect(group.workloads.kubelets.starved.size).toBe(0);
});

describe("a pipe that is OOM-killed while the first write of its commit fails", () => {
  let group: PipeGroup;
  beforeEach(async () => {
    group = await start(1);
    // A webhook for Deployments is down.
    group.cluster.fault = ({ method, query }, pipe) =>
      method === "PATCH" && pipe && !query?.["dryRun"]
        ? { error: new KubeApiError("PATCH", 500, "{}") }
        : undefined;
  });

  const killDuringOutage = async (isRestarted: boolean): Promise<void> => {
    group.request(1);
    await group.run(30 * MINUTE);
    expect([group.podSizes(), group.simulation.sizes("pipe-0")]).toEqual([[ONE], [FOUR]]);
    if (isRestarted) group.simulation.start();
    kill(group, "pipe-0");
    await group.run(5 * MINUTE);
    group.cluster.fault = () => undefined;
    await group.run(10 * MINUTE);
  };

  it.each([false, true])(
    "gets its old memory again if no pod may be replaced (restart of the controller: %s)",
    async (isRestarted) => {
      group.simulation.setStrategy(1, "InPlace");
      await killDuringOutage(isRestarted);
      expect([group.podSizes(), group.simulation.sizes("pipe-0")]).toEqual([[FOUR], [FOUR]]);
      expect(group.uids()).toEqual(group.before);
      expect(conditionOf(group)).toMatchObject({ type: "Stalled", reason: "NotResizedInPlace" });
      expect(group.messages()).toContain("Restarted: ");
    },
  );

  it.each([false, true])(
    "falls back to a rollout, which shows whether new pods run with less (restart of the controller: %s)",
    async (isRestarted) => {
      await killDuringOutage(isRestarted);
      expect(group.simulation.fallbacks).toEqual(["pipe-0 Restarted"]);
      group.expectSettled(1);
    },
  );
});

it.each([false, true])(
  "a service returns to the size that holds the resources of a pipe which are no size if that is OOM-killed twice while its template cannot follow (restart of the controller: %s)",
  async (isRestarted) => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { cores: 5 } });
    const { simulation, workloads } = group;
    simulation.stop();
    const resources = { requests: { cpu: "5", memory: "18Gi" }, limits: { memory: "20Gi" } };
    deployResizable(simulation, "late", 1, 1, { resources });
    group.request(2);
    await group.run(10 * SECOND);
    workloads.replaced.length = 0;
    workloads.killControllerManager();
    simulation.start();
    await group.run(3 * MINUTE);
    expect(group.podSizes("late")).toEqual(["2000m/8Gi"]);
    expect(group.cluster.deployments.get("late")?.spec.template.spec.containers[0]?.resources).toEqual(
      resources,
    );
    if (isRestarted) simulation.start();
    for (let times = 0; times < 2; times += 1) {
      await group.run(10 * SECOND);
      kill(group, "late", SECOND);
    }
    await group.run(MINUTE);
    expect(group.messages()).toContain("OOM-killed twice");
    workloads.startControllerManager();
    await group.run(10 * MINUTE);
    expect(group.podSizes("pipe-0", "late")).toEqual(["5000m/20Gi", "5000m/20Gi"]);
    expect(simulation.sizes("pipe-0", "late")).toEqual(["5000m/20Gi", "5000m/20Gi"]);
    expect(conditionOf(group)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
    expect(workloads.replaced).toEqual([]);
    expect(group.cluster.readyJudge.violations).toEqual([]);
  },
);

it.each(["RollingUpdate", "Recreate"] as const)(
  "a service whose node is full gets its previous size by a rollout of each pipe when that is killed, outside of the rollout window (%s)",
  async (strategy) => {
    const deployment = { cores: 4, strategy };
    const group = await PipeGroup.start({ pipes: 2, deployment, nodeCores: 20 });
    group.simulation.addService(1, { rolloutWindow: '{schedule: "0 0 1 1 *", duration: 1h}' });
    group.request(4);
    await group.run(2 * HOUR);
    group.request(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
    // The kubelet has no room for a larger pod, and another node has room for new ones.
    group.cluster.nodes = [...group.cluster.nodes, aNode("other", { cpu: "20", memory: "1Ti" })];
    group.workloads.outcome = ({ spec }) => (sizeOf(spec.containers[0]) === FOUR ? "Deferred" : "Done");
    for (let times = 0; times < 2; times += 1) {
      kill(group, "pipe-1");
      await group.run(MINUTE);
    }
    await group.run(5 * MINUTE);
    expect(group.podSizes("pipe-0", "pipe-1")).toEqual([ONE, FOUR]);
    expect(group.simulation.sizes("pipe-0", "pipe-1")).toEqual([ONE, FOUR]);
    kill(group, "pipe-0");
    await group.run(5 * MINUTE);
    expect(group.podSizes()).toEqual([FOUR, FOUR]);
    expect(conditionOf(group)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
    expect(group.cluster.readyJudge.violations).toEqual([]);
  },
);

describe("a service", () => {
  it("keeps a smaller memory in place if one container is OOM-killed once", async () => {
    const group = await start(3);
    group.request(1);
    await group.run(2 * MINUTE);
    kill(group, "pipe-1");
    await group.run(HOUR);
    group.expectSettled(1);
  });

  it("keeps it if a container is OOM-killed later than ten minutes after the resize", async () => {
    const group = await start(1);
    group.request(1);
    await group.run(11 * MINUTE);
    for (let times = 0; times < 3; times += 1) {
      kill(group, "pipe-0");
      await group.run(MINUTE);
    }
    group.expectSettled(1);
  });

  it("gives it back before other pipes get it if its canary is OOM-killed twice", async () => {
    const group = await start(4);
    group.request(1);
    await group.run(5 * SECOND);
    const canary = group.names.find((name) => group.podSizes(name)[0] === ONE) ?? "";
    for (let times = 0; times < 2; times += 1) {
      kill(group, canary, SECOND);
      await group.run(10 * SECOND);
    }
    await group.run(MINUTE);
    expectGivenBack(group);
    const resized = new Set(
      group.cluster.attempts.map(({ target }) => target).filter((each) => /^pods/.test(each)),
    );
    expect([...resized]).toEqual([`pods/resize ${group.pods(canary)[0]?.metadata.name}`]);
  });

  it.each([0, 5, 15, 29])(
    "runs a smaller memory in its canary for 30 s before others follow, although the controller is killed after %i s",
    async (seconds) => {
      const group = await start(4);
      let resizedAtMs = Number.NaN;
      group.whenPodsRun(1, () => {
        resizedAtMs = group.cluster.clock.monotonic();
      });
      group.request(1);
      await group.runUntil(() => !Number.isNaN(resizedAtMs), MINUTE);
      await group.run(seconds * SECOND);
      group.simulation.start();
      const others = () => group.podSizes().filter((each) => each === ONE).length > 1;
      await group.runUntil(others, 2 * MINUTE);
      const heldMs = group.cluster.clock.monotonic() - resizedAtMs;
      expect(heldMs).toBeGreaterThanOrEqual(29 * SECOND);
      await group.run(2 * MINUTE);
      group.expectSettled(1);
    },
  );
});

it("a service gives a smaller memory back, and keeps the previous size, whenever its controller is killed", async () => {
  const kills = fc.array(fc.nat({ max: 1500 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(kills, fc.constantFrom(1, 2), fc.boolean(), async (waits, replicas, isInTwo) => {
      const group = await start(3, replicas);
      const flaps = watchForFlapping(group);
      group.request(1);
      await group.run(2 * MINUTE);
      kill(group, "pipe-1", SECOND);
      if (replicas === 1 && !isInTwo) {
        await group.run(20 * SECOND);
        kill(group, "pipe-1", SECOND);
      } else kill(group, "pipe-2", SECOND);
      for (const waitMs of waits) {
        await group.run(waitMs);
        group.simulation.start();
      }
      await group.run(2 * MINUTE);
      expectGivenBack(group);
      await group.run(HOUR);
      expectGivenBack(group);
      expect(flaps).toEqual([]);
    }),
    { numRuns: numRuns(30) },
  );
});
