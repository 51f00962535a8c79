import { describe, expect, it } from "vitest";
import { CONTAINER_ANNOTATION } from "../../../../src/controller/names.ts";
import type { TemplateContainer } from "../../../../src/kube/pods.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const FROM_ENVIRONMENT: Partial<TemplateContainer> = {
  env: [{ name: "GOMEMLIMIT", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } }],
};
const FROM_PERCENTAGE: Partial<TemplateContainer> = { args: ["-XX:MaxRAMPercentage=75"] };

/** Two pipes, the first of which has a container with these fields. */
async function start(container: Partial<TemplateContainer>): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 2, replicas: 2 });
  group.cluster.change("pipe-0", { template: { spec: { containers: [{ name: "pipe", ...container }] } } });
  await group.run(MINUTE);
  group.workloads.replaced.length = 0;
  return group;
}

describe.each([
  ["SizeFromEnvironment", FROM_ENVIRONMENT],
  ["SizeFromPercentage", FROM_PERCENTAGE],
])("a pipe whose program reads its size when it starts (%s)", (reason, container) => {
  it("is rolled out, and the status says why", async () => {
    const group = await start(container);
    group.request(4);
    await group.run(3 * MINUTE);
    group.expectSettled(4);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
    expect(group.simulation.status(1).pipes).toMatchObject({
      resizedBy: { "pipe-0": "Rollout", "pipe-1": "InPlace" },
      fallbacks: [{ pipe: "pipe-0", reason }],
    });
  });

  it("is rolled out for a smaller size too", async () => {
    const group = await start(container);
    group.request(4);
    await group.run(3 * MINUTE);
    group.request(2);
    await group.run(3 * MINUTE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0", "pipe-0"]);
  });

  it("waits with the strategy InPlace, and the other pipe is resized", async () => {
    const group = await start(container);
    group.simulation.setStrategy(1, "InPlace");
    group.request(4);
    await group.run(3 * MINUTE);
    expect(group.podSizes("pipe-0")).toEqual(["1000m/4Gi", "1000m/4Gi"]);
    expect(group.podSizes("pipe-1")).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    expect(group.simulation.status(1).pipes?.pending).toMatchObject([
      { name: "pipe-0", state: "Waiting", reason },
    ]);
    expect(group.workloads.replaced).toEqual([]);
  });
});

it("a Debezium-like pipe restarts once for each size, and not at all while nothing is requested", async () => {
  const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
  const container = { name: "pipe", ...FROM_PERCENTAGE };
  group.cluster.change("pipe-0", { template: { spec: { containers: [container] } } });
  await group.run(MINUTE);
  group.workloads.replaced.length = 0;
  for (const [index, cores] of [4, 2, 8, 1].entries()) {
    group.request(cores);
    await group.run(10 * MINUTE);
    group.expectSettled(cores);
    expect(group.workloads.replaced).toHaveLength(index + 1);
  }
});

describe("a pipe whose pods have a container that a webhook added", () => {
  async function startInjected(podAnnotations = {}): Promise<PipeGroup> {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2, deployment: { podAnnotations } });
    group.workloads.scheduler.injected = [{ name: "istio-proxy" }];
    for (const { metadata } of group.pods("pipe-0")) group.workloads.deletePod(metadata.name);
    await group.run(5 * SECOND);
    return group;
  }

  it("is rolled out because no annotation of its pods names its container", async () => {
    const group = await startInjected();
    group.request(4);
    await group.run(3 * MINUTE);
    expect(group.cluster.attempts.filter(({ target }) => target.startsWith("pods/resize"))).toEqual([]);
    expect(group.simulation.status(1).pipes?.fallbacks).toMatchObject([
      { pipe: "pipe-0", reason: "ContainerNotNamed", message: expect.stringContaining("pipe, istio-proxy") },
    ]);
  });

  it("waits with the strategy InPlace", async () => {
    const group = await startInjected();
    group.simulation.setStrategy(1, "InPlace");
    group.request(4);
    await group.run(3 * MINUTE);
    expect(group.simulation.status(1).pipes?.pending).toMatchObject([{ reason: "ContainerNotNamed" }]);
    expect(group.workloads.replaced).toEqual([]);
  });

  it("is resized in place if its pods name it", async () => {
    const group = await startInjected({ [CONTAINER_ANNOTATION]: "pipe" });
    group.request(4);
    await group.run(3 * MINUTE);
    expect(group.workloads.replaced).toEqual([]);
    expect(group.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi"]);
  });
});
