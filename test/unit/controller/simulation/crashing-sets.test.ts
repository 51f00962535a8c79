import { describe, expect, it } from "vitest";
import { formatSize, sizeOfCores } from "../../../../src/domain/size.ts";
import type { Pod } from "../../../../src/kube/pods.ts";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { isRunning } from "../../../support/simulation/pod-status.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const NEXT_IMAGE = "registry.example/pipe:2";

type Options = Parameters<typeof HeldSet.start>[0];

/** A StatefulSet whose pods run with four cores. */
async function start(options: Options = {}): Promise<HeldSet> {
  const held = await HeldSet.start(options);
  held.request(4);
  await held.run(5 * MINUTE);
  expect(held.ready?.status).toBe("True");
  return held;
}

/** A pod that runs with this size. */
function runs(cores: number): (pod: Pod) => boolean {
  const size = formatSize(sizeOfCores(cores));
  return ({ status }) => sizeOf(status?.containerStatuses?.[0]) === size;
}

function areAllRunning(held: HeldSet): boolean {
  return [...workloadsOf(held.simulation).pods.values()].every(isRunning);
}

function sizesOf(held: HeldSet): readonly (string | undefined)[] {
  return held.state().map(({ actual }) => actual);
}

function threeOf(cores: number): readonly string[] {
  const size = formatSize(sizeOfCores(cores));
  return [size, size, size];
}

describe("a StatefulSet whose containers crash with a size that worked before", () => {
  const isFirst = ({ metadata }: Pod) => metadata.name === "a-0";
  const isAny = () => true;

  it.each<[string, (pod: Pod) => boolean, boolean, Options]>([
    ["one container, by a rollout", isFirst, true, { strategy: "Rollout" }],
    ["each container, by a rollout", isAny, true, { strategy: "Rollout" }],
    ["one container, in place or by a rollout", isFirst, true, {}],
    ["each container, in place or by a rollout", isAny, true, {}],
    ["one container, whose pod is ready at times", isFirst, false, { strategy: "Rollout" }],
    ["each container, whose pods are ready at times", isAny, false, { strategy: "Rollout" }],
    ["each container, in parallel", isAny, true, { strategy: "Rollout", podManagementPolicy: "Parallel" }],
  ])("gets another size, and keeps its pods before that: %s", async (_, isOf, isProbed, options) => {
    const held = await start(options);
    const isOfSize = runs(4);
    workloadsOf(held.simulation).kubelets.failWhile((pod) => isOf(pod) && isOfSize(pod), { isProbed });
    await held.run(20 * MINUTE);
    expect(held.deleted()).toEqual([]);
    held.request(8);
    await held.run(15 * MINUTE);
    expect([held.ready?.status, sizesOf(held), areAllRunning(held)]).toEqual(["True", threeOf(8), true]);
  });
});

describe.each([
  ["to less memory", 1, true],
  ["to less memory, and are ready at times", 1, false],
  ["to more memory", 8, true],
])("a StatefulSet whose containers crash after they were resized in place %s", (_, cores, isProbed) => {
  async function crashed(options: Options = {}, rolloutWindow?: string): Promise<HeldSet> {
    const held = await start(options);
    if (rolloutWindow) held.simulation.addService(1, { rolloutWindow });
    // The first one crashes before the others are resized.
    workloadsOf(held.simulation).kubelets.failWhile(runs(cores), { afterMs: 10, isProbed });
    held.request(cores);
    return held;
  }

  it("runs its old size again after the rollout of the other one has failed too", async () => {
    const held = await crashed();
    await held.run(60 * MINUTE);
    expect(held.ready).toMatchObject({ status: "False", reason: "RolloutTimeout" });
    expect([sizesOf(held), areAllRunning(held)]).toEqual([threeOf(4), true]);
  });

  it.each([5 * SECOND, 30 * SECOND, 3 * MINUTE, 10 * MINUTE, 20 * MINUTE, 60 * MINUTE])(
    "runs its old size again if that is requested %d ms later",
    async (ms) => {
      const held = await crashed();
      await held.run(ms);
      held.request(4);
      await held.run(20 * MINUTE);
      expect([held.ready?.status, sizesOf(held), areAllRunning(held)]).toEqual(["True", threeOf(4), true]);
    },
  );

  it.each([5 * SECOND, 30 * SECOND, 3 * MINUTE])(
    "runs its old size again, and no pod is replaced, if a closed window holds back the rollout: %d ms later",
    async (ms) => {
      const held = await crashed({}, '{schedule: "0 0 1 7 *", duration: 1h}');
      const before = held.uids();
      await held.run(ms);
      held.request(4);
      await held.run(5 * MINUTE);
      expect([held.ready?.status, sizesOf(held), areAllRunning(held)]).toEqual(["True", threeOf(4), true]);
      expect(held.uids()).toEqual(before);
    },
  );

  it("runs its old size again with the strategy InPlace, and no pod is replaced", async () => {
    const held = await crashed({ strategy: "InPlace" });
    const before = held.uids();
    await held.run(10 * MINUTE);
    expect(held.ready).toMatchObject({ status: "False", reason: "NotResizedInPlace" });
    expect([sizesOf(held), areAllRunning(held)]).toEqual([threeOf(4), true]);
    held.request(4);
    await held.run(MINUTE);
    expect([held.ready?.status, held.uids()]).toEqual(["True", before]);
  });
});

describe("a StatefulSet whose owner changes it during a rollout to an image that crashes", () => {
  it("fails in a limited time, although each crash changes its status", async () => {
    const held = await HeldSet.start({ strategy: "Rollout" });
    const { kubelets } = workloadsOf(held.simulation);
    kubelets.failWhile(({ spec: { containers } }) => JSON.stringify(containers).includes(NEXT_IMAGE));
    held.request(4);
    await held.run(SECOND);
    held.setImage(NEXT_IMAGE);
    await held.run(60 * MINUTE);
    expect(held.ready).toMatchObject({ status: "False", reason: "RolloutTimeout" });
  });
});

describe("a StatefulSet whose new pod never becomes ready, and whose PipeScaling is deleted meanwhile,", () => {
  it("runs its old size again, although the new PipeScaling is suspended, and gets no other size", async () => {
    const held = await start({ strategy: "Rollout" });
    const { simulation } = held;
    workloadsOf(simulation).kubelets.failWhile(runs(8), { isProbed: true });
    held.request(8);
    await held.run(5 * SECOND);
    // A pipe with another size is the reason why the new PipeScaling is suspended.
    simulation.deploy("b", 1, { cores: 4 });
    simulation.removeScaling(1);
    await held.run(60 * MINUTE);
    expect([new Set(sizesOf(held)), areAllRunning(held)]).toEqual([new Set(threeOf(4)), true]);
    expect(held.ready).toMatchObject({ status: "Unknown", reason: "Suspended" });
    expect(held.deleted()).toHaveLength(1);
    const written = held.writes().length;
    await held.run(60 * MINUTE);
    expect(held.writes().slice(written)).toEqual([]);
  });
});
