import { describe, expect, it } from "vitest";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { workloadsOf } from "../../../support/simulation/in-place-scenario.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const ONE = "1000m/4Gi";
const FOUR = "4000m/16Gi";
const EIGHT = "8000m/32Gi";

type Options = Parameters<typeof HeldSet.start>[0];

const KINDS: readonly [string, Options][] = [
  ["in order", {}],
  ["in parallel", { podManagementPolicy: "Parallel" }],
  ["with a partition", { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } }],
  ["with OnDelete", { updateStrategy: { type: "OnDelete" } }],
  ["with the strategy InPlace", { strategy: "InPlace" }],
];

/** A StatefulSet whose pods have been ready for an hour. */
async function start(options: Options = {}): Promise<HeldSet> {
  const held = await HeldSet.start(options);
  await held.run(HOUR);
  return held;
}

/** The size with which each pod runs. */
function sizes(held: HeldSet): Readonly<Record<string, unknown>> {
  return Object.fromEntries(held.state().map(({ name, actual }) => [name, actual]));
}

function uidsOf(held: HeldSet, ...names: readonly string[]): readonly string[] {
  return held.state().flatMap(({ name, uid }) => (names.includes(name) ? [uid] : []));
}

function pending(held: HeldSet) {
  return held.simulation.status(1).pipes?.pending;
}

function expectNoRollout(held: HeldSet): void {
  expect([held.replaced(), held.simulation.fallbacks]).toEqual([[], []]);
}

describe.each(KINDS)("a StatefulSet %s with a pod that takes 10 min to end", (_, options) => {
  it.each(["a-0", "a-2"])("keeps the other pods, which get the size at once: %s", async (ending) => {
    const held = await start(options);
    const others = ["a-0", "a-1", "a-2"].filter((name) => name !== ending);
    const before = uidsOf(held, ...others);
    held.deletePod(ending, 10 * MINUTE);
    await held.run(3 * MINUTE);
    held.request(4);
    await held.run(MINUTE);
    expect(sizes(held)).toEqual({ "a-0": FOUR, "a-1": FOUR, "a-2": FOUR, [ending]: ONE });
    expect(pending(held)).toMatchObject([
      { state: "Resized", message: `its template follows when its pod ${ending} has ended` },
    ]);
    await held.run(10 * MINUTE);
    held.expectSettled(4);
    expect(uidsOf(held, ...others)).toEqual(before);
    expectNoRollout(held);
  });

  it("keeps the other pods if it begins to end in the middle of the resize", async () => {
    const held = await start(options);
    const before = uidsOf(held, "a-0", "a-1");
    held.whenFirstPodRuns(4, () => held.deletePod("a-2", 10 * MINUTE));
    held.request(4);
    await held.run(MINUTE);
    expect(sizes(held)).toEqual({ "a-0": FOUR, "a-1": FOUR, "a-2": ONE });
    await held.run(10 * MINUTE);
    held.expectSettled(4);
    expect(uidsOf(held, "a-0", "a-1")).toEqual(before);
    expectNoRollout(held);
  });
});

describe("a StatefulSet with a pod on a lost node, which never ends", () => {
  it("gets each size with its other pods, writes nothing after that, and says why its template waits", async () => {
    const held = await start();
    const before = held.uids();
    held.deletePod("a-1", DAY);
    held.request(4);
    await held.run(HOUR);
    held.request(8);
    await held.run(HOUR);
    expect(sizes(held)).toEqual({ "a-0": EIGHT, "a-1": ONE, "a-2": EIGHT });
    expect(held.ready).toMatchObject({ status: "False" });
    expect(pending(held)).toMatchObject([{ message: "its template follows when its pod a-1 has ended" }]);
    const written = held.writes().length;
    await held.run(6 * HOUR);
    expect([held.writes().length, held.uids()]).toEqual([written, before]);
    expectNoRollout(held);
  });

  it("waits without a rollout, and says so, if it is the only pod", async () => {
    const held = await start({ replicas: 1 });
    held.deletePod("a-0", DAY);
    held.request(4);
    const written = held.writes().length;
    await held.run(6 * HOUR);
    expect(held.writes().length).toBe(written);
    expect(pending(held)).toMatchObject([{ state: "Waiting", message: "its pods are terminating" }]);
    held.deletePod("a-0", 0);
    await held.run(MINUTE);
    held.expectSettled(4);
    expectNoRollout(held);
  });
});

