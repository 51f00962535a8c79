import { describe, expect, it } from "vitest";
import { SERVICE_LABEL } from "../../../../src/controller/names.ts";
import type { Deployment } from "../../../../src/kube/workloads.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const MINUTE = 60_000;
const TWO = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };
const ONE = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };
const US = { manager: "pipe-scaling-controller" };

/** A pipe of one core that stops its old pods first, on a node of four cores, without a controller. */
async function judged(nodeCores = 4): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" }, nodeCores });
  group.simulation.stop();
  return group;
}

const pipeOf = ({ cluster }: PipeGroup): Deployment => {
  const found = cluster.deployments.get("pipe-0");
  if (!found) throw new Error("no pipe");
  return found;
};

/** The controller tries to resize the pod, and sends a rollout a second later. */
async function rollOut(group: PipeGroup, isAccepted: boolean, between?: () => void): Promise<void> {
  const { cluster, workloads } = group;
  const [pod] = group.pods("pipe-0");
  if (!pod) throw new Error("no pod");
  const containers = pod.spec.containers.map((each) => ({ ...each, resources: TWO }));
  cluster.restartJudge.tried(pod, { ...pod.spec, containers }, isAccepted);
  between?.();
  await group.run(1000);
  const before = pipeOf(group);
  cluster.change("pipe-0", { template: { spec: { containers: [{ name: "pipe", resources: TWO }] } } }, US);
  const sentMs = cluster.clock.monotonic();
  cluster.restartJudge.wrote(before, pipeOf(group), { sentMs, isRollback: false });
  await group.run(MINUTE);
  workloads.emptyNode();
}

const REFUSED = expect.stringMatching(
  /pipe-0 restarts for 2000m\/8Gi, which the API server refused 1 s before/,
);
const NO_ROOM = expect.stringMatching(
  /pipe-0 has stopped its pods for 2000m\/8Gi, which the node has no room for/,
);

describe("the judge of restarts", () => {
  it("reports a restart for a size that the API server has refused", async () => {
    const group = await judged();
    await rollOut(group, false);
    expect(group.cluster.restartJudge.violations).toEqual([REFUSED]);
  });

  it("accepts a restart for a size that was accepted, or after the limits have changed", async () => {
    const group = await judged();
    await rollOut(group, true);
    const other = await judged();
    await rollOut(other, false, () => other.workloads.scheduler.limits.set({}));
    expect([group, other].flatMap(({ cluster }) => cluster.restartJudge.violations)).toEqual([]);
  });

  it("reports a restart for a size that the node has no room for", async () => {
    const group = await judged();
    group.workloads.fillNode(500);
    await group.run(2 * MINUTE);
    await rollOut(group, true);
    expect(group.cluster.restartJudge.violations).toEqual([NO_ROOM]);
  });

  it("accepts that another pod took the room a moment before", async () => {
    const group = await judged();
    await rollOut(group, true, () => group.workloads.fillNode(500));
    expect(group.cluster.restartJudge.violations).toEqual([]);
  });
});

describe("the judge of rollbacks", () => {
  it("reports the rollback of a pipe that has come up, and accepts that of another pipe", async () => {
    const wronged = async (hasComeUp: boolean) => {
      const simulation = new Simulation();
      simulation.addService(1);
      simulation.deploy("a", 1);
      simulation.start();
      await simulation.run(MINUTE);
      simulation.cluster.rolloutMs = () => undefined;
      simulation.requestSize(1, 4);
      await simulation.run(MINUTE);
      // Only the judge knows it.
      if (hasComeUp) simulation.cluster.judge.completed("a");
      await simulation.run(simulation.rolloutTimeoutMs);
      expect(simulation.cluster.writes).toContain("a 1000m/4Gi");
      return simulation.cluster.judge.wronged;
    };
    expect(await wronged(true)).toEqual(["a"]);
    expect(await wronged(false)).toEqual([]);
  });
});

