import { setTimeout as wait } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { processMetrics } from "../../../src/telemetry/process-metrics.ts";

describe("the metrics of the event loop delay", () => {
  function setup() {
    let now = 5000;
    const registry = new Registry();
    processMetrics(registry, () => now);
    const scrape = async (name: string) => {
      const text = await registry.metrics();
      return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
    };
    return {
      advance: (ms: number) => {
        now += ms;
      },
      max: () => scrape("nodejs_eventloop_lag_max_seconds"),
      min: () => scrape("nodejs_eventloop_lag_min_seconds"),
    };
  }

  /** The timer that measures the delay must have been late before the next scrape. */
  async function block(ms: number): Promise<void> {
    const end = performance.now() + ms;
    while (performance.now() < end);
    await wait(250);
  }

  it("show a block to every scraper, not only to the first", async () => {
    const { advance, max } = setup();
    await wait(250);
    await block(700);
    advance(30_000);
    const first = await max();
    expect(first).toBeGreaterThan(0.5);
    advance(15_000);
    expect(await max()).toBe(first);
    await wait(250);
    advance(15_000);
    expect(await max()).toBeLessThan(first);
  });

  it("are numbers also if one scrape follows another at once, or the start of the process", async () => {
    const { advance, min } = setup();
    expect(await min()).toBe(0);
    const measured = async () => {
      advance(30_000);
      const seconds = await min();
      return seconds > 0 && seconds < 10 && { seconds };
    };
    const { seconds } = await waitFor(measured, { what: "a delay of the event loop", intervalMs: 250 });
    expect(await min()).toBe(seconds);
  });
});