describe("a StatefulSet whose template waits for a pod on a lost node", () => {
  const strategies = ["InPlaceOrRollout", "InPlace"] as const;

  /** The other pods have had the size for an hour. */
  async function waiting(cores: number, options: Options = {}): Promise<HeldSet> {
    const held = await start(options);
    if (cores < 2) {
      held.request(8);
      await held.run(HOUR);
    }
    held.deletePod("a-1", DAY);
    held.request(cores);
    await held.run(HOUR);
    expect(sizes(held)).toMatchObject({
      "a-0": `${cores}000m/${4 * cores}Gi`,
      "a-1": cores < 2 ? EIGHT : ONE,
    });
    return held;
  }

  it.each(strategies)("keeps its pods although their containers restart: strategy %s", async (strategy) => {
    const held = await waiting(4, { podManagementPolicy: "Parallel", strategy });
    const before = uidsOf(held, "a-0", "a-2");
    held.crash("a-0", 0);
    await held.run(MINUTE);
    held.crash("a-2", MINUTE);
    await held.run(HOUR);
    expect(sizes(held)).toEqual({ "a-0": FOUR, "a-1": ONE, "a-2": FOUR });
    held.simulation.start();
    await held.run(HOUR);
    expect(pending(held)).toMatchObject([{ state: "Resized" }]);
    // The next pod is resized even while another container is in its back-off.
    held.crash("a-0", 5 * MINUTE);
    held.deletePod("a-1", 0);
    await held.run(4 * MINUTE);
    expect(sizes(held)).toMatchObject({ "a-1": FOUR });
    await held.run(10 * MINUTE);
    held.expectSettled(4);
    expect(uidsOf(held, "a-0", "a-2")).toEqual(before);
    expectNoRollout(held);
  });

  it.each(strategies)(
    "still gives up a size with which a container restarts at once: strategy %s",
    async (strategy) => {
      const held = await start({ strategy });
      held.deletePod("a-1", DAY);
      held.request(4);
      await held.run(90 * SECOND);
      held.crash("a-0", 0);
      await held.run(MINUTE);
      expect(sizes(held)).toEqual({ "a-0": ONE, "a-1": ONE, "a-2": ONE });
    },
  );

  it.each(strategies)("still gives up less memory that is not enough: strategy %s", async (strategy) => {
    const held = await waiting(1, { strategy });
    held.crash("a-0", 0, "OOMKilled");
    await held.run(20 * SECOND);
    expect(sizes(held)).toEqual({ "a-0": EIGHT, "a-1": EIGHT, "a-2": EIGHT });
  });

  it("keeps more memory that is not enough", async () => {
    const held = await waiting(4);
    held.crash("a-0", 10 * SECOND, "OOMKilled");
    await held.run(HOUR);
    expect(sizes(held)).toMatchObject({ "a-0": FOUR, "a-2": FOUR });
    expectNoRollout(held);
  });
});

describe("a StatefulSet that is scaled down, and whose pods take 10 min to end", () => {
  it("keeps the pods that are left", async () => {
    const held = await start();
    const before = uidsOf(held, "a-0");
    workloadsOf(held.simulation).scheduler.terminationMs = () => 10 * MINUTE;
    held.change({ replicas: 1 });
    await held.run(4 * MINUTE);
    held.request(4);
    await held.run(MINUTE);
    expect(sizes(held)).toMatchObject({ "a-0": FOUR });
    await held.run(30 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
    expectNoRollout(held);
  });
});

describe("a StatefulSet whose pod is replaced by one that is pending", () => {
  it.each([100, 480])("keeps the other pods if that lasts for %i s", async (seconds) => {
    const held = await start();
    const before = uidsOf(held, "a-0", "a-1");
    const { kubelets } = workloadsOf(held.simulation);
    kubelets.startMs = () => seconds * SECOND;
    held.deletePod("a-2", 10 * MINUTE);
    held.request(4);
    await held.run(20 * MINUTE);
    held.expectSettled(4);
    expect(uidsOf(held, "a-0", "a-1")).toEqual(before);
    expectNoRollout(held);
  });
});

describe.each(KINDS)(
  "a StatefulSet %s, of which a size is requested while a pod starts slowly",
  (_, options) => {
    it.each(["a-0", "a-2"])("keeps the other pods, which get the size at once: %s", async (starting) => {
      const held = await start(options);
      const others = ["a-0", "a-1", "a-2"].filter((name) => name !== starting);
      const before = uidsOf(held, ...others);
      workloadsOf(held.simulation).kubelets.startMs = () => 10 * MINUTE;
      held.deletePod(starting, SECOND);
      await held.run(4 * MINUTE);
      held.request(4);
      await held.run(MINUTE);
      expect(sizes(held)).toMatchObject({ "a-0": FOUR, "a-1": FOUR, "a-2": FOUR, [starting]: "none" });
      expect(pending(held)).toMatchObject([{ message: expect.stringContaining(`pod ${starting}`) }]);
      await held.run(20 * MINUTE);
      held.expectSettled(4);
      expect(uidsOf(held, ...others)).toEqual(before);
      expectNoRollout(held);
    });
  },
);
