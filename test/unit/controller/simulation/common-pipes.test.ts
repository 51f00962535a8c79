import { describe, expect, it } from "vitest";
import type { TemplateContainer } from "../../../../src/kube/pods.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A pipe of service 1 on a node with 8 CPUs. */
async function start(
  strategy: "Recreate" | "RollingUpdate",
  container: Partial<TemplateContainer>,
): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1, deployment: { strategy }, nodeCores: 8 });
  group.cluster.change("pipe-0", { template: { spec: { containers: [{ name: "pipe", ...container }] } } });
  await group.run(MINUTE);
  group.workloads.replaced.length = 0;
  group.before = group.uids();
  return group;
}

/** Requests a size, and returns how often the pipe was replaced within an hour. */
async function replacedBy(group: PipeGroup, act: () => void): Promise<number> {
  const { replaced } = group.workloads;
  const before = replaced.length;
  act();
  await group.run(HOUR);
  return replaced.length - before;
}

describe("a pipe like Debezium: a JVM with a share of the memory limit, which stops its old pod first", () => {
  const startJvm = () => start("Recreate", { args: ["-XX:MaxRAMPercentage=75"] });

  it("restarts once for a larger size, a smaller one, and a smaller tier", async () => {
    const group = await startJvm();
    expect(await replacedBy(group, () => group.request(4))).toBe(1);
    group.expectSettled(4);
    expect(await replacedBy(group, () => group.request(3))).toBe(1);
    group.expectSettled(3);
    expect(await replacedBy(group, () => group.simulation.setTier("small"))).toBe(1);
    group.expectSettled(2);
    group.simulation.setTier("basic");
    await group.run(HOUR);
    group.expectSettled(3);
  });

  it("does not restart while the node is full, and restarts once when it has room", async () => {
    const group = await startJvm();
    group.workloads.fillNode(1000);
    expect(await replacedBy(group, () => group.request(4))).toBe(0);
    expect(group.uids()).toEqual(group.before);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NoNodeHasRoom" });
    expect(await replacedBy(group, () => group.workloads.emptyNode())).toBe(1);
    group.expectSettled(4);
  });

  it("does not restart while a quota refuses the size, and restarts once when it does not", async () => {
    const group = await startJvm();
    group.workloads.scheduler.limits.set({ quota: 2000 });
    expect(await replacedBy(group, () => group.request(4))).toBe(0);
    expect(group.uids()).toEqual(group.before);
    expect(group.simulation.condition(1)).toMatchObject({
      type: "Stalled",
      reason: "Refused",
      message: expect.stringContaining('raise the ResourceQuota "small"'),
    });
    expect(await replacedBy(group, () => group.workloads.scheduler.limits.set({}))).toBe(1);
    group.expectSettled(4);
  });
});

// The turn of several pipes comes at the same time, and then there is room for only some of them.
it.each([3, 5])(
  "%i pipes that stop their old pods first restart once each on a node with just the room for all",
  async (pipes) => {
    const group = await PipeGroup.start({
      pipes,
      deployment: { strategy: "Recreate" },
      nodeCores: 4 * pipes,
    });
    group.simulation.setStrategy(1, "Rollout");
    group.request(4);
    await group.run(HOUR);
    group.expectSettled(4);
    expect(group.workloads.replaced.toSorted()).toEqual(group.names);
  },
);

// Only a part of the dry runs is in flight at a time, and each result counts for a minute when the turn of a pipe comes.
it("hundreds of pipes that stop their old pods first begin although the dry runs of all of them take minutes", async () => {
  const group = await PipeGroup.start({
    pipes: 200,
    deployment: { strategy: "Recreate" },
    nodeCores: 2000,
  });
  group.simulation.setStrategy(1, "Rollout");
  group.cluster.latencyMs = ({ query }) => (query?.["dryRun"] === undefined ? 5 : MINUTE / 5);
  group.request(4);
  await group.run(5 * MINUTE);
  expect(group.workloads.replaced).not.toEqual([]);
});

describe("a pipe like PeerDB: a Go program with a CPU limit of twice its request", () => {
  const startGo = () => start("RollingUpdate", { resources: { limits: { cpu: "2" } } });

  it("does not restart for a larger size, a smaller one, or another tier", async () => {
    const group = await startGo();
    for (const cores of [2, 1, 2]) {
      expect(await replacedBy(group, () => group.request(cores))).toBe(0);
      group.expectSettled(cores);
    }
    expect(await replacedBy(group, () => group.simulation.setTier("small"))).toBe(0);
    group.expectSettled(2);
    expect(group.uids()).toEqual(group.before);
  });

  it("does not restart for a size above its CPU limit, which is reported", async () => {
    const group = await startGo();
    expect(await replacedBy(group, () => group.request(4))).toBe(0);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "CpuLimitTooLow" });
    expect(group.uids()).toEqual(group.before);
  });

  it("keeps its pod while the node is full or a quota refuses the size, and gets the size later", async () => {
    const group = await startGo();
    group.workloads.scheduler.limits.set({ quota: 1000 });
    expect(await replacedBy(group, () => group.request(2))).toBe(0);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "Refused" });
    expect(await replacedBy(group, () => group.workloads.scheduler.limits.set({}))).toBe(0);
    group.expectSettled(2);
    group.request(1);
    await group.run(HOUR);
    group.workloads.fillNode(0);
    // A rollout after the resize was deferred for a minute is rolled back, and the old pod ran all the time.
    expect(await replacedBy(group, () => group.request(2))).toBeLessThanOrEqual(2);
    expect(group.uids()).toEqual(expect.arrayContaining([...group.before]));
    group.workloads.emptyNode();
    group.simulation.askToRetry(1);
    await group.run(HOUR);
    group.expectSettled(2);
  });
});
