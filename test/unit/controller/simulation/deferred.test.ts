import { beforeEach, describe, expect, it } from "vitest";
import type { ResizeStrategy } from "../../../../src/domain/resize-strategy.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import type { ResizeOutcome } from "../../../support/simulation/kubelets.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const [ONE, TWO] = ["1000m/4Gi", "2000m/8Gi"];
const OTHER_NODE = aNode("other", { cpu: "8", memory: "32Gi" });

/** Pipes that stop their old pods first, and whose kubelet defers every resize. */
async function started(pipes = 1): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes, deployment: { strategy: "Recreate" } });
  group.workloads.outcome = () => "Deferred";
  return group;
}

function grant({ workloads }: PipeGroup): void {
  workloads.outcome = () => "Done";
  workloads.look();
}

const searchesOf = ({ cluster }: PipeGroup) =>
  cluster.attempts.filter(({ target, isDryRun }) => isDryRun && target.startsWith("deployments")).length;

describe("a pipe that stops its old pods first, on a node without room", () => {
  it("keeps its pod for an hour with few searches, is reported after the time of a rollout, and gets the size with the room", async () => {
    const group = await started();
    group.request(2);
    await group.run(2 * MINUTE);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Reconciling", reason: "Progressing" });
    expect(group.messages()).toMatch(
      /pipe-0: pod pipe-0-\S+ waits for room on its node .* and no other node is large enough/,
    );
    await group.run(14 * MINUTE);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NoNodeHasRoom" });
    await group.run(44 * MINUTE);
    expect(group.uids()).toEqual(group.before);
    expect(group.podSizes()).toEqual([ONE]);
    expect(searchesOf(group)).toBeLessThanOrEqual(12);
    expect(group.busiest()).toEqual([]);
    grant(group);
    await group.run(MINUTE);
    group.expectSettled(2);
    expect(group.uids()).toEqual(group.before);
    expect(group.workloads.replaced).toEqual([]);
  });

  it("is rolled out within ten minutes when another node gets room, without a request", async () => {
    const group = await started();
    group.request(2);
    await group.run(30 * MINUTE);
    expect(group.workloads.replaced).toEqual([]);
    group.cluster.nodes = [...group.cluster.nodes, OTHER_NODE];
    await group.run(11 * MINUTE);
    grant(group);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
    expect(group.simulation.fallbacks).toEqual(["pipe-0 Deferred"]);
  });

  it("keeps its pod, and returns to the first size, if that is requested again", async () => {
    const group = await started();
    group.request(2);
    await group.run(20 * MINUTE);
    group.request(1);
    await group.run(MINUTE);
    group.expectSettled(1);
    expect(group.uids()).toEqual(group.before);
  });

  it.each([false, true])(
    "keeps its pod, and gets the size with the room, although its container runs out of memory meanwhile (new controller: %s)",
    async (isRestarted) => {
      const group = await started();
      group.request(2);
      await group.run(5 * MINUTE);
      for (const { metadata } of group.pods("pipe-0"))
        group.workloads.crash(metadata.name, 10 * SECOND, "OOMKilled");
      await group.run(5 * MINUTE);
      if (isRestarted) group.simulation.start();
      await group.run(MINUTE);
      expect(group.messages()).toContain("waits for room on its node");
      grant(group);
      await group.run(6 * MINUTE);
      group.expectSettled(2);
      expect(group.uids()).toEqual(group.before);
      expect(group.simulation.fallbacks).toEqual([]);
    },
  );

  it("goes on waiting under the next controller", async () => {
    const group = await started();
    group.request(2);
    await group.run(20 * MINUTE);
    group.simulation.start();
    await group.run(10 * MINUTE);
    expect(group.uids()).toEqual(group.before);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NoNodeHasRoom" });
    grant(group);
    await group.run(MINUTE);
    group.expectSettled(2);
    expect(group.uids()).toEqual(group.before);
  });
});

it("pipes that stop their old pods first take turns if another node has room for one of them", async () => {
  const group = await started(3);
  group.cluster.nodes = [...group.cluster.nodes, aNode("other", { cpu: "3", memory: "12Gi" })];
  group.request(2);
  // The first pipe is rolled out after a minute, and the others have been deferred for a minute after that.
  await group.run(150 * SECOND);
  expect(searchesOf(group)).toBeGreaterThan(4);
  expect(group.workloads.replaced).toHaveLength(1);
  expect(group.podSizes().toSorted()).toEqual([ONE, ONE, TWO]);
});

