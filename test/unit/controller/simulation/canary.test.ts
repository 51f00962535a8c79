import { describe, expect, it } from "vitest";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const ONE = "1000m/4Gi";
const FOUR = "4000m/16Gi";

/** The pipes with a pod of another size, by spec or template. */
function begun(group: PipeGroup, before: string): readonly string[] {
  return group.names.filter((name) => {
    const pods = group.pods(name).map(({ spec }) => sizeOf(spec.containers[0]));
    return [...pods, ...group.simulation.sizes(name)].some((size) => size !== before);
  });
}

function crashLoop(group: PipeGroup, name: string): void {
  for (const { metadata } of group.pods(name)) group.workloads.kubelets.crashLoop(metadata.name);
}

/** The pods that replace the crashing ones crash, too. */
async function crashOn(group: PipeGroup, name: string, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += SECOND) {
    crashLoop(group, name);
    await group.run(SECOND);
  }
}

/** Runs until the pods of the canary have the size, and acts before the controller sees that. Returns its name. */
async function canaryWith(
  group: PipeGroup,
  cores: number,
  act: () => void = () => undefined,
): Promise<string> {
  let canary: string | undefined;
  group.whenPodsRun(cores, (name) => {
    canary = name;
    act();
  });
  expect(await group.runUntil(() => canary !== undefined, 5 * MINUTE)).toBeDefined();
  return canary ?? "";
}

describe("a canary that was available with its size, and crashes again and again now", () => {
  it("holds back the other pipes of a smaller memory within 30 s", async () => {
    const group = await PipeGroup.start({ pipes: 3, replicas: 2, deployment: { cores: 4 } });
    group.request(4);
    await group.run(10 * SECOND);
    group.request(1);
    const canary = await canaryWith(group, 1);
    await group.run(10 * SECOND);
    expect(begun(group, FOUR)).toEqual([canary]);
    crashLoop(group, canary);
    await group.run(10 * MINUTE);
    expect(begun(group, FOUR)).toEqual([canary]);
    group.workloads.kubelets.endCrashLoops();
    await group.run(30 * MINUTE);
    group.expectSettled(1);
  });

  it("holds back the other pipes if the service was suspended meanwhile", async () => {
    const group = await PipeGroup.start({ pipes: 3, replicas: 2 });
    const { simulation } = group;
    group.request(4);
    const canary = await canaryWith(group, 4, () => simulation.suspend(1, true));
    await group.run(5 * SECOND);
    crashLoop(group, canary);
    await group.run(5 * SECOND);
    simulation.suspend(1, false);
    await crashOn(group, canary, 10 * MINUTE);
    expect(begun(group, ONE)).toEqual([canary]);
  });

  it("holds back the other pipes of the next controller", async () => {
    const group = await PipeGroup.start({ pipes: 3, replicas: 2 });
    const { simulation } = group;
    group.request(4);
    const canary = await canaryWith(group, 4, () => simulation.stop());
    await group.run(5 * SECOND);
    crashLoop(group, canary);
    await group.run(5 * SECOND);
    simulation.start();
    await crashOn(group, canary, 5 * MINUTE);
    expect(begun(group, ONE)).toEqual([canary]);
    group.workloads.kubelets.endCrashLoops();
    await group.run(60 * MINUTE);
    group.expectSettled(4);
  });

  it("holds back the other pipes that waited for the rollout budget", async () => {
    const group = await PipeGroup.start({ pipes: 3, mostRollouts: 1 });
    const { simulation, workloads } = group;
    simulation.addService(2);
    deployResizable(simulation, "slow", 2);
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    workloads.kubelets.startMs = ({ metadata }) => (metadata.name.startsWith("slow") ? MINUTE : 500);
    group.request(4);
    await group.run(200);
    simulation.requestSize(2, 4);
    const canary = await canaryWith(group, 4);
    await group.run(10 * SECOND);
    expect(begun(group, ONE)).toEqual([canary]);
    crashLoop(group, canary);
    await group.run(5 * MINUTE);
    expect(simulation.sizes("slow")).toEqual([FOUR]);
    expect(begun(group, ONE)).toEqual([canary]);
    workloads.kubelets.endCrashLoops();
    await group.run(30 * MINUTE);
    group.expectSettled(4);
  });
});

describe("a pipe that has been crashing again and again since before a size is requested", () => {
  it.each(["InPlaceOrRollout", "Rollout"] as const)(
    "holds back no healthy pipe with the strategy %s, although its name is the first one",
    async (strategy) => {
      const group = await PipeGroup.start({ pipes: 6, deployment: { strategy: "Recreate" } });
      const { simulation, workloads } = group;
      const [broken = "", ...healthy] = group.names;
      simulation.setStrategy(1, strategy);
      crashLoop(group, broken);
      workloads.kubelets.startMs = ({ metadata }) => (metadata.name.startsWith(broken) ? undefined : 500);
      await group.run(MINUTE);
      group.request(4);
      await group.run(10 * MINUTE);
      expect(group.podSizes(...healthy)).toEqual(healthy.map(() => FOUR));
      await group.run(10 * MINUTE);
      expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "RolloutTimeout" });
      expect(group.podSizes(...healthy)).toEqual(healthy.map(() => FOUR));
    },
  );
});

describe("a second size that is requested while several pipes are in their commit", () => {
  it.each([
    ["2 pipes", 2, false],
    ["3 pipes", 3, false],
    ["6 pipes", 6, false],
    ["2 pipes by the next controller", 2, true],
    ["3 pipes by the next controller", 3, true],
    ["6 pipes by the next controller", 6, true],
  ] as const)("of %s begins with one canary", async (_, pipes, isRestarted) => {
    const group = await PipeGroup.start({ pipes, replicas: 2 });
    const { cluster, workloads } = group;
    // The Deployment controller is slow, so that the commits take a while.
    workloads.syncMs = 3 * SECOND;
    group.request(4);
    expect(await group.runUntil(() => group.paused().length > 1, 2 * MINUTE)).toBeDefined();
    const early: string[] = [];
    let canary: string | undefined;
    cluster.fault = ({ path, body, query }) => {
      const isOfSix = JSON.stringify(body ?? {}).includes('"6000m"') && query?.["dryRun"] === undefined;
      const name = /\/(?:pods|deployments)\/(?<name>pipe-\d+)/.exec(path)?.groups?.["name"];
      if (!isOfSix || name === undefined) return undefined;
      canary ??= name;
      const isProven = group.podSizes(canary).every((size) => size === "6000m/24Gi");
      if (name !== canary && !isProven) early.push(name);
      return undefined;
    };
    group.request(6);
    if (isRestarted) group.simulation.start();
    await group.run(SECOND);
    workloads.syncMs = 20;
    await group.run(15 * MINUTE);
    expect(canary).toBeDefined();
    expect(early).toEqual([]);
    group.expectSettled(6);
    group.expectSamePods();
  });
});
