import { describe, expect, it } from "vitest";
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

it("a new pod without room after its predecessor has ended is rolled back soon", async () => {
  const group = await started(15 * SECOND);
  group.request(4);
  await group.run(2 * MINUTE);
  expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
  expect(group.podSizes()).toEqual(["1000m/4Gi"]);
  expect(group.messages()).toContain("Insufficient cpu");
  expect(group.cluster.readyJudge.violations).toEqual([]);
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

it("numbers that the scheduler changes in its message every ten seconds cause few writes of the status", async () => {
  const group = await started(SECOND, {});
  group.request(4);
  await group.run(10 * SECOND);
  const sinceMs = group.cluster.clock.monotonic();
  for (let nodes = 1; nodes <= 80; nodes += 1) {
    group.explain("pipe-0", /^PodScheduled$/, `0/${nodes} nodes are available: ${nodes} Insufficient cpu.`);
    await group.run(10 * SECOND);
  }
  expect(group.messages()).toMatch(
    /fits no node at present: 0\/\d+ nodes are available: \d+ Insufficient cpu/,
  );
  expect(group.attemptsOf(/^pipescalings/, { sinceMs })).toBeLessThanOrEqual(5);
});
