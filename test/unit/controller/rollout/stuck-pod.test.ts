import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import type { Snapshot } from "../../../../src/controller/observe/snapshot.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { assessmentsIn, summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import { aRollout, aScaling, aSnapshot, DECIDE_OPTIONS, NOW_MS } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aWrite, failed, someWrites, type Write } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);
const { template } = aStatefulPipe().inTurn ?? {};

/** A StatefulSet that was rolled back to one core, and whose last pod is stuck with four. */
interface Options {
  readonly cores?: number;
  readonly observed?: number;
  readonly partition?: number;
  readonly replicas?: number;
  readonly rollout?: Partial<LastRollout>;
  readonly stuck?: Partial<PodView>;
  readonly stuckCores?: number;
  readonly other?: Partial<PodView>;
  readonly writes?: readonly Write[];
  readonly snapshot?: Partial<Snapshot>;
}

function decided(options: Options = {}) {
  const { cores = 1, observed = 7, partition = 0, replicas = 3, stuckCores = 4, writes = [] } = options;
  const failure = { reason: "RolloutTimeout", message: "late" } as const;
  const lastRollout = aRollout(FOUR, {
    isRollback: true,
    failure,
    generation: 7,
    revision: 3,
    replicas: 3,
    template,
    ...options.rollout,
  });
  const pipe = aStatefulPipe(
    {
      options: { cores, replicas, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition } } },
      status: { observedGeneration: observed, updatedReplicas: 2, availableReplicas: 2 },
    },
    lastRollout,
  );
  const resources = amounts(sizeOfCores(stuckCores));
  const pods = [
    aPod("a-0", { templateHash: "a-1" }),
    aPod("a-1", { templateHash: "a-1", ...options.other }),
    aPod("a-2", { templateHash: "a-2", isReady: false, ...options.stuck }, { resources }),
  ];
  const snapshot = aSnapshot([pipe], {
    pods: new Map([["statefulset/a", pods]]),
    writes: someWrites(writes),
    ...options.snapshot,
  });
  const decision = decide(snapshot, DECIDE_OPTIONS);
  const [assessment] = assessmentsIn(decision);
  return { actions: summaries(decision.actions), recheckMs: recheckAtMs(snapshot, decision), assessment };
}

describe("a pod that keeps the size of a failed rollout after its StatefulSet was rolled back", () => {
  it("is deleted, because Kubernetes would wait for it for ever", () => {
    expect(decided().actions).toEqual(["delete-pod a-2"]);
  });

  it("is deleted while it is unschedulable and never started, too", () => {
    expect(decided({ stuck: { unschedulable: "0/1 nodes", nodeName: "" } }).actions).toEqual([
      "delete-pod a-2",
    ]);
  });

  it.each<[string, Options]>([
    ["it is ready", { stuck: { isReady: true } }],
    ["it has the present template", { stuck: { templateHash: "a-1" } }],
    ["it has the last good size, so it is its owner's concern", { stuckCores: 1 }],
    ["Kubernetes has not seen the rollback", { observed: 6 }],
    ["it is terminating", { stuck: { isTerminating: true, isActive: false } }],
    ["another pod is terminating", { other: { isTerminating: true, isActive: false } }],
    ["it is below the partition of the owner", { partition: 3 }],
    ["its owner wants no replicas", { replicas: 0 }],
    [
      "the controller has rolled nothing out",
      {
        rollout: { size: sizeOfCores(1), generation: 0, isRollback: false },
        snapshot: { scaling: aScaling(1) },
      },
    ],
    ["the service is suspended", { snapshot: { scaling: aScaling(4, { spec: { suspend: true } }) } }],
  ])("is not deleted if %s", (_, options) => {
    expect(decided(options).actions).not.toContain("delete-pod a-2");
  });

  it("is deleted after its size was superseded by another one, which would wait for it", () => {
    const superseded = { cores: 2, rollout: { size: sizeOfCores(2), isRollback: false, failure: undefined } };
    const snapshot = { scaling: aScaling(2) };
    expect(decided({ ...superseded, snapshot }).actions).toEqual(["delete-pod a-2"]);
    expect(decided({ ...superseded, snapshot, stuckCores: 1 }).actions).toEqual([]);
    expect(decided({ ...superseded, snapshot, stuckCores: 2 }).actions).toEqual([]);
  });

  it("is deleted if its size is older than the one that failed last", () => {
    expect(decided({ stuckCores: 8 }).actions).toEqual(["delete-pod a-2"]);
  });

  it("is deleted once, and again only if nothing comes of it", () => {
    const deletedAgo = (agoMs: number, attempts = 1) =>
      decided({ writes: [aWrite("uid-a-2", "delete-pod", { attempts, lastAtMs: NOW_MS - agoMs })] });
    const { actions, recheckMs } = deletedAgo(1000);
    expect([actions, recheckMs]).toEqual([[], NOW_MS - 1000 + TIMEOUTS.rescheduleMs]);
    expect(deletedAgo(TIMEOUTS.rescheduleMs).actions).toEqual(["delete-pod a-2"]);
    expect(deletedAgo(3_600_000, 4).actions).toEqual([]);
  });

  it("is deleted later if the permission is missing, and the status says what to do", () => {
    const outcome = failed({ reason: "Forbidden", message: "pods is forbidden" });
    const { actions, recheckMs, assessment } = decided({
      writes: [aWrite("uid-a-2", "delete-pod", { outcome, attempts: 2 })],
    });
    expect(actions).toEqual([]);
    expect(recheckMs).toBe(NOW_MS + 2000);
    expect(assessment?.remark).toBe(
      "The pod a-2 still has the size that failed, because it could not be deleted: pods is forbidden. Delete it, so that it gets its old size.",
    );
    const conflict = failed({ isConflict: true });
    const { assessment: changed } = decided({
      writes: [aWrite("uid-a-2", "delete-pod", { outcome: conflict, attempts: 2 })],
    });
    expect(changed?.remark).toBeUndefined();
  });
});
