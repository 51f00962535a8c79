import { describe, expect, it } from "vitest";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("a size that no node can hold, with the strategy Rollout", () => {
  it("is tried for a day, and each attempt is rolled back within the timeout", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2, nodeCores: 20 });
    const { simulation } = group;
    simulation.setStrategy(1, "Rollout");
    group.request(4);
    await group.run(5 * MINUTE);
    group.request(16);
    let [attempts, minutesAtFailedSize] = [0, 0];
    for (let minute = 0; minute < 24 * 60; minute += 1) {
      await group.run(MINUTE);
      const isTried = simulation.sizes("pipe-0")[0] === "16000m/64Gi";
      minutesAtFailedSize = isTried ? minutesAtFailedSize + 1 : 0;
      if (minutesAtFailedSize === 1) attempts += 1;
      expect(minutesAtFailedSize).toBeLessThanOrEqual(20);
    }
    // After 5, 10, 20 and 40 minutes, and then every hour, plus the timeout of each.
    expect(attempts).toBeGreaterThanOrEqual(15);
    expect(simulation.status(1).failures?.[0]?.nextRetryAt).toBeDefined();
  });
});

describe("a boost each night", () => {
  it.each([
    ["up by a rollout and down in place", "8000m", "Deferred"],
    ["up in place and down by a rollout", "2000m", "Error"],
  ] as const)("is applied and ended for ten nights if pipes get it %s", async (_, refused, outcome) => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 1 });
    const { simulation, workloads } = group;
    group.request(2);
    await group.run(30 * MINUTE);
    workloads.outcome = ({ spec }) =>
      spec.containers[0]?.resources?.requests?.["cpu"] === refused ? outcome : "Done";
    for (let night = 1; night <= 10; night += 1) {
      simulation.boost(1, 8, HOUR);
      await group.run(50 * MINUTE);
      expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
      expect(simulation.sizes("pipe-0")).toEqual(["8000m/32Gi"]);
      await group.run(30 * MINUTE);
      group.expectSettled(2);
      await group.run(23 * HOUR - 20 * MINUTE);
    }
  });
});
