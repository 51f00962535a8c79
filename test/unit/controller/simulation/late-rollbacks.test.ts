import { expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const isRollback = ({ body, query }: KubeRequest) =>
  query?.["dryRun"] === undefined && JSON.stringify(body ?? {}).includes('isRollback\\":true');

it.each([0, 1])(
  "a rollback takes the place of the rollout to a later size, also if its write fails %i times",
  async (times) => {
    const group = await PipeGroup.start({ pipes: 2, mostRollouts: 1, deployment: { strategy: "Recreate" } });
    const { simulation, cluster, workloads } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    workloads.kubelets.startMs = ({ spec }) =>
      sizeOf(spec.containers[0]) === "4000m/16Gi" ? undefined : 30 * SECOND;
    let failures = 0;
    let isRequested = false;
    cluster.fault = (request) => {
      if (!isRollback(request)) return undefined;
      if (!isRequested) group.request(2);
      isRequested = true;
      if (failures >= times) return undefined;
      failures += 1;
      return { error: new KubeApiError("PATCH", 500, "{}") };
    };
    let most = 0;
    cluster.onDeployment.push(() => {
      const rolling = group.names.filter(
        (name) => cluster.deployments.has(name) && !cluster.pipe(name).rollout.isComplete,
      );
      most = Math.max(most, rolling.length);
    });
    group.request(4);
    await group.run(20 * MINUTE);
    expect([isRequested, failures]).toEqual([true, times]);
    expect(most).toBe(1);
    group.expectSettled(2);
  },
);

it("a pipe that got its size without replicas returns to the size before if a quota refuses its pods later", async () => {
  const group = await PipeGroup.start({ pipes: 1, replicas: 0 });
  const { simulation, cluster, workloads } = group;
  simulation.start("InPlaceOrRollout");
  await group.run(5 * SECOND);
  group.request(4);
  await group.run(10 * MINUTE);
  group.expectSettled(4);
  workloads.scheduler.limits.set({ quota: 2000 });
  cluster.change("pipe-0", { replicas: 1 });
  await group.run(MINUTE);
  expect(simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
  expect(simulation.status(1).failures).toMatchObject([{ pipe: "pipe-0", reason: "FailedCreate" }]);
});
