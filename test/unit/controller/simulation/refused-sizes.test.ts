import { expect, it } from "vitest";
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
