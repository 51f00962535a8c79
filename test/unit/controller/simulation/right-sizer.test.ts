import { describe, expect, it } from "vitest";
import type { Pod } from "../../../../src/kube/pods.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Gives each pod of two cores one core, a while after it was created or resized. */
function startRightSizer(pipe: HeldPipe, delayMs: number): { stop(): void } {
  const { cluster, workloads } = pipe;
  const known = new Set<string>();
  let isStopped = false;
  const look = ({ metadata: { name, uid, generation }, spec }: Pod) => {
    const key = `${uid} ${generation}`;
    if (isStopped || known.has(key) || sizeOf(spec.containers[0]) !== "2000m/8Gi") return;
    known.add(key);
    const resources = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };
    cluster.clock.after(delayMs, () => {
      if (!isStopped) workloads.resizePod(name, resources, { manager: "right-sizer" });
    });
  };
  cluster.onPod.push(look);
  pipe.pods().forEach(look);
  return {
    stop: () => {
      isStopped = true;
    },
  };
}

/** Number of resizes of each pod that the controller tried. */
function resizesOf({ cluster }: HeldPipe): number[] {
  const targets = cluster.attempts
    .map(({ target }) => target)
    .filter((each) => each.startsWith("pods/resize"));
  return [...Map.groupBy(targets, (each) => each).values()].map((each) => each.length);
}

function conditionOf({ simulation }: HeldPipe) {
  return simulation.status(1).conditions?.find(({ type }) => type === "Ready");
}

describe("pods that another writer resizes again and again", () => {
  it("are resized a few times, and no pod is replaced, until a retry is requested", async () => {
    const pipe = await HeldPipe.start();
    const { simulation, cluster, workloads } = pipe;
    await pipe.request(2, 2 * MINUTE);
    const rightSizer = startRightSizer(pipe, 5 * SECOND);
    // The owner changes something every 10 s.
    for (let ms = 0; ms < HOUR; ms += 10 * SECOND) {
      cluster.clock.after(ms, () => pipe.change({ progressDeadlineSeconds: 700 + ms / SECOND }));
    }
    await pipe.run(HOUR);
    expect(workloads.replaced).toEqual([]);
    expect(pipe.uids()).toEqual(pipe.before);
    expect(resizesOf(pipe)).toEqual([4, 4]);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
    expect(conditionOf(pipe)?.message).toContain(`another writer, "right-sizer", has resized the pod`);
    expect(cluster.readyJudge.violations).toEqual([]);
    rightSizer.stop();
    simulation.askToRetry(1);
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
    expect(pipe.uids()).toEqual(pipe.before);
  });

  it("are resized as often again after a requested retry, and after each restart of the controller", async () => {
    const pipe = await HeldPipe.start();
    const { simulation } = pipe;
    await pipe.request(2, 2 * MINUTE);
    startRightSizer(pipe, 5 * SECOND);
    await pipe.run(HOUR);
    simulation.askToRetry(1);
    await pipe.run(HOUR);
    expect(resizesOf(pipe)).toEqual([8, 8]);
    simulation.start();
    await pipe.run(HOUR);
    expect(resizesOf(pipe)).toEqual([12, 12]);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
    expect(pipe.uids()).toEqual(pipe.before);
  });

  it("are not replaced either if it begins before the template follows", async () => {
    const pipe = await HeldPipe.start();
    const rightSizer = startRightSizer(pipe, 3);
    await pipe.request(2, HOUR);
    expect(pipe.uids()).toEqual(pipe.before);
    expect(pipe.simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
    expect(Math.max(...resizesOf(pipe))).toBeLessThanOrEqual(4);
    rightSizer.stop();
    await pipe.request(4);
    pipe.expectSettled(4);
    expect(pipe.uids()).toEqual(pipe.before);
  });
});

it("a tool in the settings that ends by itself is waited for, and another size follows then", async () => {
  const pipe = await HeldPipe.start({ toleratedResizers: ["boost"] });
  const { simulation, workloads } = pipe;
  await pipe.request(2);
  const [first = ""] = pipe.podNames();
  const resources = (cores: number) => ({
    requests: { cpu: `${cores}`, memory: `${4 * cores}Gi` },
    limits: { memory: `${4 * cores}Gi` },
  });
  workloads.resizePod(first, resources(6), { manager: "boost" });
  await pipe.run(SECOND);
  expect(conditionOf(pipe)).toMatchObject({ status: "False" });
  expect(conditionOf(pipe)?.message).toContain(`pipe waits for "boost", which resized the pod ${first}`);
  simulation.start();
  await pipe.request(1, HOUR);
  expect(pipe.wantedSizes()).toEqual(["6000m/24Gi", "2000m/8Gi"]);
  workloads.resizePod(first, resources(2), { manager: "boost" });
  await pipe.run(5 * MINUTE);
  pipe.expectSettled(1);
  expect(pipe.uids()).toEqual(pipe.before);
});

it.each([
  ["is waited for", ["boost"], undefined],
  ["whose container has restarted is waited for", ["boost"], "crash"],
  ["is repaired, or returns it first, without a rollout", [], undefined],
] as const)(
  "a tool that gives a pod another size hours after its resize, and returns it, %s",
  async (_, toleratedResizers, crash) => {
    const pipe = await HeldPipe.start({ toleratedResizers: [...toleratedResizers] });
    const { simulation, workloads } = pipe;
    await pipe.request(2, HOUR);
    const [first = ""] = pipe.podNames();
    const resources = (cores: number) => ({
      requests: { cpu: `${cores}`, memory: `${4 * cores}Gi` },
      limits: { memory: `${4 * cores}Gi` },
    });
    if (crash) workloads.crash(first, SECOND);
    await pipe.run(10 * SECOND);
    workloads.resizePod(first, resources(6), { manager: "boost" });
    await pipe.run(toleratedResizers.length > 0 ? MINUTE : 3);
    workloads.resizePod(first, resources(2), { manager: "boost" });
    await pipe.run(MINUTE);
    expect(simulation.fallbacks).toEqual([]);
    pipe.expectSettled(2);
    expect(pipe.uids()).toEqual(pipe.before);
  },
);

it("with the strategy InPlace, pods that another writer resizes are not replaced, and are resized again a few times, or on request", async () => {
  const pipe = await HeldPipe.start();
  const { simulation, cluster, workloads } = pipe;
  simulation.setStrategy(1, "InPlace");
  await pipe.request(2, 2 * MINUTE);
  const rightSizer = startRightSizer(pipe, 5 * SECOND);
  workloads.replaced.length = 0;
  await pipe.run(6 * HOUR + 30 * MINUTE);
  expect(workloads.replaced).toEqual([]);
  expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
  const written = cluster.attempts.length;
  await pipe.run(HOUR);
  expect(cluster.attempts.length - written).toBe(0);
  rightSizer.stop();
  simulation.askToRetry(1);
  await pipe.run(MINUTE);
  pipe.expectSettled(2);
});
