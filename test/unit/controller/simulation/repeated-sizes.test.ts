import { beforeEach, describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

type PipeOptionsOfGroup = NonNullable<Parameters<typeof PipeGroup.start>[0]["deployment"]>;

/** A program that gets another size only by a restart. */
const READS_SIZE: PipeOptionsOfGroup = { strategy: "Recreate", args: ["-XX:MaxRAMPercentage=75"] };

describe("a size that no node can hold, with the strategy Rollout", () => {
  it("is tried for a day, and each attempt is rolled back within the timeout", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2, nodeCores: 20 });
    const { simulation } = group;
    simulation.setStrategy(1, "Rollout");
    group.request(4);
    await group.run(5 * MINUTE);
    group.request(16);
    let [attempts, minutesAtFailedSize] = [0, 0];
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      await group.run(MINUTE);
      const isTried = simulation.sizes("pipe-0")[0] === "16000m/64Gi";
      minutesAtFailedSize = isTried ? minutesAtFailedSize + 1 : 0;
      if (minutesAtFailedSize === 1) attempts += 1;
      expect(minutesAtFailedSize).toBeLessThanOrEqual(20);
    }
    // After 5, 10, 20 and 40 minutes, and then every hour, plus the timeout of each.
    expect(attempts).toBeGreaterThanOrEqual(15);
    expect(simulation.status(1).failures?.[0]?.nextRetryAt).toBeDefined();
  });
});

describe("a boost each night", () => {
  it.each([
    ["up by a rollout and down in place", "8000m", "Deferred"],
    ["up in place and down by a rollout", "2000m", "Error"],
  ] as const)("is applied and ended for ten nights if pipes get it %s", async (_, refused, outcome) => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 1 });
    const { simulation, workloads } = group;
    group.request(2);
    await group.run(30 * MINUTE);
    workloads.outcome = ({ spec }) =>
      spec.containers[0]?.resources?.requests?.["cpu"] === refused ? outcome : "Done";
    for (let night = 1; night <= 10; night += 1) {
      simulation.boost(1, 8, HOUR);
      await group.run(50 * MINUTE);
      expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
      expect(simulation.sizes("pipe-0")).toEqual(["8000m/32Gi"]);
      await group.run(30 * MINUTE);
      group.expectSettled(2);
      await group.run(23 * HOUR - 20 * MINUTE);
    }
  });
});

describe("a boost each night to a size with which no pod starts", () => {
  it.each(["Recreate", "RollingUpdate"] as const)(
    "is tried once in each of ten nights, and works when the cause is fixed (%s)",
    async (strategy) => {
      const group = await PipeGroup.start({ pipes: 2, deployment: { strategy } });
      const { simulation, workloads } = group;
      simulation.setStrategy(1, "Rollout");
      const startMs = workloads.kubelets.startMs;
      workloads.kubelets.startMs = (pod) =>
        pod.spec.containers[0]?.resources?.requests?.["cpu"] === "8000m" ? undefined : startMs(pod);
      let templates: readonly string[] = [];
      group.cluster.onDeployment.push(() => {
        const sizes = simulation.sizes(...group.names).join(" ");
        if (templates.at(-1) !== sizes) templates = [...templates, sizes];
      });
      for (let night = 1; night <= 10; night += 1) {
        templates = [];
        simulation.boost(1, 8, 19 * MINUTE);
        await group.run(18 * MINUTE);
        expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "RolloutTimeout" });
        await group.run(HOUR);
        group.expectSettled(1);
        expect(templates.filter((each) => each.includes("8000m"))).toHaveLength(1);
        await group.run(22 * HOUR);
      }
      workloads.kubelets.startMs = startMs;
      simulation.boost(1, 8, HOUR);
      await group.run(30 * MINUTE);
      group.expectSettled(8);
    },
  );
});

