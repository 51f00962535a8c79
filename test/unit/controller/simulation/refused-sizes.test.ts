import { expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const HOUR = 3600 * SECOND;

it("a pod that can get neither the requested size nor its old one is tried a few times, and the status says why", async () => {
  const group = await PipeGroup.start({ pipes: 3, deployment: { cores: 4 } });
  group.request(1);
  const isFirstResized = () => group.podSizes("pipe-0")[0] === "1000m/4Gi";
  expect(await group.runUntil(isFirstResized, 10 * SECOND)).toBeDefined();
  group.workloads.scheduler.limits.set({ quota: 3000 });
  group.request(2);
  await group.run(HOUR);
  expect(group.busiest()).toEqual([]);
  expect(group.messages()).toContain("exceeded quota");
  expect(group.uids()).toEqual(group.before);
  group.workloads.scheduler.limits.set({});
  await group.run(HOUR);
  group.expectSettled(2);
  group.expectSamePods();
});

it.each([409, 503])(
  "a refused size whose retry fails once with the code %i restarts nothing, because it is retried again",
  async (code) => {
    const group = await PipeGroup.start({ pipes: 1 });
    group.workloads.scheduler.limits.set({ quota: 2000 });
    group.request(4);
    await group.run(60 * SECOND);
    expect(group.messages()).toContain("exceeded quota");
    group.workloads.scheduler.limits.set({});
    let failures = 0;
    group.cluster.fault = ({ path }) => {
      if (!path.endsWith("/resize") || failures > 0) return undefined;
      failures += 1;
      return { error: new KubeApiError("PATCH", code, "{}") };
    };
    await group.run(HOUR);
    expect(failures).toBe(1);
    group.expectSettled(4);
    group.expectSamePods();
  },
);

it("a pipe that lacks a pod because of a quota does not stop the others for a size that the quota refuses, too", async () => {
  const group = await PipeGroup.start({
    pipes: 1,
    replicas: 2,
    deployment: { strategy: "Recreate" },
    nodeCores: 64,
  });
  const { cluster, simulation, workloads } = group;
  workloads.scheduler.limits.set({ quota: 3000 });
  cluster.change("pipe-0", { replicas: 4 });
  await group.run(SECOND);
  expect(group.podSizes()).toHaveLength(3);
  const before = group.uids();
  group.request(4);
  // The rollout of the owner never completes, so a resize in place gives way to a rollout.
  await group.run(HOUR);
  expect(cluster.restartJudge.violations).toEqual([]);
  expect(group.uids()).toEqual(before);
  expect(group.messages()).toContain("exceeded quota");
  workloads.scheduler.limits.set({});
  simulation.askToRetry(1);
  await group.run(HOUR);
  expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
});
