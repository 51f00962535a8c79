import { describe, expect, it } from "vitest";
import { aNode } from "../../../support/fixtures/node.ts";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { deployResizable, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const WITHOUT_SURGE = { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };

/** One pod of one core on a node that has no room for another pod beside it. */
async function started(terminationMs: number, deployment: object = WITHOUT_SURGE): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1, deployment });
  group.simulation.start("Rollout");
  await group.run(5 * SECOND);
  group.workloads.scheduler.capacityMillicores = 2000;
  group.workloads.scheduler.terminationMs = () => terminationMs;
  return group;
}

describe.each([1, 15, 30, 120])("an old pod that takes %i s to end", (seconds) => {
  it("is waited for if the new pod needs its room", async () => {
    const group = await started(seconds * SECOND);
    group.request(2);
    await group.run(seconds * SECOND + MINUTE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
    expect(group.attemptsOf("deployments pipe-0")).toBeLessThanOrEqual(3);
  });

  it("is waited for by the next controller", async () => {
    const group = await started(seconds * SECOND);
    group.request(2);
    await group.run(Math.min(seconds * SECOND, 10 * SECOND) / 2);
    group.simulation.start();
    await group.run(seconds * SECOND + MINUTE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });

  it("is waited for with the strategy Recreate", async () => {
    const group = await started(seconds * SECOND, { strategy: "Recreate" });
    group.request(2);
    await group.run(seconds * SECOND + MINUTE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });
});

describe.each([1, 15, 45, 120])("an old pod that counts in a quota, and takes %i s to end", (seconds) => {
  const started = async (quota: number) => {
    const group = await PipeGroup.start({ pipes: 1, deployment: WITHOUT_SURGE });
    const { simulation, workloads } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    workloads.scheduler.limits.set({ quota });
    workloads.scheduler.terminationMs = () => seconds * SECOND;
    group.request(2);
    return group;
  };

  it("is waited for if the new pod needs its part of the quota", async () => {
    const group = await started(2500);
    await group.run(seconds * SECOND + MINUTE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });

  it("is not waited for again if the quota became too small for the new pod meanwhile", async () => {
    const group = await started(2500);
    await group.run((seconds * SECOND) / 2);
    group.workloads.scheduler.limits.set({ quota: 1500 });
    await group.run(2 * seconds * SECOND + MINUTE);
    expect(group.podSizes()).toEqual(["1000m/4Gi"]);
    expect(group.simulation.status(1).failures).toMatchObject([{ pipe: "pipe-0", reason: "FailedCreate" }]);
  });
});

it("a new pod without room after its predecessor has ended is rolled back soon", async () => {
  const group = await started(15 * SECOND);
  group.request(4);
  await group.run(2 * MINUTE);
  expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
  expect(group.podSizes()).toEqual(["1000m/4Gi"]);
  expect(group.messages()).toContain("Insufficient cpu");
  expect(group.cluster.readyJudge.violations).toEqual([]);
});

it.each<[string, (group: PipeGroup) => void]>([
  ["whose tier is unknown", ({ simulation }) => simulation.setTier("none")],
  ["whose organization is malformed", ({ simulation }) => simulation.setTier("basic", { byocConfig: "[" })],
])("a new pod without room is rolled back also in a service %s since then", async (_, spoil) => {
  const group = await started(15 * SECOND);
  group.request(4);
  await group.run(SECOND);
  expect(group.workloads.replaced).toEqual(["pipe-0"]);
  spoil(group);
  await group.run(2 * MINUTE);
  expect(group.podSizes()).toEqual(["1000m/4Gi"]);
  expect(group.workloads.replaced).toEqual(["pipe-0", "pipe-0"]);
  const written = group.cluster.writes.length;
  await group.run(60 * MINUTE);
  expect(group.cluster.writes.slice(written)).toEqual([]);

  group.simulation.setTier("basic");
  await group.run(60 * MINUTE);
  expect(group.podSizes()).toEqual(["1000m/4Gi"]);
  expect(group.messages()).toContain("Insufficient cpu");
});

it("a pipe whose room comes a minute later than its old pod ends runs its old size until a retry is requested", async () => {
  const group = await started(15 * SECOND);
  group.workloads.scheduler.capacityMillicores = 1500;
  group.request(2);
  await group.run(75 * SECOND);
  group.workloads.scheduler.capacityMillicores = 4000;
  group.workloads.scheduler.scheduleAll();
  await group.run(60 * MINUTE);
  expect(group.podSizes()).toEqual(["1000m/4Gi"]);
  group.simulation.askToRetry(1);
  await group.run(MINUTE);
  group.expectSettled(2);
});

/** The message of a scheduler for so many nodes without room, and others that do not accept the pod. */
function wordsFor(full: number, tainted: number): string {
  const nodes = `0/${full + tainted} nodes are available`;
  // The scheduler sorts the clauses with their numbers.
  const listed = (...clauses: readonly string[]) => clauses.toSorted().join(", ");
  const reasons = listed(
    `${full} Insufficient cpu`,
    `${tainted} node(s) had untolerated taint {node.kubernetes.io/unreachable: }`,
  );
  const victims = listed(
    `${full} No preemption victims found for incoming pod`,
    `${tainted} Preemption is not helpful for scheduling`,
  );
  return `${nodes}: ${reasons}. no new claims to deallocate, preemption: ${nodes}: ${victims}.`;
}

describe.each<[string, (at: number) => string]>([
  ["numbers", (at) => `0/${at} nodes are available: ${at} Insufficient cpu.`],
  ["numbers, and with them the order of its clauses,", (at) => wordsFor(1 + (at % 13), 1 + (at % 7))],
])("%s that the scheduler changes in its message every ten seconds", (_, wordsAt) => {
  it("cause few writes of the status", async () => {
    const group = await started(SECOND, {});
    group.request(4);
    await group.run(10 * SECOND);
    const sinceMs = group.cluster.clock.monotonic();
    for (let at = 1; at <= 80; at += 1) {
      group.explain("pipe-0", /^PodScheduled$/, wordsAt(at));
      await group.run(10 * SECOND);
    }
    expect(group.messages()).toMatch(
      /fits no node at present: 0\/\d+ nodes are available: .*\d+ Insufficient cpu/,
    );
    expect(group.attemptsOf(/^pipescalings/, { sinceMs })).toBeLessThanOrEqual(5);
  });

  it("are written at once if the words change, too", async () => {
    const group = await started(SECOND, {});
    group.request(4);
    await group.run(10 * SECOND);
    group.explain("pipe-0", /^PodScheduled$/, wordsAt(1));
    await group.run(10 * SECOND);
    group.explain("pipe-0", /^PodScheduled$/, wordsAt(2).replace("cpu", "memory"));
    await group.run(10 * SECOND);
    expect(group.messages()).toContain("Insufficient memory");
  });
});

/** The size cannot be changed in place, because the container would restart. */
const RESTARTS = {
  template: {
    spec: {
      containers: [
        { name: "pipe", resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] },
      ],
    },
  },
};

describe.each([
  ["the strategy Recreate", { strategy: "Recreate" }],
  ["no surge", WITHOUT_SURGE],
] as const)(
  "a pipe with %s, whose old pod has ended for a size for which its new pod has no room,",
  (_, deployment) => {
    async function interrupted(): Promise<PipeGroup> {
      const group = await PipeGroup.start({ pipes: 1, deployment });
      group.cluster.change("pipe-0", RESTARTS);
      await group.run(MINUTE);
      const { scheduler } = group.workloads;
      scheduler.capacityMillicores = 4500;
      scheduler.terminationMs = () => SECOND;
      group.request(4);
      await group.run(SECOND / 2);
      scheduler.place("other", "2500m");
      await group.run(5 * SECOND);
      expect(group.podSizes()).toEqual(["none"]);
      return group;
    }

    it.each([1, 2])("gets %i cores at once if these are requested then", async (cores) => {
      const group = await interrupted();
      group.request(cores);
      await group.run(5 * SECOND);
      group.expectSettled(cores);
    });

    it("is rolled back as soon as that is known if the next size has to wait for a window", async () => {
      const group = await interrupted();
      group.simulation.addService(1, { rolloutWindow: '{schedule: "0 12 * * *", duration: 1h}' });
      group.request(2);
      await group.run(20 * SECOND);
      expect(group.podSizes()).toEqual(["1000m/4Gi"]);
    });
  },
);

it("a pipe whose new pod does not become ready gets its old size at once if that is requested again", async () => {
  const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
  group.cluster.change("pipe-0", RESTARTS);
  await group.run(MINUTE);
  group.workloads.kubelets.startMs = ({ spec }) =>
    ["1", "1000m"].includes(spec.containers[0]?.resources?.requests?.["cpu"] ?? "") ? 500 : undefined;
  group.request(4);
  await group.run(30 * SECOND);
  group.request(1);
  await group.run(5 * SECOND);
  group.expectSettled(1);
});

it("a pipe that keeps its old pod until the new one runs keeps it while another size waits", async () => {
  const group = await PipeGroup.start({ pipes: 1 });
  group.cluster.change("pipe-0", RESTARTS);
  await group.run(MINUTE);
  const [before] = group.uids();
  group.workloads.scheduler.capacityMillicores = 4000;
  group.request(4);
  await group.run(5 * SECOND);
  group.request(2);
  await group.run(MINUTE);
  expect(group.uids()[0]).toBe(before);
  expect(group.simulation.sizes("pipe-0")).toEqual(["4000m/16Gi"]);
  await group.run(2 * MINUTE);
  group.expectSettled(2);
});

it.each([1, 2])(
  "a StatefulSet whose pod has ended for a size without room gets %i cores at once if these are requested then",
  async (cores) => {
    const held = await HeldSet.start({ replicas: 1 });
    held.change(RESTARTS);
    await held.run(MINUTE);
    workloadsOf(held.simulation).scheduler.capacityMillicores = 2000;
    held.request(4);
    await held.run(5 * SECOND);
    expect(held.state()).toMatchObject([{ size: "4000m/16Gi", actual: "none" }]);
    held.request(cores);
    await held.run(10 * SECOND);
    expect(held.state().map(({ actual }) => actual)).toEqual([`${cores}000m/${4 * cores}Gi`]);
    expect(held.deleted()).toEqual(["a-0 deleted"]);
  },
);

it("a pipe of another service does not get the room of a rollout whose old pod takes five minutes to end", async () => {
  const group = await PipeGroup.start({ pipes: 1, nodeCores: 8, deployment: { strategy: "Recreate" } });
  const { simulation, workloads, cluster } = group;
  simulation.addService(2);
  deployResizable(simulation, "other", 2, 1, { strategy: "Recreate" });
  simulation.start("Rollout");
  await group.run(5 * SECOND);
  workloads.replaced.length = 0;
  workloads.scheduler.terminationMs = () => 5 * MINUTE;
  group.request(5);
  await group.run(3 * MINUTE);
  simulation.requestSize(2, 4);
  await group.run(10 * MINUTE);
  group.expectSettled(5);
  expect(workloads.replaced).toEqual(["pipe-0"]);
  expect(simulation.condition(2)).toMatchObject({ reason: "NoNodeHasRoom" });
  cluster.nodes = [...cluster.nodes, aNode("large", { cpu: "8", memory: "32Gi" })];
  workloads.scheduler.capacityMillicores = 16_000;
  await group.run(20 * MINUTE);
  expect(simulation.sizes("other")).toEqual(["4000m/16Gi"]);
  expect(workloads.replaced).toEqual(["pipe-0", "other"]);
});
