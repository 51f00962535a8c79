import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { nameOf } from "../../../../src/controller/observe/workloads/kinds.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { StatefulSet } from "../../../../src/kube/workloads.ts";
import { actionsFor, statesFor } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

describe("a pipe whose rollout succeeded", () => {
  const cameUp = (changes: Partial<LastRollout> = {}) => {
    const lastRollout = aRollout(FOUR, { cameUp: true, startedAtMs: NOW_MS - 3_600_000, ...changes });
    return rollingTo("a", FOUR, { lastRollout });
  };

  it("is done even if its pods became unready later, because Ready is about the size", () => {
    expect(statesFor(aSnapshot([cameUp()]))).toEqual(["done"]);
    expect(statesFor(aSnapshot([cameUp({ cameUp: false })]))).toEqual(["failed"]);
  });

  it("is not done for another size", () => {
    const lastRollout = aRollout(FOUR, { cameUp: true });
    const scaling = aScaling(8);
    expect(statesFor(aSnapshot([rollingTo("a", sizeOfCores(8), { lastRollout })], { scaling }))).toEqual([
      "rolling",
    ]);
  });

  it("is not done while one of its pods has another size, and waits for its turn to resize that", () => {
    const pods = new Map([["a", [aPod("a-1")]]]);
    expect(statesFor(aSnapshot([{ ...cameUp(), hasLabelledPods: true }], { pods }))).toEqual(["waiting"]);
  });

  it("is not done while pods that the controller does not see may run an earlier template of its owner", () => {
    const { rollout } = rollingTo("a", FOUR);
    const changed = (isUpdated: boolean) => ({
      ...cameUp(),
      revision: 9,
      rollout: { ...rollout, isUpdated },
    });
    expect(statesFor(aSnapshot([changed(false)]))).toEqual(["rolling"]);
    expect(statesFor(aSnapshot([changed(true)]))).toEqual(["done"]);
  });

  it("is not rolled back later, even if its completion could not be recorded", () => {
    const startedAtMs = NOW_MS - 3_600_000;
    const rollout = { ...UNDER_WAY, progressedAtS: startedAtMs / 1000 };
    const changed = { ...cameUp({ cameUp: false }), revision: 9, rollout };
    const record = (subject: string) =>
      someWrites([aWrite("uid-a", "adopt", { subject, outcome: failed() })]);
    const tried = aSnapshot([changed], { writes: record(`${startedAtMs} completed`) });
    expect(actionsFor(tried)).toEqual([]);
    const ofEarlierRollout = aSnapshot([changed], { writes: record(`${startedAtMs - 1} completed`) });
    expect(actionsFor(ofEarlierRollout)).toEqual(["a back to 1000m/4Gi"]);
    expect(actionsFor(aSnapshot([changed]))).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is recorded also while it waits for another size, because its owner may change it then", () => {
    const writes = someWrites([
      aWrite("uid-a", "resize", { subject: "8000m/32Gi", outcome: failed({ reason: "Refused" }) }),
    ]);
    const waiting = (lastRollout: LastRollout, changes: Partial<PipeView> = {}) => {
      const pipe = aPipe("a", { size: FOUR, lastRollout, ...changes });
      return actionsFor(aSnapshot([pipe], { writes, scaling: aScaling(8) }));
    };
    const lastRollout = aRollout(FOUR);
    expect(waiting(lastRollout)).toEqual(["adopt a with 4000m/16Gi"]);
    expect(waiting({ ...lastRollout, cameUp: true })).toEqual([]);
    expect(waiting(lastRollout, { rollout: UNDER_WAY })).toEqual([]);
    expect(waiting(lastRollout, { replicas: 0 })).toEqual([]);
    expect(waiting(lastRollout, { size: sizeOfCores(2) })).toEqual([]);
    expect(waiting(aRollout(sizeOfCores(8), { isRollback: true, lastGoodSize: FOUR }))).toEqual([]);
  });

  it("is recorded once, so that nothing has to be remembered", () => {
    const lastRollout = aRollout(FOUR);
    const pipe = aPipe("a", { size: FOUR, lastRollout });
    const { actions } = decide(aSnapshot([pipe]), DECIDE_OPTIONS);
    expect(actions).toMatchObject([{ type: "adopt", rollout: { ...lastRollout, cameUp: true } }]);
    const recorded = { ...pipe, lastRollout: { ...lastRollout, cameUp: true } };
    expect(actionsFor(aSnapshot([recorded]))).toEqual([]);
  });
});

