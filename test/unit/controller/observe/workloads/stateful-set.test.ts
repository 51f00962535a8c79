import { describe, expect, it } from "vitest";
import type { LastRollout } from "../../../../../src/controller/observe/last-rollout.ts";
import {
  isChangedByOwner,
  isHeld,
  isRollingOut,
  isUnreleased,
} from "../../../../../src/controller/observe/pipe-view.ts";
import { HOLD, toStatefulPipeView } from "../../../../../src/controller/observe/workloads/stateful-set.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../../src/domain/size.ts";
import type { ManagedFields } from "../../../../../src/kube/objects.ts";
import type { StatefulSet } from "../../../../../src/kube/workloads.ts";
import type { StatefulSetOptions } from "../../../../support/fixtures/pipe.ts";
import { aRollout } from "../../../../support/fixtures/snapshot.ts";
import { aHeldStatefulSet, aStatefulPipe, aStatefulSet } from "../../../../support/fixtures/stateful-set.ts";

const FOUR = sizeOfCores(4);
const PARTITIONED = { "f:spec": { "f:updateStrategy": { "f:rollingUpdate": { "f:partition": {} } } } };

function partition(value: number): Partial<StatefulSetOptions> {
  return { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: value } } };
}

describe("a StatefulSet of three pods", () => {
  it("is a pipe that stops an old pod before the new one starts", () => {
    expect(aStatefulPipe()).toMatchObject({
      kind: "StatefulSet",
      size: sizeOfCores(1),
      replicas: 3,
      stopsOldPodsFirst: true,
      serviceId: "service",
      hasLabelledPods: true,
      isPaused: false,
      isPausedForCommit: false,
      templateProblem: undefined,
      rollout: { isComplete: true, isAvailable: true, isUpdated: true, isWithoutPods: false },
    });
  });

  it("counts a pod as available after minReadySeconds, so its rollouts have that time in addition", () => {
    expect(aStatefulPipe({ options: { minReadySeconds: 1200 } }).minReadyMs).toBe(1_200_000);
  });

  it.each<[string, StatefulSet["status"], boolean]>([
    ["is complete if all pods have the newest template and are available", {}, true],
    ["is not complete until its status is about the newest template", { observedGeneration: 6 }, false],
    ["is not complete while a pod has another template", { updatedReplicas: 2 }, false],
    ["is not complete while a pod is not available", { availableReplicas: 2 }, false],
    ["is not complete while a pod is missing", { replicas: 2, updatedReplicas: 2 }, false],
    ["is not complete while an old pod terminates", { replicas: 3, updatedReplicas: 2 }, false],
  ])("%s", (_, status, isComplete) => {
    expect(aStatefulPipe({ status }).rollout.isComplete).toBe(isComplete);
  });

  it("has no pods only if its current status counts none", () => {
    const none = { replicas: 0, updatedReplicas: 0, availableReplicas: 0 };
    const isWithoutPods = (status: StatefulSet["status"]) => aStatefulPipe({ status }).rollout.isWithoutPods;
    expect(isWithoutPods(none)).toBe(true);
    expect(isWithoutPods({ ...none, observedGeneration: 6 })).toBe(false);
    expect(isWithoutPods({ replicas: 1 })).toBe(false);
  });

  describe("the last progress of its rollout", () => {
    const spec = { "f:spec": { "f:replicas": {} } };
    const written = (manager: string, time: string, fieldsV1: ManagedFields["fieldsV1"] = spec) => ({
      manager,
      time,
      fieldsV1,
    });
    const reported = (time: string) => ({
      ...written("kube-controller-manager", time, { "f:status": {} }),
      subresource: "status",
    });
    const progressedAt = (managedFields: readonly ManagedFields[], observedGeneration = 7) => {
      const { rollout } = aStatefulPipe({ metadata: { managedFields }, status: { observedGeneration } });
      return rollout.progressedAtS && new Date(rollout.progressedAtS * 1000).toISOString().slice(11, 16);
    };

    it("is the last write to its spec, because each crash of a pod changes the status", () => {
      const owner = written("helm", "2026-06-01T11:00:00Z");
      expect(progressedAt([owner, reported("2026-06-01T12:00:00Z")])).toBe("11:00");
      const scaler = { ...written("scaler", "2026-06-01T11:30:00Z"), subresource: "scale" };
      expect(progressedAt([owner, scaler, reported("2026-06-01T12:00:00Z")])).toBe("11:30");
    });

    it("is no write of an autoscaler for the timeout of a rollout", () => {
      const owner = written("helm", "2026-06-01T11:00:00Z");
      const scaler = { ...written("scaler", "2026-06-01T11:30:00Z"), subresource: "scale" };
      const { inTurn } = aStatefulPipe({ metadata: { managedFields: [owner, scaler] } });
      expect(inTurn?.writtenAtMs).toBe(Date.parse("2026-06-01T11:00:00Z"));
    });

    it("is not the write of an annotation", () => {
      const owner = written("helm", "2026-06-01T11:00:00Z");
      const annotator = written("cron", "2026-06-01T12:00:00Z", { "f:metadata": {} });
      expect(progressedAt([owner, annotator, reported("2026-06-01T11:00:01Z")])).toBe("11:00");
      const annotated = written("helm", "2026-06-01T12:00:00Z");
      expect(progressedAt([annotated, reported("2026-06-01T11:10:00Z")])).toBe("11:10");
    });

    it("is a write that Kubernetes has not seen yet", () => {
      const managedFields = [written("helm", "2026-06-01T12:00:00Z"), reported("2026-06-01T11:10:00Z")];
      expect(progressedAt(managedFields, 6)).toBe("12:00");
    });

    it("is unknown if another writer has removed all managed fields", () => {
      expect(progressedAt([])).toBe(0);
    });
  });

  it.each<[string, Partial<StatefulSetOptions>, number]>([
    ["one for each pod", {}, 3],
    ["one for each pod that its owner allows", partition(1), 2],
    ["at least one", partition(3), 1],
    [
      "one for each number of pods that may be unavailable",
      { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 2 } } },
      2,
    ],
    [
      "one for each share of pods that may be unavailable",
      { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "67%" } } },
      2,
    ],
    [
      "one for each pod if the share of pods is rounded down to one, as Kubernetes does",
      { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "66%" } } },
      3,
    ],
    [
      "one for each pod if the share of pods is less than one",
      { updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "1%" } } },
      3,
    ],
  ])("has as many steps: %s", (_, options, steps) => {
    expect(aStatefulPipe({ options }).inTurn?.steps).toBe(steps);
  });
});

