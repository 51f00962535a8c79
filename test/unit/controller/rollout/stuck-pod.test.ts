import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { ContainerView, PodView } from "../../../../src/controller/observe/pod-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { assessmentsIn, failuresIn, summaries } from "../../../support/fixtures/decisions.ts";
import {
  decided as decidedAbout,
  newPod,
  oldPod,
  partitionOf,
  rolling,
} from "../../../support/fixtures/in-turn.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";
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
    aPod(
      "a-2",
      { templateHash: "a-2", isReady: false, readyChangedAtMs: NOW_MS - 1000, ...options.stuck },
      { resources },
    ),
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

  it("is not deleted while the controller may not watch the StatefulSet, because that may have changed", () => {
    expect(decided({ snapshot: { statefulSetsProblem: "forbidden" } }).actions).toEqual([]);
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

  it("is deleted although there was no rollout if the controller resized it, and then marked it for replacement", () => {
    const rollout = { size: sizeOfCores(1), generation: 0, isRollback: false };
    const stuck = { templateHash: "a-outdated", resizedAtMs: NOW_MS - 60_000 };
    const snapshot = { scaling: aScaling(1) };
    const unreadyFor = (ms: number) =>
      decided({ rollout, stuck: { ...stuck, readyChangedAtMs: NOW_MS - ms }, snapshot }).actions;
    expect(unreadyFor(POLICY.rolloutTimeoutMs)).toEqual(["delete-pod a-2"]);
    expect(unreadyFor(POLICY.rolloutTimeoutMs - 1)).toEqual([]);
  });

  it("is not deleted if it is unready for a moment with a size that it got in place since the last rollout", () => {
    const rollout = { size: sizeOfCores(1), isRollback: false, failure: undefined };
    const resized = (resizedAtMs: number | undefined) =>
      decided({ rollout, stuck: { resizedAtMs }, stuckCores: 4, snapshot: { scaling: aScaling(1) } }).actions;
    expect(resized(NOW_MS)).not.toContain("delete-pod a-2");
    expect(resized(undefined)).toContain("delete-pod a-2");
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

const MINUTE_MS = 60_000;
const TIMEOUT_MS = POLICY.rolloutTimeoutMs;
const CRASHING = { restartCount: 2, isRunning: false } as const;

/** A pod of the template before, with a size that worked. It has not been ready for a minute. */
function unreadyPod(number: number, changes: Partial<PodView> = {}, container: Partial<ContainerView> = {}) {
  const made = oldPod(number, { isReady: false, readyChangedAtMs: NOW_MS - MINUTE_MS, ...changes });
  return { ...made, containers: made.containers.map((each) => ({ ...each, ...container })) };
}

describe("a pod that crashes with a size that worked before, while its StatefulSet gets another one", () => {
  const UNREADY = { availableReplicas: 2 };
  const crashing = (number: number, changes: Partial<PodView> = {}) => unreadyPod(number, changes, CRASHING);
  const decidedOn = (pods: readonly PodView[], pipe = rolling(UNREADY), changes: Partial<Snapshot> = {}) =>
    decidedAbout(pipe, pods, changes);

  it("is deleted, because Kubernetes would wait for it until the rollout has failed", () => {
    expect(decidedOn([crashing(0), oldPod(1), oldPod(2)]).actions).toEqual(["delete-pod a-0"]);
    expect(decidedOn([crashing(0), oldPod(1), newPod(2)]).actions).toEqual(["delete-pod a-0"]);
    expect(decidedOn([oldPod(0), oldPod(1), crashing(2)]).actions).toEqual(["delete-pod a-2"]);
  });

  it("is deleted while its container runs again, if that has crashed since the pod was ready", () => {
    const running = { restartCount: 2, isRunning: true };
    const crashed = unreadyPod(0, {}, { ...running, restartedAtMs: NOW_MS - 1000 });
    expect(decidedOn([crashed, oldPod(1), oldPod(2)]).actions).toEqual(["delete-pod a-0"]);
    const before = unreadyPod(0, {}, { ...running, restartedAtMs: NOW_MS - 2 * MINUTE_MS });
    expect(decidedOn([before, oldPod(1), oldPod(2)]).actions).toEqual([]);
  });

  it("is deleted if it fits no node", () => {
    const pending = unreadyPod(0, { unschedulable: "0/1 nodes", nodeName: "" }, { isRunning: false });
    expect(decidedOn([pending, oldPod(1), oldPod(2)]).actions).toEqual(["delete-pod a-0"]);
  });

  it("is deleted when it has not been ready for a minute, and not in the first minute of the rollout", () => {
    const recent = decidedOn([
      crashing(0, { readyChangedAtMs: NOW_MS - MINUTE_MS + 1 }),
      oldPod(1),
      oldPod(2),
    ]);
    expect([recent.actions, recheckAtMs(recent.snapshot, recent.decision)]).toEqual([[], NOW_MS + 1]);
    const begun = rolling(UNREADY, { startedAtMs: NOW_MS - MINUTE_MS + 1 });
    const early = decidedOn([crashing(0, { readyChangedAtMs: 1 }), oldPod(1), oldPod(2)], begun);
    expect([early.actions, recheckAtMs(early.snapshot, early.decision)]).toEqual([[], NOW_MS + 1]);
  });

  it.each<[string, Partial<ContainerView>]>([
    ["has not restarted", { isRunning: true }],
    ["is being created", { isRunning: false }],
    ["has restarted once", { restartCount: 1, isRunning: false }],
  ])(
    "is awaited as long as a rollout if its container %s, because it may only start slowly",
    (_, container) => {
      const slow = (agoMs: number) => {
        const pod = unreadyPod(0, { readyChangedAtMs: NOW_MS - agoMs }, container);
        return decidedOn([pod, oldPod(1), oldPod(2)]).actions;
      };
      expect(slow(TIMEOUT_MS - 1)).toEqual([]);
      expect(slow(TIMEOUT_MS)).toEqual(["delete-pod a-0"]);
    },
  );

  it.each<[string, readonly PodView[], Parameters<typeof decidedOn>[1]?, Partial<Snapshot>?]>([
    ["it is ready for a moment", [crashing(0, { isReady: true }), oldPod(1), oldPod(2)]],
    [
      "a pod of the new size is not ready yet",
      [crashing(0), oldPod(1), newPod(2, { isReady: false, createdAtMs: NOW_MS })],
    ],
    [
      "another pod is terminating",
      [crashing(0), oldPod(1), oldPod(2, { isTerminating: true, isActive: false })],
    ],
    [
      "another pod has just ended, and Kubernetes creates that one first",
      [crashing(0), oldPod(1)],
      rolling(UNREADY),
      { endedPods: new Map([["statefulset/a", { atMs: NOW_MS - 1000, containers: [] }]]) },
    ],
    [
      "it is below the partition of the owner",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, {}, partitionOf(1)),
    ],
    [
      "Kubernetes waits for an earlier one, which is below the partition of the owner",
      [unreadyPod(0), crashing(1), oldPod(2)],
      rolling({ availableReplicas: 1 }, {}, partitionOf(1)),
    ],
    [
      "its owner kept all pods from rollouts when this one began",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, { replicas: 0 }),
    ],
    [
      "its owner chose OnDelete during the rollout",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, {}, { updateStrategy: { type: "OnDelete" } }),
    ],
    [
      "its owner has changed the template since then",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, {}, { image: "registry.example/pipe:2" }),
    ],
    [
      "the rollout has completed once",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, { cameUp: true }),
    ],
    [
      "the template follows pods that were resized in place",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, { inPlaceStartedAtMs: NOW_MS - 2 * MINUTE_MS }),
    ],
    [
      "the controller has rolled nothing out",
      [crashing(0), oldPod(1), oldPod(2)],
      rolling(UNREADY, { generation: 0 }),
    ],
    [
      "this is a rollback to its size",
      [unreadyPod(0, {}, { ...CRASHING, resources: amounts(FOUR) }), newPod(1), newPod(2)],
      rolling(UNREADY, { isRollback: true, size: sizeOfCores(8), lastGoodSize: FOUR }),
    ],
  ])("is not deleted if %s", (_, pods, pipe, changes) => {
    expect(decidedOn(pods, pipe, changes).actions).not.toContainEqual(expect.stringMatching("delete-pod"));
  });

  it("does not delay a rollback while it may still become ready", () => {
    const slow = unreadyPod(0);
    const pipe = rolling(UNREADY, { startedAtMs: NOW_MS - TIMEOUT_MS });
    expect(decidedOn([slow, oldPod(1), oldPod(2)], pipe).actions).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is named with the error and the remedy if it could not be deleted", () => {
    const outcome = failed({ reason: "Forbidden", message: "pods is forbidden" });
    const writes = someWrites([aWrite("uid-a-0", "delete-pod", { outcome, attempts: 2 })]);
    const { assessment } = decidedOn([crashing(0), oldPod(1), oldPod(2)], rolling(UNREADY), { writes });
    expect(assessment?.remark).toBe(
      "Kubernetes waits for the pod a-0, which is not ready and could not be deleted: pods is forbidden. Delete it, so that it gets its new size.",
    );
  });

  it("is named in the message of a rollout that has failed because of it", () => {
    const late = (pods: readonly PodView[]) => {
      const pipe = rolling({ availableReplicas: 1 }, { startedAtMs: NOW_MS - TIMEOUT_MS }, partitionOf(1));
      return failuresIn(decidedOn(pods, pipe).decision)[0]?.message;
    };
    const message = "the rollout has not completed, and has replaced no pod for 15 min";
    expect(late([unreadyPod(0), unreadyPod(1), oldPod(2)])).toBe(
      `${message}: Kubernetes waits for the pod a-0, which is not ready and has an earlier template; repair or delete it`,
    );
    expect(late([unreadyPod(0), oldPod(1), newPod(2, { isReady: false })])).toBe(message);
  });
});