describe("a pipe that is scaled to zero before its rollout completes", () => {
  const rollout = { ...COMPLETE, replicas: 0, isAnyAvailable: false };
  const idle = (lastRollout: Partial<LastRollout>, changes: Partial<PipeView> = {}) =>
    aPipe("a", { size: FOUR, replicas: 0, rollout, lastRollout: aRollout(FOUR, lastRollout), ...changes });

  it("counts as one that got its size without replicas, also while it waits for another size", () => {
    const lastRollout = aRollout(FOUR);
    const { actions } = decide(aSnapshot([idle({})]), DECIDE_OPTIONS);
    expect(actions).toMatchObject([{ type: "adopt", rollout: { ...lastRollout, replicas: 0 } }]);
    const refused = { subject: "8000m/32Gi", outcome: failed({ reason: "Refused" }) };
    const writes = someWrites([aWrite("uid-a", "resize", refused)]);
    const superseded = aSnapshot([idle({})], { writes, scaling: aScaling(8) });
    expect(decide(superseded, DECIDE_OPTIONS).actions).toMatchObject([{ rollout: { replicas: 0 } }]);
  });

  it.each<[string, Partial<LastRollout>, Partial<PipeView>?]>([
    ["is recorded so already", { replicas: 0 }],
    ["had completed its rollout", { cameUp: true }],
    ["was only adopted", { generation: 0 }],
    ["was resized in place", { inPlaceStartedAtMs: NOW_MS - 90_000 }],
    ["still has pods", {}, { rollout: COMPLETE }],
    ["has a status that is not current", {}, { rollout: { ...rollout, isSeen: false } }],
    ["has another size now", {}, { size: sizeOfCores(8) }],
  ])("does not if it %s", (_, lastRollout, changes) => {
    const scaling = aScaling(changes?.size ? 8 : 4);
    const { actions } = decide(aSnapshot([idle(lastRollout, changes)], { scaling }), DECIDE_OPTIONS);
    expect(actions).not.toMatchObject([{ type: "adopt", rollout: { size: FOUR, replicas: 0 } }]);
  });
});

describe("a pipe to which its owner gives the requested size, whose pods the controller does not see", () => {
  it.each<[string, number, Partial<PipeView["rollout"]>]>([
    ["has not seen the template yet", 1, { isSeen: false }],
    ["has not seen the template yet, and its owner removed the revision", 0, { isSeen: false }],
    ["replaces the pods", 2, { isSeen: true }],
    [
      "ends the old pods of a Recreate Deployment, before it has a new revision",
      1,
      {
        replicas: 0,
        isAvailable: false,
        isAnyAvailable: false,
        progressing: { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
      },
    ],
  ])("is adopted while Kubernetes %s, and still does not count as resized", (_, revision, progress) => {
    const rollout = { ...UNDER_WAY, isAvailable: true, isAnyAvailable: true, isUpdated: false, ...progress };
    const pipe = aPipe("a", { size: FOUR, revision, rollout });
    const others = [aPipe("b"), aPipe("c")];
    const { actions } = decide(aSnapshot([pipe, ...others]), DECIDE_OPTIONS);
    const adoptions = actions.flatMap((action) => (action.type === "adopt" ? action.rollout : []));
    expect(adoptions).toMatchObject([{ size: FOUR, cameUp: false }]);
    const adopted = aSnapshot([{ ...pipe, lastRollout: adoptions[0] }, ...others]);
    expect(statesFor(adopted)[0]).toBe("rolling");
    expect(actionsFor(adopted)).toEqual([]);
  });

  it.each<[string, number, Partial<PipeView["rollout"]>]>([
    ["before Kubernetes has seen it", 0, { isSeen: false, replicas: 0 }],
    ["during its first rollout", 1, { isSeen: true }],
  ])("is adopted with a single write if it is new, %s", (_, revision, progress) => {
    const rollout = {
      ...UNDER_WAY,
      isAvailable: false,
      isAnyAvailable: false,
      isUpdated: false,
      ...progress,
    };
    const pipe = aPipe("a", { size: FOUR, revision, rollout });
    expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).actions).toMatchObject([{ rollout: { cameUp: true } }]);
  });
});

it("a pipe whose owner gave it the requested size is adopted with a single write when its rollout is complete", () => {
  const pipe = aPipe("a", { size: FOUR, revision: 3, rollout: COMPLETE });
  expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).actions).toMatchObject([{ rollout: { cameUp: true } }]);
});