describe("the partition of a StatefulSet of three pods", () => {
  const rolledOut = { updatedReplicas: 2, updateRevision: "a-2" };

  it("keeps the pods below it, and the others can be rolled out completely", () => {
    const pipe = aStatefulPipe({ options: partition(1), status: rolledOut });
    expect(pipe).toMatchObject({ isPaused: false, rollout: { isComplete: true, isUpdated: false } });
    expect(pipe.inTurn?.hold).toMatchObject({
      pods: 1,
      below: 1,
      isOnDelete: false,
      message:
        "1 of its 3 pods are below the partition 1 of its owner, so Kubernetes does not replace them: lower spec.updateStrategy.rollingUpdate.partition",
    });
    const names = ["a-0", "a-1", "a-10"].filter((name) =>
      isHeld(pipe, { metadata: { name, uid: "", resourceVersion: "" } }),
    );
    expect(names).toEqual(["a-0"]);
  });

  it.each<StatefulSet["status"]>([
    { ...rolledOut, updatedReplicas: 1 },
    { ...rolledOut, availableReplicas: 2 },
    { ...rolledOut, observedGeneration: 6 },
  ])("does not make a rollout complete with the status %o", (status) => {
    expect(aStatefulPipe({ options: partition(1), status }).rollout.isComplete).toBe(false);
  });

  it.each([3, 100])("pauses rollouts if it is %i", (value) => {
    const status = { updatedReplicas: 0, updateRevision: "a-2" };
    const pipe = aStatefulPipe({ options: partition(value), status });
    expect(pipe).toMatchObject({ isPaused: true, rollout: { isComplete: false } });
    expect(pipe.inTurn?.hold?.pods).toBe(3);
  });

  it("counts from the first number of the pods", () => {
    const { spec, ...made } = aStatefulSet({ options: partition(1) });
    const pipe = toStatefulPipeView({ ...made, spec: { ...spec, ordinals: { start: 5 } } });
    expect(pipe.inTurn?.hold?.below).toBe(6);
  });

  it("has no effect on a StatefulSet without replicas", () => {
    const pipe = aStatefulPipe({ options: { ...partition(2), replicas: 0 } });
    expect([pipe.isPaused, pipe.inTurn?.hold]).toEqual([false, undefined]);
  });
});