describe("a pod that crashes since it was resized in place, and whose StatefulSet returned to the template before", () => {
  const RESIZED = { resizedAtMs: NOW_MS - 20 * MINUTE_MS, readyChangedAtMs: NOW_MS - 19 * MINUTE_MS };
  const leftOver = (options: Options = {}) =>
    decided({
      ...options,
      stuck: {
        templateHash: "a-1",
        containers: aPod("a-2", {}, { ...CRASHING, resources: amounts(FOUR) }).containers,
        ...RESIZED,
        ...options.stuck,
      },
    });

  it("is deleted after a rollback, because Kubernetes takes it for a pod of that template", () => {
    expect(leftOver().actions).toEqual(["delete-pod a-2"]);
  });

  it("is deleted after its old size was requested again", () => {
    const again = { size: sizeOfCores(1), isRollback: false, failure: undefined };
    expect(leftOver({ rollout: again, snapshot: { scaling: aScaling(1) } }).actions).toEqual([
      "delete-pod a-2",
    ]);
  });

  it.each<[string, Options]>([
    ["it was resized after that", { stuck: { resizedAtMs: NOW_MS } }],
    ["it was created with that size, as by a webhook", { stuck: { resizedAtMs: undefined } }],
    ["it is ready", { stuck: { isReady: true } }],
    ["it is not ready for a moment only", { stuck: { readyChangedAtMs: NOW_MS - 1000 } }],
    [
      "a commit was undone, after which pods keep their size",
      { rollout: { inPlaceStartedAtMs: NOW_MS - 20 * MINUTE_MS } },
    ],
  ])("is not deleted if %s", (_, options) => {
    expect(leftOver(options).actions).not.toContain("delete-pod a-2");
  });
});