describe("a StatefulSet to which its owner gives the requested size", () => {
  const adopted = (status: StatefulSet["status"]) => {
    const pipe = aStatefulPipe({ options: { cores: 4 }, status });
    return decide(aSnapshot([{ ...pipe, hasLabelledPods: false }]), DECIDE_OPTIONS).actions;
  };

  it.each<[string, StatefulSet["status"]]>([
    ["replaces the pods", { updateRevision: "a-2", updatedReplicas: 1, availableReplicas: 2 }],
    ["has not seen the template, and no pod is available", { observedGeneration: 6, availableReplicas: 0 }],
  ])("is adopted while Kubernetes %s, and has not come up", (_, status) => {
    expect(adopted(status)).toMatchObject([{ rollout: { cameUp: false } }]);
  });

  it.each<[string, StatefulSet["status"]]>([
    ["before Kubernetes has seen it", { observedGeneration: 0, replicas: 0, availableReplicas: 0 }],
    ["while its first pod starts", { replicas: 1, updatedReplicas: 1, availableReplicas: 0 }],
  ])("is adopted with a single write if it is new, %s", (_, status) => {
    expect(adopted(status)).toMatchObject([{ rollout: { cameUp: true } }]);
  });
});

describe("a Deployment that gets a third size during the rollout of the second one", () => {
  const lastGood = (pods: readonly PodView[]) => {
    const snapshot = aSnapshot([rollingTo("a", FOUR)], {
      scaling: aScaling(2),
      pods: new Map([["a", pods]]),
    });
    const { actions } = decide(snapshot, DECIDE_OPTIONS);
    return actions.map((action) => (action.type === "resize" ? action.rollout.lastGoodSize : action.type));
  };

  it("returns to the second one only if a pod was ready with it", () => {
    expect(lastGood([aResizedPod("a-2")])).toEqual([FOUR]);
    expect(lastGood([aResizedPod("a-2", { isReady: false })])).toEqual([sizeOfCores(1)]);
    expect(lastGood([aPod("a-1")])).toEqual([sizeOfCores(1)]);
  });
});

it("a pipe that was never resized can return to the size of its owner, although nothing has proven it", () => {
  const pipe = aPipe("a", { rollout: UNDER_WAY, revision: 2 });
  const { actions } = decide(aSnapshot([pipe], { scaling: aScaling(4) }), DECIDE_OPTIONS);
  expect(actions).toMatchObject([{ type: "resize", rollout: { lastGoodSize: sizeOfCores(1) } }]);
});

describe("a pipe that the controller never wrote to", () => {
  const progressing = (reason: string) => ({ type: "Progressing", status: "True", reason });
  const stateOf = (changes: Partial<PipeView>, pods: readonly PodView[] = []) =>
    statesFor(
      aSnapshot([aPipe("a", changes)], { scaling: aScaling(undefined), pods: new Map([["a", pods]]) }),
    )[0];
  const notAvailable = { ...COMPLETE, isAvailable: false };
  const incomplete = { ...notAvailable, isComplete: false, isAnyAvailable: false };

  it.each([true, false])(
    "is not done before its first rollout is complete (labelled pods: %s)",
    (hasLabelledPods) => {
      const rollout = { ...incomplete, progressing: progressing("ReplicaSetUpdated") };
      for (const revision of [0, 1]) expect(stateOf({ hasLabelledPods, revision, rollout })).toBe("rolling");
      expect(stateOf({ hasLabelledPods, revision: 1, rollout }, [aPod("a-1")])).toBe("rolling");
      const lastRollout = aRollout(sizeOfCores(1), { generation: 0, attempts: 0, cameUp: true });
      expect(stateOf({ hasLabelledPods, rollout, lastRollout })).toBe("rolling");
    },
  );

  it("is done while its owner replaces its pods, or scales it", () => {
    const pods = [aPod("a-1")];
    const updating = { ...incomplete, progressing: progressing("ReplicaSetUpdated") };
    expect(stateOf({ hasLabelledPods: true, revision: 2, rollout: updating }, pods)).toBe("done");
    const scaled = { ...incomplete, progressing: progressing("NewReplicaSetAvailable") };
    expect(stateOf({ hasLabelledPods: true, revision: 1, rollout: scaled }, pods)).toBe("done");
  });

  it("is not done without a pod that has run, as after it was scaled up from nothing", () => {
    const starting = aPod("a-1", {}, { isRunning: false });
    expect(stateOf({ hasLabelledPods: true, rollout: notAvailable }, [starting])).toBe("rolling");
    expect(stateOf({ hasLabelledPods: true, rollout: notAvailable }, [aPod("a-1")])).toBe("done");
    expect(stateOf({ rollout: { ...notAvailable, isAnyAvailable: false } })).toBe("rolling");
    expect(stateOf({ rollout: notAvailable })).toBe("done");
  });
});