describe("the judge of adoptions", () => {
  const labeled = async (runMs = MINUTE) => {
    const group = await PipeGroup.start({ pipes: 2, deployment: { cores: 4 } });
    group.simulation.stop();
    await group.run(runMs);
    expect(group.cluster.adoptionJudge.violations).toEqual([]);
    return group;
  };
  const shrink = ({ cluster }: PipeGroup) =>
    cluster.change("pipe-0", { template: { spec: { containers: [{ name: "pipe", resources: ONE }] } } }, US);

  it("reports a template and a pod that get less than they had without a request", async () => {
    const group = await labeled();
    const name = group.pods("pipe-1")[0]?.metadata.name ?? "";
    group.workloads.resizePod(name, ONE, US);
    shrink(group);
    expect(group.cluster.adoptionJudge.violations).toEqual([
      expect.stringContaining(`the pod ${name} got 1000m/4Gi instead of 4000m/16Gi`),
      expect.stringContaining("the template of pipe-0 got 1000m/4Gi instead of 4000m/16Gi"),
    ]);
  });

  it("reports it a moment after the labels, but not after the pipe has moved from another service", async () => {
    const group = await labeled(0);
    shrink(group);
    expect(group.cluster.adoptionJudge.violations).toHaveLength(1);
    const violationsAfter = async (isUnlabeled: boolean, waitMs: number) => {
      const moved = await labeled(0);
      moved.simulation.addService(2);
      if (isUnlabeled) moved.cluster.setLabels("pipe-0", { [SERVICE_LABEL]: null });
      await moved.run(waitMs);
      moved.simulation.move("pipe-0", 2);
      shrink(moved);
      return moved.cluster.adoptionJudge.violations;
    };
    expect(await violationsAfter(false, 0)).toEqual([]);
    // The pipe was without a label in between.
    expect(await violationsAfter(true, 10)).toEqual([]);
    expect(await violationsAfter(true, MINUTE)).toHaveLength(1);
  });

  it.each<[string, (group: PipeGroup) => void]>([
    ["emptied the status", ({ simulation }) => simulation.emptyStatus(1)],
    ["suspended the service", ({ simulation }) => simulation.suspend(1, true)],
    ["set another strategy", ({ simulation }) => simulation.setStrategy(1, "Rollout")],
  ])("reports it after a person has %s, which is no request", async (_, change) => {
    const group = await labeled();
    change(group);
    shrink(group);
    expect(group.cluster.adoptionJudge.violations).toHaveLength(1);
  });

  it.each<[string, (group: PipeGroup) => void]>([
    ["the size that it has", (group) => group.request(4)],
    ["the default size", ({ simulation }) => simulation.requestDefaultSize(1)],
    ["a boost", ({ simulation }) => simulation.boost(1, 1, MINUTE)],
    ["a retry", ({ simulation }) => simulation.askToRetry(1)],
  ])("accepts it after a person has requested %s", async (_, request) => {
    const group = await labeled();
    request(group);
    shrink(group);
    expect(group.cluster.adoptionJudge.violations).toEqual([]);
  });

  it("accepts it after a request, or after another writer changed the size", async () => {
    const group = await labeled();
    group.request(1);
    shrink(group);
    const other = await labeled();
    other.simulation.setResources("pipe-0", { ...ONE, requests: { cpu: "8", memory: "32Gi" } });
    shrink(other);
    expect([group, other].flatMap(({ cluster }) => cluster.adoptionJudge.violations)).toEqual([]);
  });

  it("reports a rollout to the size of the service, and accepts it after a request", async () => {
    const FOUR = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };
    const violations = async (isRequested: boolean) => {
      const group = await PipeGroup.start({ pipes: 1, deployment: { cores: 4, podLabels: {} } });
      group.simulation.stop();
      await group.run(MINUTE);
      if (isRequested) group.request(4);
      group.cluster.change(
        "pipe-0",
        { template: { spec: { containers: [{ name: "pipe", resources: TWO }] } } },
        US,
      );
      group.cluster.change(
        "pipe-0",
        { template: { spec: { containers: [{ name: "pipe", resources: FOUR }] } } },
        US,
      );
      return group.cluster.adoptionJudge.violations;
    };
    expect(await violations(false)).toEqual([
      expect.stringContaining("the template of pipe-0 got 2000m/8Gi"),
      expect.stringContaining("the template of pipe-0 got 4000m/16Gi"),
    ]);
    expect(await violations(true)).toEqual([]);
  });

  it("accepts a rollout to the maximum of another tier, for pipes that had the size, and no smaller one", async () => {
    const violations = async (isTierChanged: boolean, resources = TWO) => {
      const group = await labeled();
      if (isTierChanged) group.simulation.setTier("small");
      group.cluster.change(
        "pipe-0",
        { template: { spec: { containers: [{ name: "pipe", resources }] } } },
        US,
      );
      return group.cluster.adoptionJudge.violations;
    };
    expect(await violations(true)).toEqual([]);
    expect(await violations(true, ONE)).toHaveLength(1);
    expect(await violations(false)).toHaveLength(1);
  });
});
