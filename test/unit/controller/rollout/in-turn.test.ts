import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { failuresIn, summaries } from "../../../support/fixtures/decisions.ts";
import {
  crashedSince,
  decided,
  newPod,
  oldPod,
  partitionOf,
  rolling,
} from "../../../support/fixtures/in-turn.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  resizedTo,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aPodWrite, aWrite, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);
const MINUTE_MS = 60_000;
const OLD = [oldPod(0), oldPod(1), oldPod(2)];

describe("a StatefulSet that gets another size", () => {
  it("is rolled out with the strategy Rollout", () => {
    const { decision, actions } = decided(aStatefulPipe(), OLD);
    expect(actions).toEqual(["a 4000m/16Gi"]);
    expect(decision.actions).toMatchObject([{ rollout: { replicas: 3, template: expect.any(String) } }]);
  });

  it.each(["InPlace", "InPlaceOrRollout"] as const)(
    "is resized in place with the strategy %s",
    (strategy) => {
      expect(decided(aStatefulPipe(), OLD, { strategy }).actions).toEqual(["resize-pod a-0"]);
    },
  );

  it("is rolling until each pod has the size", () => {
    const { assessment, actions } = decided(rolling({ updatedReplicas: 2 }), [
      oldPod(0),
      newPod(1),
      newPod(2),
    ]);
    expect([assessment?.state, actions]).toEqual(["rolling", []]);
  });

  it("is done when each pod has the size, and that is recorded", () => {
    const status = { updatedReplicas: 3, currentRevision: "a-2" };
    const { ready, actions } = decided(rolling(status), [newPod(0), newPod(1), newPod(2)]);
    expect([ready?.status, actions]).toEqual(["True", ["adopt a with 4000m/16Gi"]]);
  });

  it("has a name of its own in the status, also if a Deployment has the same one", () => {
    const snapshot = aSnapshot([aPipe("a"), aStatefulPipe()], { pods: new Map([["statefulset/a", OLD]]) });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    const { pipes } = statusOf(snapshot, aScaling(4), decision, POLICY);
    expect(pipes?.pending?.map(({ name }) => name)).toEqual(["a", "statefulset/a"]);
    expect(decision.sizing?.blockedBy).toEqual(["a"]);
  });

  it("has a pod resized in place that has another size although the rollout has completed", () => {
    const status = { updatedReplicas: 3, currentRevision: "a-2" };
    const other = aPod("a-1", { templateHash: "a-2" });
    const { actions } = decided(rolling(status, { cameUp: true }), [newPod(0), other, newPod(2)]);
    expect(actions).toEqual(["resize-pod a-1"]);
  });
});

describe("a StatefulSet that gets a third size while a pod has the second one", () => {
  const superseded = (pod: Partial<PodView>, agoMs = MINUTE_MS) => {
    const pods = [oldPod(0), oldPod(1), newPod(2, pod)];
    const pipe = rolling({ updatedReplicas: 1 }, { startedAtMs: NOW_MS - agoMs });
    return decided(pipe, pods, { scaling: aScaling(2) }).decision.actions;
  };

  it("returns to the second one only if a pod was ready with it", () => {
    expect(superseded({})).toMatchObject([{ type: "resize", rollout: { lastGoodSize: FOUR } }]);
    expect(superseded({ isReady: false })).toMatchObject([{ rollout: { lastGoodSize: sizeOfCores(1) } }]);
  });

  it("does not take a rollout for proven because of its age", () => {
    const actions = superseded({ isReady: false }, 24 * 60 * MINUTE_MS);
    expect(actions).toMatchObject([{ rollout: { lastGoodSize: sizeOfCores(1) } }]);
  });
});