describe("a pipe all of whose pods its owner replaces at once, to give it the requested size", () => {
  const replacing = {
    ...UNDER_WAY,
    isAvailable: false,
    isAnyAvailable: false,
    replicas: 0,
    progressing: { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable" },
  };
  const ended = { isActive: false, isTerminating: true };
  const stateOf = (pods: readonly PodView[], changes: Partial<PipeView> = {}) => {
    const pipe = aPipe("a", {
      size: FOUR,
      hasLabelledPods: true,
      revision: 3,
      rollout: replacing,
      ...changes,
    });
    return statesFor(aSnapshot([pipe], { scaling: aScaling(4), pods: new Map([["a", pods]]) }))[0];
  };

  it.each<[string, Partial<PipeView>]>([
    ["without an annotation", {}],
    ["whose status is still that of its old pods", { rollout: { ...replacing, isAvailable: true } }],
  ])("is not done before a pod with the size has run, %s", (_, changes) => {
    expect(stateOf([], changes)).toBe("rolling");
    expect(stateOf([aPod("a-1", ended)], changes)).toBe("rolling");
    const starting = aPod("a-2", {}, { resources: amounts(FOUR), isRunning: false });
    expect(stateOf([starting], changes)).toBe("rolling");
    expect(stateOf([aPod("a-1", ended), starting], changes)).toBe("rolling");
    expect(stateOf([aPod("a-2", {}, { resources: amounts(FOUR) })], changes)).toBe("done");
  });

  it("is done if it ran that size before, because its owner may roll out an image", () => {
    const resized = aRollout(FOUR, { cameUp: true, revision: 1 });
    const adopted = { ...resized, generation: 0, attempts: 0 };
    for (const lastRollout of [resized, adopted]) expect(stateOf([], { lastRollout })).toBe("done");
    for (const changes of [{ cameUp: false }, { replicas: 0 }, { revision: 0 }])
      expect(stateOf([], { lastRollout: { ...adopted, ...changes } })).toBe("rolling");
  });

  it("stays done while a pod that has run the size is evicted", () => {
    const evicted = aPod("a-1", ended, { resources: amounts(FOUR) });
    expect(stateOf([evicted])).toBe("done");
    const starting = aPod("a-2", {}, { resources: amounts(FOUR), isRunning: false });
    expect(stateOf([evicted, starting])).toBe("done");
  });
});

describe("a pipe that the controller resized, all of whose pods its owner then replaces to give it another size", () => {
  const gone = {
    ...UNDER_WAY,
    isAvailable: false,
    isAnyAvailable: false,
    isUpdated: false,
    replicas: 0,
  };
  /** With the condition Progressing of the rollout before. */
  const stale = { ...COMPLETE, isAvailable: false, isAnyAvailable: false };
  const ended = aPod("a-1", { isActive: false, isTerminating: true }, { resources: amounts(sizeOfCores(8)) });
  const starting = aPod("a-2", {}, { resources: amounts(FOUR), isRunning: false });
  const started = aPod("a-2", {}, { resources: amounts(FOUR) });
  const lastRollout = aRollout(sizeOfCores(8), { cameUp: true, revision: 2 });
  const stateOf = (pipe: PipeView, pods: readonly PodView[]) =>
    statesFor(aSnapshot([pipe], { scaling: aScaling(4), pods: new Map([[nameOf(pipe), pods]]) }))[0];

  it.each<[string, Partial<PipeView>, readonly PodView[]]>([
    ["while its old pods end, when it has no new revision yet", { revision: 2, rollout: gone }, [ended]],
    ["before it has a pod", { revision: 2, rollout: gone }, []],
    ["while its new pod starts", { revision: 3, rollout: stale }, [starting]],
  ])("is not done %s", (_, changes, pods) => {
    const pipe = aPipe("a", { size: FOUR, hasLabelledPods: true, lastRollout, ...changes });
    expect(stateOf(pipe, pods)).toBe("rolling");
    const rolledBack = { ...lastRollout, size: FOUR, isRollback: true, lastGoodSize: sizeOfCores(8) };
    expect(stateOf({ ...pipe, lastRollout: rolledBack }, pods)).toBe("rolling");
    expect(stateOf(pipe, [started])).toBe("done");
  });

  it("is not done before a pod is available, if the controller does not see its pods", () => {
    const pipe = aPipe("a", { size: FOUR, revision: 3, lastRollout, rollout: stale });
    expect(stateOf(pipe, [])).toBe("rolling");
    expect(stateOf({ ...pipe, rollout: COMPLETE }, [])).toBe("done");
  });

  it("is not done before a pod with the size has run, if it is a StatefulSet, whose revision is without the size", () => {
    const status = { replicas: 1, updatedReplicas: 0, availableReplicas: 0, updateRevision: "a-2" };
    const pipe = aStatefulPipe({ options: { cores: 4, replicas: 1 }, status }, lastRollout);
    expect(stateOf(pipe, [ended])).toBe("rolling");
    expect(stateOf(pipe, [starting])).toBe("rolling");
    expect(stateOf(pipe, [started])).toBe("done");
  });
});

it("a StatefulSet whose pods the controller does not see is not done before one that its owner gave the size is available", () => {
  const stateOf = (availableReplicas: number) => {
    const status = { replicas: 1, updatedReplicas: 1, availableReplicas, updateRevision: "a-2" };
    const pipe = aStatefulPipe({ options: { cores: 4, replicas: 1 }, status });
    return statesFor(aSnapshot([{ ...pipe, hasLabelledPods: false }], { scaling: aScaling(4) }))[0];
  };
  expect(stateOf(0)).toBe("rolling");
  expect(stateOf(1)).toBe("done");
});

describe("a pipe whose status counts a pod that is not seen", () => {
  const containers = [{ name: "pipe", resources: amounts(FOUR) }];
  const stateOf = (agoMs: number, ended = containers, replicas = 2) => {
    const rollout = { ...COMPLETE, replicas };
    const pipe = aPipe("a", { size: FOUR, hasLabelledPods: true, replicas, rollout });
    const snapshot = aSnapshot([pipe], {
      pods: new Map([["a", [aPod("a-1", {}, { resources: amounts(FOUR) })]]]),
      endedPods: new Map([["a", { atMs: NOW_MS - agoMs, containers: ended }]]),
    });
    return { state: statesFor(snapshot)[0], atMs: recheckAtMs(snapshot, decide(snapshot, DECIDE_OPTIONS)) };
  };

  it("stays done for five seconds if one with the size has ended, and is looked at again then", () => {
    expect(stateOf(4999)).toEqual({ state: "done", atMs: NOW_MS + 1 });
    expect(stateOf(5000).state).toBe("rolling");
  });

  it("is not done if the one that ended had another size, or if another one is not seen either", () => {
    expect(stateOf(0, [{ name: "pipe", resources: amounts(sizeOfCores(1)) }]).state).toBe("rolling");
    expect(stateOf(0, [{ name: "sidecar", resources: amounts(FOUR) }]).state).toBe("rolling");
    expect(stateOf(0, containers, 3).state).toBe("rolling");
  });
});

describe("the last good size of a pipe", () => {
  /** With eight cores requested. */
  const goodSizeOf = (changes: Partial<PipeView>, pods: readonly PodView[] = []) => {
    const pipe = rollingTo("a", FOUR, changes);
    const snapshot = aSnapshot([pipe], { scaling: aScaling(8), pods: new Map([["a", pods]]) });
    const { actions } = decide(snapshot, DECIDE_OPTIONS);
    return actions.flatMap((action) => (action.type === "resize" ? action.rollout.lastGoodSize : []))[0];
  };

  it("is the one before, while its present size has not come up, for however long", () => {
    expect(goodSizeOf({})).toEqual(sizeOfCores(1));
    const startedAtMs = NOW_MS - 24 * 3_600_000;
    expect(
      goodSizeOf({ lastRollout: aRollout(FOUR, { startedAtMs, lastGoodSize: sizeOfCores(1) }) }),
    ).toEqual(sizeOfCores(1));
    expect(goodSizeOf({ lastRollout: aRollout(FOUR, { lastGoodSize: undefined }) })).toBeUndefined();
  });

  it.each<[string, Partial<PipeView>, readonly PodView[]]>([
    ["its rollout is complete", { rollout: COMPLETE }, []],
    ["its rollout succeeded once", { lastRollout: aRollout(FOUR, { cameUp: true }) }, []],
    ["one of its pods runs with it", { hasLabelledPods: true }, [aResizedPod("a-1")]],
  ])("is its present size if %s", (_, changes, pods) => {
    expect(goodSizeOf(changes, pods)).toEqual(FOUR);
  });

  it("is not its present size if the pod that runs with it restarted", () => {
    expect(goodSizeOf({ hasLabelledPods: true }, [aResizedPod("a-1", {}, { restartCount: 1 })])).toEqual(
      sizeOfCores(1),
    );
  });
});
