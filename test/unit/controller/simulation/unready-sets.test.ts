import { describe, expect, it } from "vitest";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { workloadsOf } from "../../../support/simulation/in-place-scenario.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const FOUR = "4000m/16Gi";
const EIGHT = "8000m/32Gi";

type Options = Parameters<typeof HeldSet.start>[0];

/** A StatefulSet whose pods have been ready for an hour, and one of them runs, but is not ready since 5 min. */
async function start(options: Options = {}, unready: readonly string[] = ["a-1"]): Promise<HeldSet> {
  const held = await HeldSet.start(options);
  await held.run(HOUR);
  for (const name of unready) held.probe(name, false);
  await held.run(5 * MINUTE);
  return held;
}

function actual(held: HeldSet): readonly unknown[] {
  return held.state().map((each) => each.actual);
}

function expectNoRollout(held: HeldSet): void {
  expect([held.replaced(), held.deleted(), held.simulation.fallbacks]).toEqual([[], [], []]);
}

describe.each<[string, Options]>([
  ["in order", {}],
  ["in parallel", { podManagementPolicy: "Parallel" }],
  ["with a partition", { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } }],
  ["with OnDelete", { updateStrategy: { type: "OnDelete" } }],
])("a StatefulSet %s with a pod that runs and is not ready", (_, options) => {
  it("is resized in place several times, and keeps its pods", async () => {
    const held = await start(options);
    const before = held.uids();
    held.request(4);
    await held.run(MINUTE);
    expect(actual(held)).toEqual([FOUR, FOUR, FOUR]);
    await held.run(HOUR);
    held.request(8);
    await held.run(MINUTE);
    expect(actual(held)).toEqual([EIGHT, EIGHT, EIGHT]);
    await held.run(HOUR);
    held.probe("a-1", true);
    await held.run(MINUTE);
    held.expectSettled(8);
    expect(held.uids()).toEqual(before);
    expectNoRollout(held);
  });

  it("is resized in place if no pod is ready", async () => {
    const held = await start(options, ["a-0", "a-1", "a-2"]);
    const before = held.uids();
    held.request(4);
    await held.run(MINUTE);
    expect(actual(held)).toEqual([FOUR, FOUR, FOUR]);
    await held.run(HOUR);
    expect(held.uids()).toEqual(before);
    expectNoRollout(held);
  });
});

describe("a StatefulSet whose pod is not ready since the template followed the pods before", () => {
  async function resizedTwice(): Promise<HeldSet> {
    const held = await start();
    held.request(4);
    await held.run(MINUTE);
    held.request(8);
    await held.run(MINUTE);
    return held;
  }

  it("has no template that a new pod would get from before that, and says why its template waits", async () => {
    const held = await resizedTwice();
    expect(held.isHeld).toBe(false);
    expect(held.simulation.status(1).pipes?.pending).toMatchObject([
      { state: "Resized", message: "its template follows when all of its pods are ready" },
    ]);
    const written = held.writes().length;
    await held.run(6 * HOUR);
    expect(held.writes().length).toBe(written);
    const sizes = new Set<unknown>();
    held.simulation.cluster.onPod.push(() => {
      for (const { name, size } of held.state()) if (name === "a-2") sizes.add(size);
    });
    held.deletePod("a-2", SECOND);
    held.probe("a-1", true);
    await held.run(5 * MINUTE);
    held.expectSettled(8);
    expect([...sizes]).toEqual([EIGHT, FOUR]);
    expectNoRollout(held);
  });

  it("keeps its pods when a restart makes the pod ready", async () => {
    const held = await resizedTwice();
    const before = held.uids();
    await held.run(HOUR);
    held.crash("a-1", 10 * SECOND);
    await held.run(MINUTE);
    held.expectSettled(8);
    expect(held.uids()).toEqual(before);
    expectNoRollout(held);
  });
});

describe("a StatefulSet whose template followed the pods while one of them was not ready", () => {
  it("has a pod resized that is created during the hold with the size from before", async () => {
    const held = await start({ podManagementPolicy: "Parallel" });
    held.onArrival("hold", () => held.deletePod("a-2", 0));
    held.request(4);
    await held.run(5 * MINUTE);
    expect(actual(held)).toEqual([FOUR, FOUR, FOUR]);
    await held.run(HOUR);
    held.probe("a-1", true);
    await held.run(MINUTE);
    held.expectSettled(4);
    expectNoRollout(held);
  });

  it.each([1, 2])(
    "has a pod resized that its owner keeps at the size from before: partition %i",
    async (partition) => {
      const held = await start({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } } });
      held.request(4);
      await held.run(MINUTE);
      held.deletePod("a-0", SECOND);
      await held.run(5 * MINUTE);
      expect(actual(held)).toEqual([FOUR, FOUR, FOUR]);
      await held.run(HOUR);
      held.probe("a-1", true);
      await held.run(MINUTE);
      expect(actual(held)).toEqual([FOUR, FOUR, FOUR]);
      expectNoRollout(held);
    },
  );

  it("has a pod resized that its owner keeps at the size from before, however slowly it starts", async () => {
    const held = await start({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } } });
    held.request(4);
    await held.run(MINUTE);
    workloadsOf(held.simulation).kubelets.startMs = () => 30 * MINUTE;
    held.deletePod("a-0", SECOND);
    await held.run(HOUR);
    expect(actual(held)).toEqual([FOUR, FOUR, FOUR]);
    expectNoRollout(held);
  });
});
