import { describe, expect, it } from "vitest";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
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

describe("a StatefulSet that has fewer pods than wanted, because Kubernetes waits for one that is not ready", () => {
  it("is resized in place, and names the pod", async () => {
    const held = await start();
    const before = held.uids();
    held.deletePod("a-2", SECOND);
    await held.run(10 * MINUTE);
    held.request(4);
    await held.run(MINUTE);
    expect(actual(held)).toEqual([FOUR, FOUR]);
    expect(held.simulation.status(1).pipes?.pending).toMatchObject([
      { state: "Resized", message: "its template follows when its pod a-1 is ready, and all others exist" },
    ]);
    await held.run(HOUR);
    held.probe("a-1", true);
    await held.run(2 * MINUTE);
    held.expectSettled(4);
    expect(held.uids().slice(0, 2)).toEqual(before.slice(0, 2));
    expectNoRollout(held);
  });

  it("keeps its pods when it is scaled up and each new one takes minutes to be ready", async () => {
    const held = await HeldSet.start({ replicas: 1 });
    await held.run(HOUR);
    const before = held.uids();
    const unready = new Set(["a-1", "a-2"]);
    held.simulation.cluster.onPod.push(({ metadata: { name }, status }) => {
      const isReady = status?.conditions?.some((each) => each.type === "Ready" && each.status === "True");
      if (isReady && unready.has(name)) held.probe(name, false);
    });
    held.change({ replicas: 3 });
    await held.run(3 * MINUTE);
    held.request(4);
    await held.run(5 * MINUTE);
    expect(actual(held)).toEqual([FOUR, FOUR]);
    for (const name of ["a-1", "a-2"]) {
      unready.delete(name);
      held.probe(name, true);
      await held.run(5 * MINUTE);
    }
    held.expectSettled(4);
    expect(held.uids().slice(0, 1)).toEqual(before);
    expectNoRollout(held);
  });
});

describe("a Deployment with a pod that runs and is not ready", () => {
  it.each<[string, number]>([
    ["one", 1],
    ["all", 2],
  ])("is resized in place several times, and keeps its pods: %s", async (_, unready) => {
    const pipe = await HeldPipe.start();
    await pipe.run(HOUR);
    const names = pipe.podNames().slice(0, unready);
    for (const name of names) pipe.workloads.kubelets.probe(name, false);
    await pipe.run(5 * MINUTE);
    for (const cores of [4, 8, 2]) {
      await pipe.request(cores, HOUR);
      expect(pipe.uids()).toEqual(pipe.before);
      expect(pipe.simulation.fallbacks).toEqual([]);
      expect(pipe.simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
    }
    for (const name of names) pipe.workloads.kubelets.probe(name, true);
    await pipe.run(MINUTE);
    expect(pipe.simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
    expect(pipe.uids()).toEqual(pipe.before);
  });
});
