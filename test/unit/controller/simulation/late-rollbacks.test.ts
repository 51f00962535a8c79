import { describe, expect, it } from "vitest";
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

it.each([
  [[4], 0],
  [[4, 8], 0],
  [[4, 8], 1],
])(
  "a pipe that got %j cores without replicas, and had %i before, returns to its first size if a quota refuses its pods",
  async (sizes, replicas) => {
    const group = await PipeGroup.start({ pipes: 1, replicas });
    const { simulation, cluster, workloads } = group;
    simulation.start("InPlaceOrRollout");
    await group.run(5 * SECOND);
    cluster.change("pipe-0", { replicas: 0 });
    for (const cores of sizes) {
      group.request(cores);
      await group.run(10 * MINUTE);
      group.expectSettled(cores);
    }
    workloads.scheduler.limits.set({ quota: 2000 });
    cluster.change("pipe-0", { replicas: 1 });
    await group.run(MINUTE);
    expect(group.podSizes()).toEqual(["1000m/4Gi"]);
    expect(simulation.status(1).failures).toMatchObject([{ pipe: "pipe-0", reason: "FailedCreate" }]);
  },
);

describe.each([
  ["with the labels", {}],
  ["without the labels", { podLabels: {} }],
])(
  "a pipe that got its size without replicas, and whose pods %s are never ready with it",
  (_, deployment) => {
    const started = async () => {
      const group = await PipeGroup.start({ pipes: 1, replicas: 0, deployment });
      const { simulation, cluster, workloads } = group;
      group.request(4);
      await group.run(MINUTE);
      workloads.kubelets.startMs = ({ spec }) =>
        sizeOf(spec.containers[0]) === "4000m/16Gi" ? undefined : SECOND / 2;
      cluster.change("pipe-0", { replicas: 1 });
      await group.run(14 * MINUTE);
      expect(simulation.sizes("pipe-0")).toEqual(["4000m/16Gi"]);
      return group;
    };

    it("returns to the size before after the time of a rollout", async () => {
      const group = await started();
      await group.run(90 * SECOND);
      expect(group.podSizes()).toEqual(["1000m/4Gi"]);
      expect(group.simulation.status(1).failures).toMatchObject([
        {
          message: expect.stringContaining("no pod has become ready in 15 min after the pipe was scaled up"),
        },
      ]);
    });

    it("has the whole time again after it was scaled to zero and up", async () => {
      const group = await started();
      group.cluster.change("pipe-0", { replicas: 0 });
      await group.run(MINUTE);
      group.cluster.change("pipe-0", { replicas: 1 });
      await group.run(14 * MINUTE);
      expect(group.simulation.sizes("pipe-0")).toEqual(["4000m/16Gi"]);
    });
  },
);

describe.each([
  ["a Deployment", {}],
  ["a Deployment that stops its old pods first", { strategy: "Recreate" }],
] as const)("%s that is scaled to zero during a rollout, and up again", (_, deployment) => {
  const FOUR = "4000m/16Gi";

  async function scaledUp(startMs: number | undefined): Promise<PipeGroup> {
    const group = await PipeGroup.start({ pipes: 1, deployment });
    const { simulation, cluster, workloads } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    workloads.kubelets.startMs = ({ spec }) => (sizeOf(spec.containers[0]) === FOUR ? undefined : SECOND / 2);
    group.request(4);
    await group.run(MINUTE);
    cluster.change("pipe-0", { replicas: 0 });
    await group.run(10 * SECOND);
    workloads.kubelets.startMs = () => startMs;
    cluster.change("pipe-0", { replicas: 1 });
    await group.run(20 * SECOND);
    expect(simulation.sizes("pipe-0")).toEqual([FOUR]);
    return group;
  }

  it("is not ready before its pod is", async () => {
    const { simulation, cluster } = await scaledUp(undefined);
    expect(simulation.condition(1)?.type).toBe("Reconciling");
    expect(cluster.readyJudge.violations).toEqual([]);
  });

  it("does not return to that size after a later one fails", async () => {
    const group = await scaledUp(undefined);
    group.workloads.scheduler.limits.set({ quota: 6000 });
    group.request(8);
    await group.run(MINUTE);
    group.workloads.kubelets.startMs = () => SECOND / 2;
    await group.run(40 * MINUTE);
    expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
  });

  it("is ready when its pod is, and is not rolled back after that", async () => {
    const group = await scaledUp(5 * SECOND);
    group.expectSettled(4);
    group.workloads.kubelets.startMs = () => undefined;
    group.workloads.deletePod(group.pods("pipe-0")[0]?.metadata.name ?? "");
    await group.run(60 * MINUTE);
    expect(group.simulation.sizes("pipe-0")).toEqual([FOUR]);
  });
});