describe("a StatefulSet whose pods the controller holds", () => {
  const BEGUN_MS = Date.parse("2026-01-01T00:00:00Z");

  it("is in a commit since then, and has the partition of its owner", () => {
    for (const owners of [0, 2]) {
      const pipe = toStatefulPipeView(aHeldStatefulSet({}, owners));
      expect(pipe).toMatchObject({ isPausedForCommit: true, pausedForCommitAtMs: BEGUN_MS });
      expect([pipe.inTurn?.partition, pipe.inTurn?.hold?.pods ?? 0]).toEqual([owners, owners]);
    }
  });

  it("is not in a commit if another writer confirmed the partition, or set it", () => {
    const metadata = (managers: readonly string[]) => ({
      managedFields: managers.map((manager) => ({
        manager,
        fieldsV1: PARTITIONED,
        time: "2026-01-01T00:00:00Z",
      })),
    });
    for (const managers of [["helm"], ["helm", CONTROLLER_FIELD_MANAGER]]) {
      const pipe = toStatefulPipeView(aHeldStatefulSet({ metadata: metadata(managers) }));
      expect(pipe).toMatchObject({ isPausedForCommit: false, isPaused: true });
      expect(pipe.inTurn?.partition).toBe(HOLD);
    }
  });

  it("is recognized by the number alone if another writer has removed all managed fields", () => {
    const creationTimestamp = "2025-01-01T00:00:00Z";
    const unmanaged = { managedFields: [], creationTimestamp };
    const pipe = toStatefulPipeView(aHeldStatefulSet({ metadata: unmanaged }, 1));
    expect(pipe).toMatchObject({
      isPausedForCommit: true,
      pausedForCommitAtMs: Date.parse(creationTimestamp),
    });
    expect(pipe.inTurn?.partition).toBe(1);
  });

  it("is recognized by the annotation with the strategy OnDelete, which holds all pods", () => {
    const options = { updateStrategy: { type: "OnDelete" } } as const;
    expect(aStatefulPipe({ options }, aRollout(FOUR, { isCommitting: true })).isPausedForCommit).toBe(true);
    expect(aStatefulPipe({ options }, aRollout(FOUR)).isPausedForCommit).toBe(false);
  });

  it("is recognized by the annotation, if there is one, when another writer has removed all managed fields", () => {
    const unmanaged = { managedFields: [] };
    const viewOf = (changes: Partial<LastRollout>) =>
      aStatefulPipe({ options: partition(HOLD + 1), metadata: unmanaged }, aRollout(FOUR, changes));
    const held = viewOf({ isCommitting: true });
    expect([held.isPausedForCommit, held.inTurn?.partition]).toEqual([true, 1]);
    const unheld = viewOf({ isCommitting: true, isUnheld: true });
    expect([unheld.isPausedForCommit, unheld.inTurn?.partition]).toEqual([true, HOLD + 1]);
    const others = viewOf({});
    expect([others.isPausedForCommit, others.inTurn?.partition]).toEqual([false, HOLD + 1]);
  });

  it("has to be left to its owner again when it is released", () => {
    const managedFields = [{ manager: CONTROLLER_FIELD_MANAGER, operation: "Update", fieldsV1: PARTITIONED }];
    const released = aStatefulPipe({ options: partition(0), metadata: { managedFields } });
    expect([released.isPausedForCommit, released.inTurn?.ownsPartition]).toEqual([false, true]);
  });
});

