import { describe, expect, it } from "vitest";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const OWNER_DEADLINE_S = 3600;

/** A pipe of one core whose JVM reads its memory at the start, so that each size needs a rollout. No larger size starts. */
async function started(
  strategy: "Recreate" | "RollingUpdate",
  spec: { readonly progressDeadlineSeconds?: number } = {},
): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1, deployment: { strategy } });
  const args = ["-XX:MaxRAMPercentage=75"];
  group.cluster.change("pipe-0", { ...spec, template: { spec: { containers: [{ name: "pipe", args }] } } });
  await group.run(2 * MINUTE);
  const isSmall = (cpu = "") => cpu === "1" || cpu === "1000m";
  group.workloads.kubelets.startMs = ({ spec: { containers } }) =>
    isSmall(containers[0]?.resources?.requests?.["cpu"]) ? 100 : undefined;
  return group;
}

/** Expects that the rollout of six cores ends in a rollback to this size, with which the pipe runs. */
async function expectReturnTo(group: PipeGroup, size: string): Promise<void> {
  const tookMs = await group.runUntil(() => group.simulation.sizes("pipe-0")[0] === "6000m/24Gi", MINUTE);
  expect(tookMs).toBeDefined();
  const isReturned = () => group.simulation.sizes("pipe-0")[0] !== "6000m/24Gi";
  expect(await group.runUntil(isReturned, 3 * 60 * MINUTE, SECOND)).toBeDefined();
  await group.run(MINUTE);
  expect(group.simulation.sizes("pipe-0")).toEqual([size]);
  expect(group.podSizes()).toEqual([size]);
}

describe.each(["Recreate", "RollingUpdate"] as const)("a size that does not start, with %s,", (strategy) => {
  it("is never the one to which the next size returns, although its owner gives rollouts an hour", async () => {
    const group = await started(strategy, { progressDeadlineSeconds: OWNER_DEADLINE_S });
    group.request(4);
    await group.run(20 * MINUTE);
    group.request(6);
    await expectReturnTo(group, "1000m/4Gi");
  });

  it("is never the one to which the next size returns, although the service was suspended meanwhile", async () => {
    const group = await started(strategy);
    group.request(4);
    await group.run(MINUTE);
    group.simulation.suspend(1, true);
    await group.run(20 * MINUTE);
    group.request(6);
    group.simulation.suspend(1, false);
    await expectReturnTo(group, "1000m/4Gi");
  });

  it("is never the one to which the next size returns, although no controller ran meanwhile", async () => {
    const group = await started(strategy);
    group.request(4);
    await group.run(MINUTE);
    group.simulation.stop();
    group.request(6);
    await group.run(20 * MINUTE);
    group.simulation.start();
    await expectReturnTo(group, "1000m/4Gi");
  });
});
