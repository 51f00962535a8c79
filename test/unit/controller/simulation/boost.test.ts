import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { numRuns } from "../../../support/num-runs.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Two pipes, by default of two cores. */
async function start(cores = 2): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 2 });
  group.request(cores);
  await group.run(MINUTE);
  group.expectSettled(cores);
  group.workloads.replaced.length = 0;
  group.before = group.uids();
  return group;
}

function sourceOf(group: PipeGroup): string | undefined {
  return group.simulation.status(1).desired?.source;
}

describe("a boost", () => {
  it("begins at once and ends by itself, in place", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(5 * MINUTE);
    group.expectSettled(8);
    expect(group.messages()).toContain("The boost ends at 2026-01-01T01:01:05Z.");
    await group.run(54 * MINUTE);
    group.expectSettled(8);
    await group.run(5 * MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
    expect(group.messages()).not.toContain("boost");
  });

  it("that lasts for 40 days ends by itself", async () => {
    const group = await start();
    group.simulation.boost(1, 8, 40 * DAY);
    await group.run(40 * DAY - MINUTE);
    group.expectSettled(8);
    await group.run(5 * MINUTE);
    group.expectSettled(2);
  });

  it("that ended while no controller ran has ended for the next one", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(5 * MINUTE);
    group.simulation.stop();
    await group.run(2 * HOUR);
    expect(group.simulation.sizes(...group.names)).toEqual(group.names.map(() => "8000m/32Gi"));
    group.simulation.start();
    await group.run(5 * MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
  });

  it("that began and ended while no controller ran changes nothing", async () => {
    const group = await start();
    group.simulation.stop();
    group.simulation.boost(1, 8, HOUR);
    await group.run(2 * HOUR);
    group.simulation.start();
    await group.run(MINUTE);
    expect(group.attemptsOf(/^pods/, { sinceMs: group.cluster.clock.monotonic() - MINUTE })).toBe(0);
    group.expectSettled(2);
  });

  it.each([
    ["right", 0],
    ["an hour ahead", HOUR],
    ["an hour behind", -HOUR],
  ])("ends at its time by a clock that is %s, and does not begin again", async (_, skewMs) => {
    const simulation = new Simulation({ skewMs });
    simulation.addService(1);
    simulation.deploy("a", 1);
    simulation.start();
    await simulation.run(MINUTE);
    simulation.boost(1, 8, 3 * HOUR);
    await simulation.run(3 * HOUR - skewMs - MINUTE);
    expect(simulation.sizes("a")).toEqual(["8000m/32Gi"]);
    await simulation.run(2 * MINUTE);
    expect(simulation.sizes("a")).toEqual(["1000m/4Gi"]);
    const writes = simulation.cluster.writes.length;
    await simulation.run(DAY);
    expect(simulation.cluster.writes.length).toBe(writes);
  });

  it("ends even if the status of the PipeScaling was emptied, because no status decides", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(5 * MINUTE);
    group.simulation.emptyStatus(1);
    await group.run(HOUR);
    group.expectSettled(2);
  });

  it("leaves the pipes at the size that was requested meanwhile", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(5 * MINUTE);
    group.request(4);
    await group.run(5 * MINUTE);
    group.expectSettled(8);
    await group.run(HOUR);
    group.expectSettled(4);
    group.expectSamePods();
  });

  it("can be replaced by a shorter one, and ended at once", async () => {
    const group = await start();
    group.simulation.boost(1, 8, 10 * HOUR);
    await group.run(5 * MINUTE);
    group.simulation.boost(1, 16, 30 * MINUTE);
    await group.run(5 * MINUTE);
    group.expectSettled(16);
    await group.run(HOUR);
    group.expectSettled(2);
    group.simulation.boost(1, 8, 10 * HOUR);
    await group.run(5 * MINUTE);
    group.simulation.endBoost(1);
    await group.run(5 * MINUTE);
    group.expectSettled(2);
  });

  it("that ends while the service is suspended has its effect when the service is resumed", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(5 * MINUTE);
    group.simulation.suspend(1, true);
    await group.run(HOUR);
    expect(group.simulation.sizes(...group.names)).toEqual(group.names.map(() => "8000m/32Gi"));
    expect(sourceOf(group)).toBe("Spec");
    group.simulation.suspend(1, false);
    await group.run(5 * MINUTE);
    group.expectSettled(2);
  });

  it("of a tier with a smaller maximum has its effect up to that", async () => {
    const group = await start();
    group.simulation.boost(1, 24, HOUR);
    group.simulation.setTier("small");
    await group.run(5 * MINUTE);
    expect(sourceOf(group)).toBe("TierLimit");
    expect(group.simulation.status(1).boost?.summary).toBe("24 cpu / 96 Gi");
    await group.run(HOUR);
    group.expectSettled(2);
  });

  it("whose PipeScaling is deleted leaves its size as the requested one, because a deletion resizes nothing", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(5 * MINUTE);
    group.simulation.removeScaling(1);
    await group.run(2 * HOUR);
    group.expectSettled(8);
    group.expectSamePods();
    expect(sourceOf(group)).toBe("Spec");
  });

  it("gives its size back to pipes that run out of memory twice soon after its end", async () => {
    const group = await start();
    group.simulation.boost(1, 8, HOUR);
    await group.run(HOUR + 2 * MINUTE);
    group.expectSettled(2);
    for (const name of group.names)
      for (const { metadata } of group.pods(name)) group.workloads.crash(metadata.name, SECOND, "OOMKilled");
    await group.run(2 * MINUTE);
    expect(group.podSizes()).toEqual(["8000m/32Gi", "8000m/32Gi"]);
    expect(group.simulation.condition(1)).toMatchObject({ reason: "OutOfMemory" });
    expect(sourceOf(group)).toBe("Spec");
    expect(group.uids()).toEqual(group.before);
  });

  it.each([false, true])(
    "gives its size back to pipes that run out of memory while no template can follow (restart of the controller: %s)",
    async (isRestarted) => {
      const group = await start();
      group.simulation.boost(1, 8, HOUR);
      await group.run(5 * MINUTE);
      group.workloads.killControllerManager();
      await group.run(HOUR - 2 * MINUTE);
      expect(group.podSizes()).toEqual(["2000m/8Gi", "2000m/8Gi"]);
      expect(group.simulation.sizes(...group.names)).toEqual(["8000m/32Gi", "8000m/32Gi"]);
      if (isRestarted) {
        group.simulation.start();
        await group.run(SECOND);
      }
      for (const name of group.names)
        for (const { metadata } of group.pods(name))
          group.workloads.crash(metadata.name, SECOND, "OOMKilled");
      await group.run(MINUTE);
      expect(group.messages()).toContain("OOM-killed twice");
      group.workloads.startControllerManager();
      await group.run(5 * MINUTE);
      expect(group.podSizes()).toEqual(["8000m/32Gi", "8000m/32Gi"]);
      expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
      expect(group.uids()).toEqual(group.before);
      expect(group.cluster.readyJudge.violations).toEqual([]);
    },
  );

  describe("of a service that ran out of memory with the requested size", () => {
    let group: PipeGroup;
    beforeEach(async () => {
      group = await start();
      group.request(1);
      await group.run(2 * MINUTE);
      group.expectSettled(1);
      for (const name of group.names)
        for (const { metadata } of group.pods(name))
          group.workloads.crash(metadata.name, SECOND, "OOMKilled");
      await group.run(2 * MINUTE);
      expect(group.podSizes()).toEqual(["2000m/8Gi", "2000m/8Gi"]);
    });

    it.each([
      ["larger", 8, false],
      ["equal to the previous size", 2, false],
      ["larger, and the controller is restarted", 8, true],
    ])("leaves the previous size and the report at its end (%s)", async (_, cores, isRestarted) => {
      group.simulation.boost(1, cores, HOUR);
      await group.run(5 * MINUTE);
      group.expectSettled(cores);
      if (isRestarted) group.simulation.start();
      const sizes = new Set<string>();
      group.cluster.onPod.push(({ spec }) => sizes.add(sizeOf(spec.containers[0])));
      await group.run(HOUR);
      expect(group.podSizes()).toEqual(["2000m/8Gi", "2000m/8Gi"]);
      expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
      expect([...sizes]).not.toContain("1000m/4Gi");
      expect(group.uids()).toEqual(group.before);
    });

    it("waits for the rollout window at its end if the pods cannot get the previous size in place, although they were killed before", async () => {
      group.simulation.addService(1, { rolloutWindow: '{schedule: "0 0 1 1 *", duration: 1h}' });
      group.simulation.boost(1, 8, HOUR);
      await group.run(5 * MINUTE);
      group.expectSettled(8);
      // The programs use more than the smaller limit.
      group.workloads.outcome = ({ spec }) => (sizeOf(spec.containers[0]) === "2000m/8Gi" ? "Error" : "Done");
      await group.run(2 * HOUR);
      expect(group.podSizes()).toEqual(["8000m/32Gi", "8000m/32Gi"]);
      const waiting = group.simulation.status(1).pipes?.pending?.map(({ message }) => message);
      expect(waiting).toContainEqual(expect.stringContaining("waiting for the rollout window"));
      expect(group.uids()).toEqual(group.before);
    });

    it.each([false, true])(
      "gets the size of a later boost if it runs out of memory again at the previous one (restart of the controller: %s)",
      async (isRestarted) => {
        group.simulation.boost(1, 8, HOUR);
        await group.run(HOUR + 2 * MINUTE);
        expect(group.podSizes()).toEqual(["2000m/8Gi", "2000m/8Gi"]);
        if (isRestarted) group.simulation.start();
        for (const name of group.names) {
          for (const { metadata } of group.pods(name))
            group.workloads.crash(metadata.name, SECOND, "OOMKilled");
          await group.run(MINUTE);
        }
        expect(group.podSizes()).toEqual(["8000m/32Gi", "8000m/32Gi"]);
        expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
        expect(group.simulation.status(1).desired).toMatchObject({ replicaCpuMillicores: 1000 });
        const writes = group.cluster.attempts.length;
        group.simulation.start();
        await group.run(HOUR);
        expect(group.podSizes()).toEqual(["8000m/32Gi", "8000m/32Gi"]);
        expect(group.cluster.attempts.length).toBe(writes);
        expect(group.uids()).toEqual(group.before);
      },
    );

    it.each(["a retry", "another size, and the first one again"])(
      "leaves the requested size at its end if %s is requested meanwhile",
      async (what) => {
        group.simulation.boost(1, 8, HOUR);
        await group.run(5 * MINUTE);
        if (what === "a retry") group.simulation.askToRetry(1);
        else {
          group.request(4);
          await group.run(MINUTE);
          group.request(1);
        }
        await group.run(HOUR);
        group.expectSettled(1);
      },
    );
  });
});