describe.each([HOLD, 2 * HOLD, 2 ** 31 - 1])(
  "the partition %i of an owner, which keeps all pods",
  (value) => {
    const options = partition(value);

    it("is no hold of the controller, and needs none", () => {
      const managedFields = [{ manager: "helm", fieldsV1: PARTITIONED }];
      const pipe = aStatefulPipe({ options, metadata: { managedFields } });
      expect(pipe.isPausedForCommit).toBe(false);
      expect(pipe.inTurn).toMatchObject({ partition: value, needsHold: false, hold: { pods: 3 } });
      expect(isUnreleased(pipe)).toBe(false);
    });

    it("leaves it to the annotation to show a commit, after which nothing has to be released", () => {
      const pipe = aStatefulPipe({ options }, aRollout(FOUR, { isCommitting: true, isUnheld: true }));
      expect(pipe).toMatchObject({
        isPausedForCommit: true,
        pausedForCommitAtMs: aRollout(FOUR).startedAtMs,
      });
      expect(pipe.inTurn?.partition).toBe(value);
      expect(isUnreleased(pipe)).toBe(false);
    });
  },
);

it("a partition that is larger than any hold of the controller is that of the owner, whatever else is missing", () => {
  for (const value of [2 * HOLD, 2 ** 31 - 1]) {
    const pipe = aStatefulPipe({ options: partition(value), metadata: { managedFields: [] } });
    expect([pipe.isPausedForCommit, pipe.inTurn?.partition]).toEqual([false, value]);
  }
});

describe("the strategy OnDelete", () => {
  it("leaves all pods to the owner", () => {
    const { isPaused, inTurn } = aStatefulPipe({ options: { updateStrategy: { type: "OnDelete" } } });
    expect(isPaused).toBe(true);
    expect(inTurn?.hold).toMatchObject({ pods: 3, isOnDelete: true });
    expect(inTurn?.hold?.message).toMatch(/OnDelete.*: set spec\.updateStrategy\.type to RollingUpdate$/);
  });
});

describe("the owner of a StatefulSet", () => {
  const before = aStatefulPipe();
  const rollout = aRollout(FOUR, { generation: 7, revision: 2, template: before.inTurn?.template });
  const changedWith = (options: Partial<StatefulSetOptions>, generation = 7) =>
    aStatefulPipe({ options: { cores: 4, ...options }, metadata: { generation } }, rollout);

  it("has not changed the template if only its size differs from the one before", () => {
    const pipe = changedWith({});
    expect([pipe.lastRollout, isChangedByOwner(pipe)]).toEqual([rollout, false]);
  });

  it("has changed the template if anything else differs, even before Kubernetes has seen it", () => {
    expect(isChangedByOwner(changedWith({ image: "registry.example/pipe:2" }, 8))).toBe(true);
    expect(isChangedByOwner(changedWith({ podAnnotations: { restarted: "now" } }, 8))).toBe(true);
  });

  it("has not changed the template by scaling, or by another partition", () => {
    expect(isChangedByOwner(changedWith({ replicas: 5, ...partition(2) }, 8))).toBe(false);
  });

  it("has not changed a template that had no resources before the controller gave it a size", () => {
    const { spec, ...made } = aStatefulSet();
    const containers = spec.template.spec.containers.map((each) => ({ ...each, resources: {} }));
    const template = { ...spec.template, spec: { ...spec.template.spec, containers } };
    const { inTurn } = toStatefulPipeView({ ...made, spec: { ...spec, template } });
    expect(inTurn?.template).toBe(before.inTurn?.template);
  });

  it("ends a rollout of the controller by pausing it", () => {
    const status = { updatedReplicas: 1, updateRevision: "a-2" };
    const withOptions = (options: Partial<StatefulSetOptions>) =>
      isRollingOut(aStatefulPipe({ options: { cores: 4, ...options }, status }, rollout));
    expect(withOptions({})).toBe(true);
    expect(withOptions({ updateStrategy: { type: "OnDelete" } })).toBe(false);
  });
});