describe("a pipe that stops its old pods first, on a node without room, while the rollout window is closed", () => {
  /** Only the first pipe is deferred, and another node has room for it. The window opens after six hours. */
  async function held(): Promise<PipeGroup> {
    const group = await started(2);
    group.simulation.addService(1, { rolloutWindow: '{schedule: "0 6 * * *", duration: 1h}' });
    group.cluster.nodes = [...group.cluster.nodes, OTHER_NODE];
    group.workloads.outcome = ({ metadata }) => (metadata.name.startsWith("pipe-0") ? "Deferred" : "Done");
    group.request(2);
    await group.run(3 * HOUR);
    return group;
  }

  it("goes on waiting without a search although another node has room, and keeps no other pipe waiting", async () => {
    const group = await held();
    const searched = searchesOf(group);
    expect(group.uids()).toEqual(group.before);
    expect(group.podSizes("pipe-0", "pipe-1")).toEqual([ONE, TWO]);
    expect(group.simulation.fallbacks).toEqual([]);
    expect(group.simulation.condition(1)).toMatchObject({
      type: "Reconciling",
      reason: "WaitingForWindow",
      message: expect.stringContaining(
        "1 waiting for the rollout window, which opens at 2026-01-01T06:00:00Z.",
      ),
    });
    expect(group.simulation.status(1).pipes?.pending).toMatchObject([
      {
        name: "pipe-0",
        state: "Waiting",
        message: expect.stringMatching(/waits for room on its node .* which opens at 2026-01-01T06:00:00Z$/),
      },
    ]);
    await group.run(2 * HOUR);
    expect(searchesOf(group)).toBe(searched);
    expect(group.busiest()).toEqual([]);
  });

  it("gets the size with the same pod if its node gets room before the window opens", async () => {
    const group = await held();
    grant(group);
    await group.run(MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
    expect(group.simulation.fallbacks).toEqual([]);
  });

  it("is rolled out as soon as the window opens if another node has room then", async () => {
    const group = await held();
    await group.run(3 * HOUR - 5 * SECOND);
    expect(group.workloads.replaced).toEqual([]);
    await group.run(MINUTE);
    grant(group);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
    expect(group.simulation.fallbacks).toEqual(["pipe-0 Deferred"]);
  });

  it("goes on waiting in the window, and after it, if no other node has room", async () => {
    const group = await held();
    group.cluster.nodes = group.cluster.nodes.filter((each) => each !== OTHER_NODE);
    await group.run(3 * HOUR + 30 * MINUTE);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NoNodeHasRoom" });
    await group.run(HOUR);
    expect(group.simulation.condition(1)).toMatchObject({ reason: "WaitingForWindow" });
    grant(group);
    await group.run(MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
  });

  it("goes on waiting under the next controller", async () => {
    const group = await held();
    group.simulation.start();
    await group.run(HOUR);
    expect(group.uids()).toEqual(group.before);
    grant(group);
    await group.run(MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
  });
});

describe("numbers that a kubelet changes in its message every ten seconds", () => {
  const deferred = (used: number) =>
    `Node didn't have enough resource: cpu, requested: 2000, used: ${used}, capacity: 8000`;
  const tooSmall = (used: number) =>
    `cannot decrease memory limits: [attempting to set pod memory limit (4294967296) below current usage (${used})]`;

  it.each<[ResizeStrategy, ResizeOutcome, (used: number) => string]>([
    ["InPlaceOrRollout", "Deferred", deferred],
    ["InPlace", "Deferred", deferred],
    ["InPlace", "Error", tooSmall],
  ])("cause few writes of the status with the strategy %s (%s)", async (strategy, outcome, messageOf) => {
    const group = await started();
    const { simulation, workloads } = group;
    simulation.setStrategy(1, strategy);
    workloads.outcome = () => outcome;
    group.request(2);
    await group.run(3 * MINUTE);
    for (let hours = 0; hours < 3; hours += 1) {
      const sinceMs = group.cluster.clock.monotonic();
      for (let ms = 0; ms < HOUR; ms += 10 * SECOND) {
        group.explain("pipe-0", /^PodResize/, messageOf(1000 + ms));
        await group.run(10 * SECOND);
      }
      expect(group.attemptsOf(/^pipescalings/, { sinceMs })).toBeLessThanOrEqual(20);
    }
    expect(group.messages()).toContain(messageOf(1000).slice(0, 30));
    expect(group.podSizes()).toEqual([ONE]);
    grant(group);
    await group.run(2 * MINUTE);
    group.expectSettled(2);
  });
});

describe("a pipe that keeps its old pod, on a node with room for neither the size nor a second pod", () => {
  let group: PipeGroup;
  beforeEach(async () => {
    group = await PipeGroup.start({ pipes: 1, nodeCores: 8 });
    group.request(2);
    await group.run(MINUTE);
    group.workloads.fillNode(1000);
    group.request(4);
    const isStalled = () => group.simulation.condition(1)?.type === "Stalled";
    expect(await group.runUntil(isStalled, 20 * MINUTE)).toBeGreaterThan(15 * MINUTE);
    await group.run(MINUTE);
    group.workloads.replaced.length = 0;
  });

  it("is tried in place again after each failed rollout, and gets the size when there is room for that only", async () => {
    expect(await group.runUntil(() => group.messages().includes("Attempt 2;"), 30 * MINUTE)).toBeDefined();
    await group.run(SECOND);
    group.workloads.emptyNode();
    group.workloads.fillNode(3000);
    await group.run(15 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
  });

  it("keeps its pod and its size with few writes while there is no room", async () => {
    for (let hours = 0; hours < 12; hours += 1) {
      await group.run(HOUR);
      expect(group.busiest(group.cluster.clock.monotonic() - HOUR)).toEqual([]);
    }
    expect(group.simulation.fallbacks).toEqual(["pipe-0 Deferred"]);
    expect(group.uids()).toEqual(expect.arrayContaining([...group.before]));
    expect(group.podSizes()).toContain(TWO);
    expect(group.cluster.readyJudge.violations).toEqual([]);
  });
});
