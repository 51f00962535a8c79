import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { RuntimeMetrics } from "../../../src/telemetry/runtime-metrics.ts";

describe("the depth of the queue", () => {
  it("is 0 on standby, where the queue has the key of every service", async () => {
    const registry = new Registry();
    const leader = { isLeader: false };
    const metrics = new RuntimeMetrics({ registry, name: "things", concurrency: 1 });
    metrics.watchQueue({ depth: 1000, underWay: () => [] }, leader);
    expect(await registry.metrics()).toContain('workqueue_depth{name="things"} 0\n');
    leader.isLeader = true;
    expect(await registry.metrics()).toContain('workqueue_depth{name="things"} 1000\n');
  });
});