it("a size that pipes could not get in place is tried in place again whenever it is requested again", async () => {
  const group = await PipeGroup.start({ pipes: 1, nodeCores: 6 });
  const { simulation, workloads } = group;
  simulation.addService(1, { rolloutWindow: '{schedule: "0 0 1 1 *", duration: 1h}' });
  await group.run(2 * HOUR);
  workloads.fillNode(0);
  for (let times = 1; times <= 8; times += 1) {
    group.request(4);
    await group.run(10 * MINUTE);
    expect(simulation.condition(1)).toMatchObject({ reason: "WaitingForWindow" });
    group.request(1);
    await group.run(10 * MINUTE);
    group.expectSettled(1);
    expect(group.attemptsOf(/^deployments/, { sinceMs: group.cluster.clock.monotonic() - 10 * MINUTE })).toBe(
      1,
    );
  }
  workloads.emptyNode();
  group.request(4);
  await group.run(MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
});

/** Each makes four cores impossible, or possible again. */
const REFUSALS: readonly (readonly [
  string,
  PipeOptionsOfGroup,
  (group: PipeGroup, isRefused: boolean) => void,
])[] = [
  ["a quota refuses in place", {}, setQuota],
  ["a quota refuses for new pods", READS_SIZE, setQuota],
  ["no node is large enough for", READS_SIZE, setNodeSize],
  ["no node has room for", READS_SIZE, fillNode],
];

function setQuota({ workloads }: PipeGroup, isRefused: boolean): void {
  workloads.scheduler.limits.set(isRefused ? { quota: 2000 } : {});
}

function setNodeSize({ cluster, workloads }: PipeGroup, isRefused: boolean): void {
  const cores = isRefused ? 2 : 16;
  cluster.nodes = [aNode("node", { cpu: `${cores}`, memory: "1Ti" })];
  workloads.scheduler.capacityMillicores = 1000 * cores;
}

function fillNode({ workloads }: PipeGroup, isRefused: boolean): void {
  if (isRefused) workloads.fillNode(0);
  else workloads.emptyNode();
}

describe.each(REFUSALS)("a size that %s", (_, deployment, refuse) => {
  let group: PipeGroup;
  beforeEach(async () => {
    group = await PipeGroup.start({ pipes: 1, nodeCores: 16, deployment });
    group.request(1);
    await group.run(MINUTE);
    group.expectSettled(1);
    refuse(group, true);
  });

  it("is tried at once when it is requested again, and the first failure of that has the first delay", async () => {
    group.request(4);
    await group.run(3 * HOUR);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled" });
    group.request(1);
    await group.run(MINUTE);
    group.expectSettled(1);
    group.request(4);
    await group.run(MINUTE);
    expect(group.simulation.status(1).failures).toMatchObject([{ attempts: 1 }]);
    group.request(1);
    await group.run(MINUTE);
    refuse(group, false);
    group.request(4);
    await group.run(MINUTE);
    group.expectSettled(4);
  });

  it("is tried at once when a boost to it begins again", async () => {
    group.simulation.boost(1, 4, 16 * MINUTE);
    await group.run(16 * MINUTE - SECOND);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled" });
    await group.run(5 * MINUTE);
    group.expectSettled(1);
    refuse(group, false);
    group.simulation.boost(1, 4, 30 * MINUTE);
    await group.run(MINUTE);
    group.expectSettled(4);
  });
});

it("a size whose template was refused while its rollout waited for a window is tried in place again when it is requested again", async () => {
  const group = await PipeGroup.start({ pipes: 1 });
  const { simulation, cluster } = group;
  simulation.addService(1, { rolloutWindow: '{schedule: "0 0 1 1 *", duration: 1h}' });
  await group.run(2 * HOUR);
  cluster.fault = ({ query, body }) =>
    query?.["dryRun"] && JSON.stringify(body).includes('"paused":true')
      ? { error: new KubeApiError("PATCH", 403, "{}") }
      : undefined;
  group.request(4);
  await group.run(10 * MINUTE);
  expect(simulation.condition(1)).toMatchObject({ reason: "WaitingForWindow" });
  group.request(1);
  await group.run(10 * MINUTE);
  group.expectSettled(1);
  cluster.fault = () => undefined;
  group.request(4);
  await group.run(MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
});
