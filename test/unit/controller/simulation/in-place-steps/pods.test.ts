import { describe, expect, it } from "vitest";
import type { Step } from "../../../../support/in-place-steps.ts";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";
import { before, MOMENTS, type Moment } from "../../../../support/simulation/moments.ts";

const SECOND = 1000;
const ONE = "1000m/4Gi";

const momentsOf = (...steps: readonly Step[]) => MOMENTS.filter(({ step }) => steps.includes(step));
const NOT_ALL_RESIZED = momentsOf("dry run", "resize of the first pod", "resize of the second pod");

describe.each(MOMENTS)("$when of a resize in place", (moment) => {
  it.each<[string, (pipe: HeldPipe, name: string) => void]>([
    ["deleted", ({ workloads }, name) => workloads.deletePod(name)],
    ["deleted and take 3 min to end", ({ workloads }, name) => workloads.deletePod(name, 180 * SECOND)],
    ["evicted by its kubelet", ({ workloads }, name) => workloads.evictPod(name)],
  ])("a pod can be %s, and the other one does not restart", async (_, remove) => {
    const pipe = await HeldPipe.start();
    const [first = "", second] = pipe.podNames();
    await pipe.resize(2, moment, () => remove(pipe, first));
    pipe.expectSettled(2);
    expect(pipe.podNames()).toContain(second);
    expect(pipe.replicaSets()).toHaveLength(1);
    expect(pipe.simulation.fallbacks).toEqual([]);
  });

  it("the nodes can be full for 20 s, and no pod restarts", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => {
      pipe.workloads.outcome = () => "Deferred";
      pipe.cluster.clock.after(20 * SECOND, () => {
        pipe.workloads.outcome = () => "Done";
        pipe.workloads.look();
      });
    });
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });
});

/** A container crashes, or runs out of memory, and starts again after this time. */
const CRASHES: readonly [string, number][] = [
  ["immediately", 0],
  ["after 20 s", 20 * SECOND],
  ["after 90 s", 90 * SECOND],
];

/** Lets a container of the first or the second pod crash at this moment. */
async function crash(moment: Moment, pod: 0 | 1, stopMs: number): Promise<HeldPipe> {
  const pipe = await HeldPipe.start();
  const name = pipe.podNames()[pod] ?? "";
  await pipe.resize(2, moment, () => pipe.workloads.crash(name, stopMs));
  pipe.expectSettled(2);
  return pipe;
}

describe.each(CRASHES)("a container that crashes and starts again %s", (_, stopMs) => {
  const whileOthersFollow = momentsOf("resize of the second pod");
  const others = MOMENTS.filter((each) => !whileOthersFollow.includes(each));

  it.each(whileOthersFollow)(
    "leads to a rollout with the reason if it is of the first pod, $when",
    async (moment) => {
      const pipe = await crash(moment, 0, stopMs);
      pipe.expectFallback("Restarted", "its container pipe restarted during the resize");
      expect(pipe.replicaSets()).toHaveLength(2);
    },
  );

  it("leads to a rollout with the reason if it is of the second pod, before its kubelet has resized it", async () => {
    const pipe = await HeldPipe.start();
    const name = pipe.podNames()[1] ?? "";
    pipe.onArrival("resize of the second pod", () => {
      pipe.cluster.clock.after(10, () => pipe.workloads.crash(name, stopMs));
    });
    await pipe.request(2);
    pipe.expectSettled(2);
    pipe.expectFallback("Restarted", "its container pipe restarted during the resize");
    expect(pipe.replicaSets()).toHaveLength(2);
  });

  // Before the write to its pod, the write is for the container as it is then. From the pause on, all pods ran the size.
  it.each([
    ...others.map((moment) => ({ ...moment, which: "first", pod: 0 as const })),
    ...MOMENTS.map((moment) => ({ ...moment, which: "second", pod: 1 as const })),
  ])("does not prevent the resize in place if it is of the $which pod, $when", async ({ pod, ...moment }) => {
    const pipe = await crash(moment, pod, stopMs);
    pipe.expectInPlace();
    const restarts = pipe.pods().map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
    expect(restarts).toEqual(pod === 0 ? [1, 0] : [0, 1]);
  });
});

describe.each([
  ["Deferred", "Deferred"],
  ["Infeasible", "Infeasible"],
  ["Error", "ResizeError"],
  ["NotObserved", "ResizeTimeout"],
] as const)("a kubelet with the outcome %s", (outcome, reason) => {
  it.each(NOT_ALL_RESIZED)(
    `leads to a rollout with the reason ${reason} if it begins $when`,
    async (moment) => {
      const pipe = await HeldPipe.start();
      let atRollout: readonly string[] = [];
      pipe.onArrival("rollout", () => {
        atRollout = pipe.wantedSizes();
      });
      await pipe.resize(2, moment, () => {
        pipe.workloads.outcome = ({ metadata: { uid } }) => (pipe.before.includes(uid) ? outcome : "Done");
      });
      pipe.expectSettled(2);
      pipe.expectFallback(reason);
      // The pods have their old size again before they are replaced.
      expect(atRollout).toEqual([ONE, ONE]);
    },
  );
});

it("a pod that is created during the commit and cannot be resized leads to a rollout", async () => {
  const pipe = await HeldPipe.start();
  const isOfRollout = () => pipe.replicaSets().length > 1;
  // The new pod gets the old size, because the ReplicaSet still has it.
  pipe.workloads.outcome = ({ metadata: { uid } }) =>
    pipe.before.includes(uid) || isOfRollout() ? "Done" : "Infeasible";
  const moment = { ...before("write to the ReplicaSet"), delayMs: SECOND };
  await pipe.resize(2, moment, () => pipe.change({ replicas: 3 }));
  pipe.expectSettled(2, 3);
  pipe.expectFallback("Infeasible");
  const sizes = pipe
    .replicaSets()
    .map(({ spec }) => [spec.replicas, spec.template.spec.containers[0]?.resources?.requests?.["cpu"]]);
  // An ordinary rollout leaves these revisions, too.
  expect(sizes).toEqual([
    [0, "1"],
    [3, "2000m"],
  ]);
});
