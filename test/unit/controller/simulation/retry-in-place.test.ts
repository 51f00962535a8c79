import { expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Fault } from "../../../support/simulation/cluster.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const QUOTA: Fault = {
  error: new KubeApiError(
    "PATCH",
    403,
    JSON.stringify({ message: 'pods "a" is forbidden: exceeded quota: b' }),
  ),
};

/** The size works neither in place nor by a rollout, which is rolled back. */
async function failed(pipes: number): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes, replicas: 2 });
  const { cluster, workloads } = group;
  workloads.outcome = () => "Infeasible";
  workloads.kubelets.startMs = ({ spec }) =>
    spec.containers[0]?.resources?.requests?.["cpu"] === "4000m" ? undefined : 500;
  group.request(4);
  await group.run(17 * MINUTE);
  expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
  expect(cluster.readyJudge.violations).toEqual([]);
  workloads.outcome = () => "Done";
  workloads.replaced.length = 0;
  group.before = group.uids();
  return group;
}

it.each([
  ["by the same controller", 1, false],
  ["by the next controller", 1, true],
  ["of several pipes by the same controller", 3, false],
] as const)("a requested retry %s resizes in place if that works again", async (_, pipes, isRestarted) => {
  const group = await failed(pipes);
  if (isRestarted) {
    group.simulation.start();
    await group.run(10 * SECOND);
  }
  group.simulation.askToRetry(1);
  await group.run(2 * MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
});

it("a requested retry after a refusal by a quota resizes in place", async () => {
  const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
  const { cluster, simulation } = group;
  cluster.fault = ({ path, query }) =>
    path.endsWith("/resize") || (path.includes("/deployments/") && query?.["dryRun"] === undefined)
      ? QUOTA
      : undefined;
  group.request(4);
  await group.run(10 * MINUTE);
  expect(group.messages()).toContain("exceeded quota");
  cluster.fault = () => undefined;
  simulation.askToRetry(1);
  await group.run(2 * MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
});

const DENIED: Fault = {
  error: new KubeApiError(
    "PATCH",
    403,
    JSON.stringify({ message: 'admission webhook "sizes" denied the request: not today' }),
  ),
};

it.each<[string, (request: KubeRequest) => boolean]>([
  ["the resize of a pod", ({ path }) => path.endsWith("/resize")],
  ["the dry run of the commit", ({ query }) => query?.["dryRun"] !== undefined],
  ["the commit", ({ query }) => query?.["dryRun"] === undefined],
])("a requested retry after a policy refused %s, and any rollout, resizes in place", async (_, isDenied) => {
  const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
  const { cluster, simulation } = group;
  cluster.fault = (request) => {
    const { path, query } = request;
    const isRollout = path.includes("/deployments/") && query?.["dryRun"] === undefined;
    const isOfResize = path.includes("/deployments/") || path.endsWith("/resize");
    return isRollout || (isOfResize && isDenied(request)) ? DENIED : undefined;
  };
  group.request(4);
  await group.run(10 * MINUTE);
  expect(group.messages()).toContain("not today");
  cluster.fault = () => undefined;
  simulation.askToRetry(1);
  await group.run(2 * MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
});

it("a retry that is not requested does not restart pods sooner than a rollout would be retried", async () => {
  const group = await failed(1);
  await group.run(MINUTE);
  expect(group.uids()).toEqual(group.before);
});
