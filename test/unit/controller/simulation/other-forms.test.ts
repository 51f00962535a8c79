import { expect, it } from "vitest";
import { CONTAINER_ANNOTATION } from "../../../../src/controller/names.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const MINUTE = 60_000;

it("a pipe whose owner wrote its memory in bytes gets the same template again after a failed rollout, so its pods stay", async () => {
  const resources = { requests: { cpu: "1", memory: "4294967296" }, limits: { memory: "4294967296" } };
  const group = await PipeGroup.start({ pipes: 1, replicas: 2, deployment: { resources }, nodeCores: 4 });
  const { simulation, cluster } = group;
  simulation.start("Rollout");
  const before = group.uids();
  // The node has no room for a new pod.
  group.request(8);
  await group.run(17 * MINUTE);
  expect(group.messages()).toContain("pipe-0 could not be resized");
  const [container] = cluster.deployments.get("pipe-0")?.spec.template.spec.containers ?? [];
  expect(container?.resources).toEqual(resources);
  expect(group.uids()).toEqual(before);
  expect(cluster.readyJudge.violations).toEqual([]);
});

it("a pipe whose owner writes its memory and that of a sidecar in bytes is resized without a restart, and its template follows", async () => {
  const named = { [CONTAINER_ANNOTATION]: "pipe" };
  const deployment = { containers: ["pipe", "proxy"], annotations: named, podAnnotations: named };
  const group = await PipeGroup.start({ pipes: 1, replicas: 2, deployment });
  group.request(4);
  await group.run(MINUTE);
  const inBytes = (gib: number) => ({
    requests: { memory: `${gib * 2 ** 30}` },
    limits: { memory: `${gib * 2 ** 30}` },
  });
  group.simulation.setResources("pipe-0", inBytes(16));
  const proxy = { name: "proxy", resources: inBytes(4) };
  group.cluster.change("pipe-0", { template: { spec: { containers: [proxy] } } });
  await group.run(MINUTE);
  group.request(8);
  await group.run(10 * MINUTE);
  group.expectSettled(8);
  group.expectSamePods();
});
