import { describe, expect, it } from "vitest";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const [ONE, TWO, EIGHT] = ["1000m/4Gi", "2000m/8Gi", "8000m/32Gi"];

/** One pipe of one core, under a controller whose clock is as far behind as a machine was suspended. */
async function start(behindMs: number, rolloutWindow?: string): Promise<Simulation> {
  const simulation = new Simulation({ skewMs: -behindMs });
  simulation.addService(1, rolloutWindow === undefined ? {} : { rolloutWindow });
  simulation.deploy("a", 1);
  simulation.start();
  await simulation.run(MINUTE);
  return simulation;
}

/** The controller's clock follows two API servers whose clocks differ by ten seconds, for five minutes. */
async function disagree(simulation: Simulation): Promise<void> {
  for (let tenSeconds = 0; tenSeconds < 30; tenSeconds += 1) {
    for (const skewMs of [-5 * SECOND, 5 * SECOND]) {
      simulation.correctClock(skewMs);
      await simulation.run(5 * SECOND);
    }
  }
}

describe("after the controller's clock was set forward", () => {
  it.each([3 * SECOND, 10 * MINUTE, 90 * MINUTE])("a boost ends at its time: by %d ms", async (behindMs) => {
    const simulation = await start(behindMs);
    simulation.boost(1, 8, HOUR);
    await simulation.run(50 * MINUTE);
    simulation.correctClock(0);
    await simulation.run(10 * MINUTE - SECOND);
    expect(simulation.sizes("a")).toEqual([EIGHT]);
    await simulation.run(2 * SECOND);
    expect(simulation.sizes("a")).toEqual([ONE]);
  });

  it("a boost whose time is over ends at once", async () => {
    const simulation = await start(90 * MINUTE);
    simulation.boost(1, 8, HOUR);
    await simulation.run(80 * MINUTE);
    expect(simulation.sizes("a")).toEqual([EIGHT]);
    simulation.correctClock(0);
    await simulation.run(SECOND);
    expect(simulation.sizes("a")).toEqual([ONE]);
  });

  it("a rollout window opens at its time", async () => {
    // The cluster starts at midnight.
    const simulation = await start(40 * MINUTE, '{schedule: "0 1 * * *", duration: 1h}');
    simulation.requestSize(1, 2);
    await simulation.run(30 * MINUTE);
    simulation.correctClock(0);
    await simulation.run(27 * MINUTE);
    expect(simulation.sizes("a")).toEqual([ONE]);
    await simulation.run(3 * MINUTE);
    expect(simulation.sizes("a")).toEqual([TWO]);
  });

  it("a second correction within a minute counts at the end of that minute", async () => {
    const simulation = await start(2 * HOUR);
    simulation.boost(1, 8, HOUR);
    await simulation.run(50 * MINUTE);
    simulation.correctClock(-HOUR);
    await simulation.run(SECOND);
    simulation.correctClock(10 * MINUTE);
    await simulation.run(58 * SECOND);
    expect(simulation.sizes("a")).toEqual([EIGHT]);
    await simulation.run(2 * SECOND);
    expect(simulation.sizes("a")).toEqual([ONE]);
  });
});

describe("under two API servers that correct the clock again and again", () => {
  it("a service that waits for a time is reconciled at most once a minute for that, and makes no writes", async () => {
    const simulation = await start(0);
    simulation.boost(1, 8, HOUR);
    await simulation.run(10 * MINUTE);
    const { reconciliations } = simulation;
    const writes = simulation.cluster.writes.length;
    await disagree(simulation);
    expect(simulation.reconciliations - reconciliations).toBeGreaterThan(0);
    expect(simulation.reconciliations - reconciliations).toBeLessThanOrEqual(6);
    expect(simulation.cluster.writes).toHaveLength(writes);
    await simulation.run(MINUTE);
    const atTheEnd = simulation.reconciliations;
    await simulation.run(5 * MINUTE);
    expect(simulation.reconciliations).toBe(atTheEnd);
  });

  it("a service that waits for no time is not reconciled", async () => {
    const simulation = await start(0);
    await simulation.run(10 * MINUTE);
    const { reconciliations } = simulation;
    await disagree(simulation);
    expect(simulation.reconciliations).toBe(reconciliations);
  });
});