it.each([false, true])(
  "a service that runs out of memory with a smaller boost, too, gets its previous size at the end (restart of the controller: %s)",
  async (isRestarted) => {
    const group = await start(4);
    const killAll = async () => {
      for (const name of group.names) {
        for (const { metadata } of group.pods(name))
          group.workloads.crash(metadata.name, SECOND, "OOMKilled");
        await group.run(MINUTE);
      }
      expect(group.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi"]);
      expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
    };
    group.request(1);
    await group.run(2 * MINUTE);
    await killAll();
    group.simulation.boost(1, 2, HOUR);
    await group.run(2 * MINUTE);
    group.expectSettled(2);
    await killAll();
    if (isRestarted) group.simulation.start();
    const sizes = new Set<string>();
    group.cluster.onPod.push(({ spec }) => sizes.add(sizeOf(spec.containers[0])));
    await group.run(2 * HOUR);
    expect([...sizes]).toEqual([]);
    expect(group.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    expect(group.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
    expect(group.messages()).toContain("could not be resized to 1 cpu / 4 Gi");
    // A size between the two is a new request.
    group.request(2);
    await group.run(2 * MINUTE);
    group.expectSettled(2);
    group.request(1);
    await group.run(2 * MINUTE);
    group.expectSettled(1);
  },
);

/** A step, and the time until the next one. */
const steps = fc.record({
  step: fc.oneof(
    fc.record({
      what: fc.constant("boost" as const),
      cores: fc.constantFrom(1, 4, 8),
      ms: fc.constantFrom(-HOUR, 0, 1, 30 * SECOND, HOUR, 30 * HOUR),
    }),
    fc.record({ what: fc.constant("request" as const), cores: fc.constantFrom(1, 2, 4) }),
    fc.record({ what: fc.constant("suspend" as const), isOn: fc.boolean() }),
    fc.record({ what: fc.constantFrom("end", "start", "stop", "empty the status") }),
  ),
  waitMs: fc.constantFrom(0, 100, 2 * SECOND, 30 * SECOND, 30 * MINUTE, 2 * HOUR),
});
type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const NO_BOOST = { cores: 0, untilMs: Number.NEGATIVE_INFINITY };

/** The size that the pipes should have, without a look at the controller. */
class Wish {
  requested = 2;
  boosted = NO_BOOST;

  coresAt(ms: number): number {
    return ms < this.boosted.untilMs ? this.boosted.cores : this.requested;
  }
}

function act({ simulation }: PipeGroup, wish: Wish, { step }: Step): void {
  switch (step.what) {
    case "boost":
      wish.boosted = { cores: step.cores, untilMs: simulation.clock.now() + step.ms };
      simulation.boost(1, step.cores, step.ms);
      break;
    case "request":
      wish.requested = step.cores;
      simulation.requestSize(1, step.cores);
      break;
    case "suspend":
      simulation.suspend(1, step.isOn);
      break;
    case "end":
      wish.boosted = NO_BOOST;
      simulation.endBoost(1);
      break;
    case "start":
      simulation.start();
      break;
    case "stop":
      simulation.stop();
      break;
    case "empty the status":
      simulation.emptyStatus(1);
  }
}

it("in every history of boosts, requests and restarts, the pipes get what is wanted then, in place, and stay there", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { maxLength: 12 }), async (happens) => {
      const group = await start();
      const wish = new Wish();
      const { simulation, cluster } = group;
      for (const each of happens) {
        act(group, wish, each);
        await group.run(each.waitMs);
      }
      simulation.start();
      simulation.suspend(1, false);
      await group.run(10 * MINUTE);
      group.expectSettled(wish.coresAt(simulation.clock.now()));
      // After the end of each boost.
      await group.run(40 * HOUR);
      group.expectSettled(wish.requested);
      group.expectSamePods();
      const writes = cluster.writes.length;
      await group.run(DAY);
      expect(cluster.writes.length).toBe(writes);
      expect(cluster.violations).toEqual([]);
      simulation.stop();
    }),
    { numRuns: numRuns(60) },
  );
});
