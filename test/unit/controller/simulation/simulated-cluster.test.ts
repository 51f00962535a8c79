import { describe, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import type { KubeObject } from "../../../../src/kube/objects.ts";
import type { Pod } from "../../../../src/kube/pods.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const PODS = "/api/v1/namespaces/pipes/pods";

/** Names of the objects in a list. */
async function listed(
  { cluster }: PipeGroup,
  path: string,
  query: Record<string, string>,
): Promise<string[]> {
  const response = cluster.json<{ readonly items: readonly KubeObject[] }>({ path, query });
  await cluster.clock.advance(10);
  return (await response).items.map(({ metadata }) => metadata.name);
}

describe("the simulated API server", () => {
  it("selects objects by labels and fields, in one namespace or in all", async () => {
    const group = await PipeGroup.start({ pipes: 2 });
    const labelSelector = `${TYPE_LABEL}=database,${SERVICE_LABEL}`;
    expect(await listed(group, "/api/v1/pods", { labelSelector })).toHaveLength(2);
    expect(await listed(group, "/api/v1/pods", { labelSelector: "app in (pipe-1,pipe-2)" })).toHaveLength(1);
    expect(await listed(group, PODS, { labelSelector: `${TYPE_LABEL}=other` })).toEqual([]);
    expect(await listed(group, "/api/v1/namespaces/other/pods", { labelSelector })).toEqual([]);
    expect(await listed(group, PODS, { fieldSelector: "spec.nodeName=" })).toEqual([]);
    const fieldSelector = "metadata.name=pipe-1";
    const deployments = "/apis/apps/v1/namespaces/pipes/deployments";
    expect(await listed(group, deployments, { fieldSelector, labelSelector })).toEqual(["pipe-1"]);
    expect(await listed(group, "/apis/apps/v1/namespaces/pipes/replicasets", {})).toHaveLength(2);
  });

  it("reports each change of a pod of a pipe in order, with the fields that show its state", async () => {
    const group = await PipeGroup.start({ pipes: 1 });
    const { cluster, simulation } = group;
    simulation.stop();
    const seen: Pod[] = [];
    const gone: string[] = [];
    const ignore = () => undefined;
    cluster.watch({
      pipe: ignore,
      pipeGone: ignore,
      scaling: ignore,
      scalingGone: ignore,
      pod: (pod) => seen.push(pod),
      podGone: ({ metadata }) => gone.push(metadata.name),
    });
    expect(seen).toMatchObject([
      {
        metadata: {
          labels: { app: "pipe-0", "pod-template-hash": "1", [TYPE_LABEL]: "database" },
          ownerReferences: [{ kind: "ReplicaSet", name: "pipe-0-1" }],
        },
        status: {
          conditions: [
            { type: "PodScheduled", status: "True" },
            { type: "Ready", status: "True" },
          ],
        },
      },
    ]);
    const [first] = group.pods("pipe-0");
    const resources = { requests: { cpu: "2" } };
    group.workloads.resizePod(first?.metadata.name ?? "", resources, { manager: "right-sizer" });
    await group.run(SECOND);
    expect(seen.at(-1)).toMatchObject({
      metadata: { generation: 2 },
      status: {
        observedGeneration: 2,
        containerStatuses: [{ allocatedResources: { cpu: "2" }, resources: { requests: { cpu: "2" } } }],
      },
    });
    expect(seen.at(-1)?.metadata.managedFields).toContainEqual(
      expect.objectContaining({ manager: "right-sizer", operation: "Update", subresource: "resize" }),
    );
    group.workloads.crash(first?.metadata.name ?? "", 10 * SECOND, "OOMKilled");
    expect(seen.at(-1)?.status).toMatchObject({
      containerStatuses: [
        { state: {}, lastState: { terminated: { reason: "OOMKilled", finishedAt: expect.any(String) } } },
      ],
    });
    await group.run(MINUTE);
    expect(seen.at(-1)?.status?.containerStatuses).toMatchObject([
      { restartCount: 1, state: { running: {} } },
    ]);
    group.workloads.deletePod(first?.metadata.name ?? "", 5 * SECOND);
    await group.run(MINUTE);
    expect(seen.some(({ metadata }) => metadata.deletionTimestamp !== undefined)).toBe(true);
    expect(gone).toEqual([first?.metadata.name]);
    const versions = seen.map(({ metadata }) => Number(metadata.resourceVersion));
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
  });

  it("records nothing in managedFields after they were reset, except by server-side apply", async () => {
    const group = await PipeGroup.start({ pipes: 1 });
    const { cluster, simulation } = group;
    const managers = () =>
      cluster.deployments.get("pipe-0")?.metadata.managedFields?.map(({ manager }) => manager);
    group.request(2);
    await group.run(MINUTE);
    expect(managers()).toEqual(["owner", "pipe-scaling-controller"]);
    simulation.stop();
    cluster.resetManagedFields("pipe-0");
    simulation.setImage("pipe-0", "image:2");
    expect(managers()).toBeUndefined();
    cluster.applyPause("pipe-0");
    expect(managers()).toEqual(["owner"]);
  });
});
