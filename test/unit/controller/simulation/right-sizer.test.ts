import { expect, it } from "vitest";
import type { Pod } from "../../../../src/kube/objects.ts";
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

it("pods that another writer resizes again and again are replaced a few times, until a retry is requested", async () => {
  const pipe = await HeldPipe.start();
  const { simulation, cluster, workloads } = pipe;
  await pipe.request(2, 2 * MINUTE);
  const rightSizer = startRightSizer(pipe, 5 * SECOND);
  // The owner changes something every 10 s.
  for (let ms = 0; ms < HOUR; ms += 10 * SECOND) {
    cluster.clock.after(ms, () => pipe.change({ progressDeadlineSeconds: 700 + ms / SECOND }));
  }
  workloads.replaced.length = 0;
  await pipe.run(HOUR);
  expect(workloads.replaced.length).toBeLessThanOrEqual(4);
  expect(simulation.status(1).failures).toMatchObject([{ pipe: "pipe", reason: "FieldConflict" }]);
  expect(cluster.readyJudge.violations).toEqual([]);
  rightSizer.stop();
  simulation.askToRetry(1);
  await pipe.run(5 * MINUTE);
  pipe.expectSettled(2);
});

it("with the strategy InPlace, pods that another writer resizes are not replaced, and are resized again a few times, or on request", async () => {
  const pipe = await HeldPipe.start();
  const { simulation, cluster, workloads } = pipe;
  simulation.setStrategy(1, "InPlace");
  await pipe.request(2, 2 * MINUTE);
  const rightSizer = startRightSizer(pipe, 5 * SECOND);
  workloads.replaced.length = 0;
  await pipe.run(6 * HOUR + 30 * MINUTE);
  expect(workloads.replaced).toEqual([]);
  expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "NotResizedInPlace" });
  expect(simulation.status(1).pipes?.pending).toMatchObject([{ name: "pipe", reason: "Reverted" }]);
  const written = cluster.attempts.length;
  await pipe.run(HOUR);
  expect(cluster.attempts.length - written).toBeLessThan(5);
  rightSizer.stop();
  simulation.askToRetry(1);
  await pipe.run(MINUTE);
  pipe.expectSettled(2);
});