describe("the room for the new pods of a StatefulSet", () => {
  it("is searched before a rollout, in place of the pods that are replaced", () => {
    const pipe = aStatefulPipe({ options: partitionOf(1) });
    const subject = `${pipe.inTurn?.template}/pipe/true/4000m/16Gi`;
    const writes = someWrites([aWrite("uid-a", "dry-run", { subject })]);
    const snapshot = aSnapshot([pipe], { pods: new Map([["statefulset/a", OLD]]), writes });
    const { actions } = decide(snapshot, { ...DECIDE_OPTIONS, makesDryRuns: true });
    expect(actions).toMatchObject([
      { type: "check-room", stopping: [{ metadata: { name: "a-1" } }, { metadata: { name: "a-2" } }] },
    ]);
  });

  it("does not count that of the pods that its owner keeps, while a resize in place waits for room", () => {
    const resize = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
    const pods = OLD.map((pod) => aResizedPod(pod.metadata.name, { templateHash: pod.templateHash, resize }));
    const writes = someWrites(
      pods.map(({ metadata }) => aPodWrite(metadata.name, { lastAtMs: NOW_MS - MINUTE_MS })),
    );
    const pipe = aStatefulPipe({ options: partitionOf(1) });
    const { decision } = decided(pipe, pods, { strategy: "InPlaceOrRollout", writes });
    expect(decision.actions).toMatchObject([
      { type: "check-room", stopping: [{ metadata: { name: "a-1" } }, { metadata: { name: "a-2" } }] },
    ]);
  });

  it("is not searched if its owner lets no pod be replaced", () => {
    const snapshot = aSnapshot([aStatefulPipe({ options: partitionOf(3) })]);
    const { actions } = decide(snapshot, { ...DECIDE_OPTIONS, makesDryRuns: true });
    expect(summaries(actions)).toEqual(["a 4000m/16Gi"]);
  });
});

describe("StatefulSets that have their size, and crash again and again for another reason", () => {
  const LIMIT_MS = 3 * POLICY.rolloutTimeoutMs;
  const actionsAfter = (agoMs: number) => {
    const writers = crashedSince(NOW_MS - agoMs);
    const status = { updatedReplicas: 3, availableReplicas: 2, currentRevision: "a-2" };
    const sets = ["a", "b", "c"].map((name) => {
      const pipe = rolling(status, { cameUp: true, startedAtMs: NOW_MS - 2 * LIMIT_MS }, {}, writers);
      return { ...pipe, metadata: { ...pipe.metadata, name, uid: name } };
    });
    const pods = [newPod(0, { isReady: false }), newPod(1), newPod(2)];
    const snapshot = aSnapshot([...sets, resizedTo("d", FOUR), aPipe("e")], {
      pods: new Map(sets.map(({ metadata }) => [`statefulset/${metadata.name}`, pods])),
    });
    return summaries(decide(snapshot, DECIDE_OPTIONS).actions);
  };

  it("keep other pipes of the service from their size for a limited time", () => {
    expect(actionsAfter(LIMIT_MS - 1000)).toEqual([]);
    expect(actionsAfter(LIMIT_MS)).toEqual(["e 4000m/16Gi"]);
  });
});

