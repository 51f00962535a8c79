import { describe, expect, it } from "vitest";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import type { WebhookKind } from "../../../support/simulation/webhooks.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Writes of others since the restore: none, or so many that new versions are higher than all known ones. */
const LATER = [0, 10_000];

describe.each(WINDOWS)("an etcd restore $when of a resize in place", ({ reach }) => {
  it.each(LATER)("that no watch shows is noticed at the next write, after %i other writes", async (later) => {
    const pipe = await HeldPipe.start();
    const { cluster, simulation } = pipe;
    const snapshot = cluster.snapshot();
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      cluster.restore(snapshot, later);
    });
    await pipe.request(2, 10 * MINUTE);
    expect(isReached).toBe(true);
    // The snapshot has the PipeScaling of the first size.
    pipe.expectSettled(1);
    simulation.requestSize(1, 3);
    await pipe.run(10 * MINUTE);
    pipe.expectSettled(3);
    expect(simulation.etcdRollbacks).toBeLessThanOrEqual(2);
  });
});

// Before the pause, and after the resumption, no write of the controller shows a restore to such a snapshot.
describe.each(WINDOWS.filter(({ when }) => /pause|ReplicaSet/.test(when)))(
  "an etcd restore $when of a resize in place, to a snapshot from the same resize,",
  ({ reach }) => {
    it("is noticed at the next write", async () => {
      const pipe = await HeldPipe.start();
      const { cluster } = pipe;
      let snapshot = cluster.snapshot();
      cluster.clock.after(50, () => {
        snapshot = cluster.snapshot();
      });
      let isReached = false;
      reach(pipe, () => {
        isReached = true;
        cluster.restore(snapshot);
      });
      await pipe.request(2, 15 * MINUTE);
      expect(isReached).toBe(true);
      pipe.expectSettled(2);
    });
  },
);

describe.each<WebhookKind>(["deployments", "replicasets", "pods/resize", "pipescalings/status"])(
  "an etcd restore during the delay of a failed write to %s",
  (kind) => {
    it.each(LATER)("is noticed, and the service gets the next size, after %i other writes", async (later) => {
      const group = await PipeGroup.start({ pipes: 3, replicas: 2 });
      const { cluster } = group;
      const snapshot = cluster.snapshot();
      cluster.webhooks.down(kind, 40 * SECOND);
      group.request(4);
      await group.run(38 * SECOND);
      cluster.restore(snapshot, later);
      await group.run(15 * MINUTE);
      group.request(2);
      await group.run(15 * MINUTE);
      group.expectSettled(2);
    });
  },
);

it("an etcd restore of the PipeScaling alone causes few writes while a webhook on Deployments is down", async () => {
  const group = await PipeGroup.start({ pipes: 3 });
  const { cluster, simulation } = group;
  group.request(2);
  await group.run(MINUTE);
  const earlier = [...cluster.scalings];
  group.request(4);
  await group.run(MINUTE);
  simulation.stop();
  for (const [name, scaling] of earlier) cluster.scalings.set(name, scaling);
  cluster.webhooks.down("deployments", 10 * MINUTE);
  const sinceMs = cluster.clock.monotonic();
  simulation.start();
  // The owner of a pipe changes something ten times per second.
  for (let ms = 100; ms <= MINUTE; ms += 100) {
    cluster.clock.after(ms, () => cluster.change("pipe-2", { progressDeadlineSeconds: 700 + ms / 100 }));
  }
  await group.run(15 * MINUTE);
  expect(group.busiest(sinceMs)).toEqual([]);
  group.expectSettled(2);
});

describe("a view of a Deployment that is older than the cluster", () => {
  it.each([SECOND, 10 * SECOND, MINUTE])(
    "for %i ms is corrected after the first conflict",
    async (delayMs) => {
      const group = await PipeGroup.start({ pipes: 2, replicas: 2 });
      const { cluster, workloads } = group;
      // The Deployment controller has seen each change before the controller reads it.
      workloads.syncMs = 1;
      const dryRuns: string[] = [];
      cluster.fault = ({ query }, pipe) => {
        const { name = "" } = pipe?.metadata ?? {};
        if (!pipe || query?.["dryRun"] === undefined) return undefined;
        dryRuns.push(name);
        if (dryRuns.filter((each) => each === name).length > 1) return undefined;
        // Only a read shows this change in time, and the first dry run has a conflict.
        cluster.eventDelayMs = delayMs;
        cluster.setLabels(name, { team: "a" });
        cluster.eventDelayMs = 0;
        return undefined;
      };
      group.request(4);
      await group.run(SECOND / 2);
      expect(group.attemptsOf(/^pods\/resize /)).toBe(1);
      await group.run(delayMs + 5 * MINUTE);
      group.expectSettled(4);
      group.expectSamePods();
      expect(dryRuns).toEqual(["pipe-0", "pipe-1", "pipe-0", "pipe-1"]);
    },
  );
});
