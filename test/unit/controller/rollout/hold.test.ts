import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { decided, newPod, oldPod, partitionOf, rolling } from "../../../support/fixtures/in-turn.ts";
import type { StatefulSetOptions } from "../../../support/fixtures/pipe.ts";
import { aResizedPod } from "../../../support/fixtures/pod.ts";
import { aPipe, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const ON_DELETE: Partial<StatefulSetOptions> = { updateStrategy: { type: "OnDelete" } };
const OLD = [oldPod(0), oldPod(1), oldPod(2)];

describe("a StatefulSet with a partition", () => {
  const asAllowed = () => rolling({ updatedReplicas: 2 }, {}, partitionOf(1));
  const pods = [oldPod(0), newPod(1), newPod(2)];

  it("waits for its owner when all other pods have the size, and is never ready", () => {
    const { assessment, ready, status } = decided(asAllowed(), pods);
    expect(assessment).toMatchObject({ state: "paused", phase: "settled" });
    expect(ready).toMatchObject({
      status: "False",
      reason: "WaitingForOwner",
      message: expect.stringContaining("1 of its 3 pods are below the partition 1 of its owner"),
    });
    expect(status.conditions?.some(({ type }) => type === "Stalled")).toBe(false);
    expect(status.pipes?.pending).toMatchObject([{ name: "statefulset/a", state: "Paused" }]);
    expect(status.effective).toBeUndefined();
  });

  it("keeps a pod below it that cannot be resized in place, although its template has the size", () => {
    const inPlaceFailure = { size: sizeOfCores(4), reason: "Infeasible", message: "large", atMs: 1 } as const;
    const pipe = rolling({ updatedReplicas: 2 }, { cameUp: true, inPlaceFailure }, partitionOf(1));
    const { assessment, actions } = decided(pipe, pods, { strategy: "InPlaceOrRollout" });
    expect(assessment).toMatchObject({ state: "paused", waitsForOwner: true });
    expect(actions).toEqual([]);
  });

  it("has come up as far as its owner allows, so nothing rolls it back later", () => {
    expect(decided(asAllowed(), pods).actions).toEqual(["adopt a with 4000m/16Gi"]);
    const late = { cameUp: true, startedAtMs: 0 };
    const lowered = rolling({ updatedReplicas: 2 }, late);
    expect(decided(lowered, [oldPod(0, { isReady: false }), newPod(1), newPod(2)]).actions).toEqual([]);
  });

  it("is not ready if its pods are not seen", () => {
    const pipe = { ...asAllowed(), hasLabelledPods: false };
    const { ready, status } = decided(pipe, []);
    expect([ready?.status, status.effective]).toEqual(["False", undefined]);
    const cameUp = {
      ...rolling({ updatedReplicas: 2 }, { cameUp: true }, partitionOf(1)),
      hasLabelledPods: false,
    };
    expect(decided(cameUp, []).ready?.status).toBe("False");
  });

  it("is not ready while a pod below it is missing, because a new one has the old size", () => {
    const counts = { replicas: 2, updatedReplicas: 2, availableReplicas: 2 };
    const missing = [newPod(1), newPod(2)];
    const { assessment, ready } = decided(rolling(counts, { cameUp: true }, partitionOf(1)), missing);
    expect([assessment?.state, ready?.status]).toEqual(["rolling", "False"]);
    const above = decided(rolling(counts, { cameUp: true }), missing);
    expect(above.ready?.status).toBe("True");
    const ending = [oldPod(0, { isActive: false, isTerminating: true }), ...missing];
    expect(
      decided(rolling({ ...counts, replicas: 3 }, { cameUp: true }, partitionOf(1)), ending).ready?.status,
    ).toBe("False");
    // Pod 2 is to be removed, because there are fewer replicas now.
    const fewer = rolling(counts, { cameUp: true }, { replicas: 2, ...partitionOf(1) });
    expect(decided(fewer, missing).ready?.status).toBe("False");
    const others = [{ ...newPod(0), templateHash: "a-1" }, newPod(1)];
    expect(decided(rolling(counts, { cameUp: true }, partitionOf(1)), others).ready?.status).toBe("True");
    const ofOneRevision = rolling({ ...counts, currentRevision: "a-2" }, { cameUp: true }, partitionOf(1));
    expect(decided(ofOneRevision, missing).ready?.status).toBe("True");
  });

  it("is done if the pods below it have the size for another reason", () => {
    const { ready } = decided(asAllowed(), [{ ...newPod(0), templateHash: "a-1" }, newPod(1), newPod(2)]);
    expect(ready?.status).toBe("True");
  });

  it("gets the template while the partition keeps all pods, and that is no rollout that could fail", () => {
    const { decision, actions } = decided(aStatefulPipe({ options: partitionOf(3) }), OLD);
    expect(actions).toEqual(["a 4000m/16Gi"]);
    expect(decision.actions).toMatchObject([{ rollout: { replicas: 0 } }]);
    const late = { replicas: 0, startedAtMs: 0 };
    expect(decided(rolling({}, late, partitionOf(3)), OLD).assessment?.state).toBe("paused");
    const lowered = decided(rolling({ updatedReplicas: 1 }, late), [
      oldPod(0),
      oldPod(1),
      newPod(2, { isReady: false }),
    ]);
    expect([lowered.assessment?.state, lowered.actions]).toEqual(["rolling", []]);
  });

  it("gets its size in place if the strategy allows that, also below the partition", () => {
    const strategy = "InPlaceOrRollout";
    const cameUp = rolling({ updatedReplicas: 2 }, { cameUp: true }, partitionOf(1));
    expect(decided(cameUp, pods, { strategy }).actions).toEqual(["resize-pod a-0"]);
    expect(decided(cameUp, pods).actions).toEqual([]);
    const sameTemplate = decided(aStatefulPipe({ options: partitionOf(3) }), OLD, { strategy });
    expect(sameTemplate.actions).toEqual(["resize-pod a-0"]);
  });

  it("keeps no other pipe from its size", () => {
    const snapshot = aSnapshot([asAllowed(), aPipe("b")], { pods: new Map([["statefulset/a", pods]]) });
    expect(summaries(decide(snapshot, DECIDE_OPTIONS).actions)).toContain("b 4000m/16Gi");
  });
});

describe("a StatefulSet with the strategy OnDelete", () => {
  it("is not touched with the strategy Rollout", () => {
    const { actions, ready, status } = decided(aStatefulPipe({ options: ON_DELETE }), OLD);
    expect(actions).toEqual([]);
    expect(ready).toMatchObject({
      status: "False",
      reason: "WaitingForOwner",
      message: expect.stringContaining("its update strategy is OnDelete"),
    });
    expect(status.conditions?.some(({ type }) => type === "Stalled")).toBe(false);
  });

  it.each(["InPlace", "InPlaceOrRollout"] as const)(
    "is resized in place with the strategy %s",
    (strategy) => {
      const { actions } = decided(aStatefulPipe({ options: ON_DELETE }), OLD, { strategy });
      expect(actions).toEqual(["resize-pod a-0"]);
    },
  );

  it("gets its size while it has no replicas", () => {
    const none = { replicas: 0, updatedReplicas: 0, availableReplicas: 0 };
    const pipe = aStatefulPipe({ options: { ...ON_DELETE, replicas: 0 }, status: none });
    expect(decided(pipe, []).actions).toEqual(["a 4000m/16Gi"]);
  });

  it("is not rolled back if its owner chose that during a rollout", () => {
    const pipe = rolling({ updatedReplicas: 1 }, { startedAtMs: 0 }, ON_DELETE);
    const { assessment, actions } = decided(pipe, [oldPod(0), oldPod(1), newPod(2, { isReady: false })]);
    expect([assessment?.state, actions]).toEqual(["paused", []]);
  });
});

describe("a StatefulSet whose owner keeps pods from rollouts, and whose pods were resized in place", () => {
  it.each([
    ["one with a partition", partitionOf(2)],
    ["one with a partition of all pods", partitionOf(3)],
    ["one with OnDelete", ON_DELETE],
  ])("has all of them in the record of the commit: %s", (_, options) => {
    const pods = OLD.map(({ metadata, templateHash }) => aResizedPod(metadata.name, { templateHash }));
    const { decision } = decided(aStatefulPipe({ options }), pods, { strategy: "InPlaceOrRollout" });
    expect(decision.actions).toMatchObject([{ type: "commit", rollout: { replicas: 3 } }]);
  });
});