describe("the timeout of the rollout of a StatefulSet", () => {
  const TIMEOUT_MS = POLICY.rolloutTimeoutMs;
  const RENEWAL_MS = TIMEOUTS.renewalMs;
  const slow = (createdAtMs: number, startedAtMs: number) =>
    decided(rolling({ updatedReplicas: 2, availableReplicas: 2 }, { startedAtMs }), [
      ...[oldPod(0), newPod(1, { createdAtMs, isReady: false })],
      newPod(2, { createdAtMs: startedAtMs }),
    ]);

  it("begins again with each pod", () => {
    const startedAtMs = NOW_MS - TIMEOUT_MS - MINUTE_MS;
    const { assessment, snapshot, decision } = slow(NOW_MS - MINUTE_MS, startedAtMs);
    expect([assessment?.state, assessment?.phase]).toEqual(["rolling", "rolling-out"]);
    expect(recheckAtMs(snapshot, decision)).toBe(NOW_MS + TIMEOUT_MS - MINUTE_MS);
  });

  it("is over if one pod does not become ready in time", () => {
    const { decision, actions } = slow(NOW_MS - TIMEOUT_MS, NOW_MS - TIMEOUT_MS - MINUTE_MS);
    expect(actions).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresIn(decision)).toMatchObject([{ pipe: "statefulset/a", reason: "RolloutTimeout" }]);
  });

  describe("after a change by its owner", () => {
    const LIMIT_MS = 3 * TIMEOUT_MS;
    const changed = (agoMs: number, createdAgoMs = agoMs) =>
      decided(
        rolling(
          { updatedReplicas: 1, availableReplicas: 2 },
          { startedAtMs: NOW_MS - LIMIT_MS },
          { image: "registry.example/pipe:2" },
          crashedSince(NOW_MS - agoMs),
        ),
        [oldPod(0), oldPod(1), newPod(2, { createdAtMs: NOW_MS - createdAgoMs, isReady: false })],
      );

    it("begins with that change, and not again each time a pod crashes", () => {
      const { assessment, actions } = changed(TIMEOUT_MS - 1000);
      expect([assessment?.state, assessment?.phase, actions]).toEqual(["rolling", "updating", []]);
      expect(changed(TIMEOUT_MS).actions).toEqual(["a back to 1000m/4Gi"]);
    });

    it("begins again with each pod, up to a limit for all of them", () => {
      expect(changed(LIMIT_MS - 1000, MINUTE_MS).actions).toEqual([]);
      const late = changed(LIMIT_MS, MINUTE_MS);
      expect([late.actions, late.assessment?.phase]).toEqual([["a back to 1000m/4Gi"], "overdue"]);
    });
  });

  const resumed = (
    agoMs: number,
    rollout: Partial<LastRollout> = { startedAtMs: NOW_MS - RENEWAL_MS },
    subresource?: string,
  ) => {
    const [owner, status] = crashedSince(NOW_MS - agoMs);
    const writers = [{ ...owner, ...(subresource ? { subresource } : {}) }, { ...status }];
    const pipe = rolling({ updatedReplicas: 1, availableReplicas: 2 }, rollout, {}, writers);
    return decided(pipe, [oldPod(0), oldPod(1), newPod(2, { createdAtMs: 0, isReady: false })]);
  };

  it("begins again when its owner lets Kubernetes replace its pods again", () => {
    const { assessment, snapshot, decision, actions } = resumed(MINUTE_MS);
    expect([assessment?.state, actions]).toEqual(["rolling", []]);
    expect(recheckAtMs(snapshot, decision)).toBe(NOW_MS + TIMEOUT_MS - MINUTE_MS);
    expect(resumed(TIMEOUT_MS).actions).toEqual(["a back to 1000m/4Gi"]);
  });

  it.each<[string, Partial<LastRollout>, string?]>([
    ["an annotation, by the owner of the spec", { generation: 7 }],
    ["the number of replicas, by an autoscaler", {}, "scale"],
  ])("does not begin again with a write of %s", (_, rollout, subresource) => {
    const withinMs = (agoMs: number) =>
      resumed(0, { startedAtMs: NOW_MS - agoMs, ...rollout }, subresource).actions;
    expect(withinMs(TIMEOUT_MS - 1)).toEqual([]);
    expect(withinMs(TIMEOUT_MS)).toEqual(["a back to 1000m/4Gi"]);
  });

  it("does not begin again for ever for a StatefulSet whose spec is written again and again", () => {
    const withinMs = (agoMs: number) => resumed(0, { startedAtMs: NOW_MS - agoMs }).actions;
    expect(withinMs(RENEWAL_MS + TIMEOUT_MS - 1)).toEqual([]);
    expect(withinMs(RENEWAL_MS + TIMEOUT_MS)).toEqual(["a back to 1000m/4Gi"]);
  });

  it("does not begin again for ever for a pod that is created again and again", () => {
    expect(slow(NOW_MS, NOW_MS - 3 * TIMEOUT_MS).actions).toEqual(["a back to 1000m/4Gi"]);
    expect(slow(NOW_MS, NOW_MS - 3 * TIMEOUT_MS + 1).actions).toEqual([]);
  });

  it("is said to be that of one pod, or that of all pods together", () => {
    const messageOf = ({ decision }: ReturnType<typeof decided>) => failuresIn(decision)[0]?.message;
    expect(messageOf(slow(NOW_MS - TIMEOUT_MS, NOW_MS - TIMEOUT_MS - MINUTE_MS))).toBe(
      "the rollout has not completed, and has replaced no pod for 15 min",
    );
    const ofAll = "the rollout has not completed in 45 min";
    expect(messageOf(slow(NOW_MS, NOW_MS - 3 * TIMEOUT_MS))).toBe(ofAll);
    const unseen = { ...rolling({}, { startedAtMs: NOW_MS - 3 * TIMEOUT_MS }), hasLabelledPods: false };
    expect(messageOf(decided(unseen, []))).toBe(ofAll);
  });

  it("is that of all pods together if they are not seen", () => {
    const hidden = (agoMs: number) =>
      decided({ ...rolling({}, { startedAtMs: NOW_MS - agoMs }), hasLabelledPods: false }, []);
    expect(hidden(3 * TIMEOUT_MS - 1).actions).toEqual([]);
    expect(hidden(3 * TIMEOUT_MS).actions).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is followed by no automatic retry, because a rollback interrupted the pipe too", () => {
    const failure = { reason: "RolloutTimeout", message: "late" } as const;
    const rollout = { isRollback: true, failure, startedAtMs: 0 };
    const back = rolling({ updateRevision: "a-1", updatedReplicas: 3 }, rollout, { cores: 1 });
    const { decision, actions } = decided(back, OLD);
    expect(actions).toEqual([]);
    expect(failuresIn(decision)[0]?.nextRetryAt).toBeUndefined();
  });
});
