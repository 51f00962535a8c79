import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import type { Fallback } from "../../../../src/controller/observe/last-rollout.ts";
import { resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { keyOfPipe } from "../../../../src/controller/observe/workloads/kinds.ts";
import { HOLD, toStatefulPipeView } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import type { WriteError, WritePurpose } from "../../../../src/controller/observe/write-record.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Pod } from "../../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../../src/kube/workloads.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { patchedResources } from "../../../support/fixtures/committing.ts";
import { podOfSet as pod } from "../../../support/fixtures/held-commit.ts";
import { amounts } from "../../../support/fixtures/pod.ts";
import { managedBy } from "../../../support/fixtures/resized-deployment.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";
import { aHeldStatefulSet, aStatefulSet, withAnnotation } from "../../../support/fixtures/stateful-set.ts";

const FOUR = sizeOfCores(4);
const refusal = (code: number, message: string) =>
  new KubeApiError("PATCH", code, JSON.stringify({ message }));

const UNLISTED = refusal(403, 'pods is forbidden: User "a" cannot list resource "pods"');

/** The API server accepts no larger partition. */
const LARGEST = 2 ** 31 - 1;

const TEMPLATE = toStatefulPipeView(aStatefulSet()).inTurn?.template;
const COMMITTING = aRollout(FOUR, {
  isCommitting: true,
  committedRevision: "a-1",
  inPlaceStartedAtMs: 0,
  startedAtMs: 1000,
  generation: 7,
  lastGoodSize: sizeOfCores(1),
  template: TEMPLATE,
});

interface Answers {
  readonly statefulSet?: StatefulSet | undefined;
  readonly pods?: readonly Pod[];
  /** Why pods cannot be listed. */
  readonly listError?: Error;
  /** The effect of a write. It throws to refuse the write. */
  readonly write?: (request: KubeRequest) => unknown;
}

/** An API server with one StatefulSet and its pods. */
function aServer({ statefulSet, pods = [], listError, write }: Answers) {
  const made = anApplier((request) => {
    if (request.method !== undefined) {
      write?.(request);
      return statefulSet && request.path.endsWith("/a") ? merged(statefulSet, request) : {};
    }
    if (!request.path.endsWith("/pods")) return { items: statefulSet ? [statefulSet] : [] };
    if (listError) throw listError;
    return { items: pods };
  });
  const writes = () => made.requests.filter(({ method }) => method !== undefined);
  return { ...made, writes };
}

/** The StatefulSet after a merge of the annotation, the partition and the size of a patch. */
function merged(before: StatefulSet, { body }: KubeRequest): StatefulSet {
  const { metadata, spec = {} } = JSON.parse(JSON.stringify(body));
  const updateStrategy = spec.updateStrategy ? { type: "RollingUpdate", ...spec.updateStrategy } : {};
  return {
    ...before,
    metadata: {
      ...before.metadata,
      resourceVersion: "9",
      annotations: { ...before.metadata.annotations, ...metadata.annotations },
    },
    spec: { ...before.spec, ...(spec.updateStrategy ? { updateStrategy } : {}) },
  };
}

describe("the commit of a StatefulSet", () => {
  const begun = async (statefulSet: StatefulSet, write?: Answers["write"]) => {
    const pipe = toStatefulPipeView(statefulSet);
    const made = aServer({ statefulSet, ...(write ? { write } : {}) });
    made.caches.pipes.of(pipe.kind).apply(pipe);
    const rollout = { ...COMMITTING, template: pipe.inTurn?.template };
    await apply(made.applier, { type: "commit", pipe, container: "pipe", rollout });
    return { ...made, outcome: made.applier.writes.get("uid-a", "commit")?.outcome };
  };
  const partition = (value: number) =>
    aStatefulSet({
      options: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: value } } },
      metadata: { managedFields: managedBy("owner") },
    });

  it.each([0, 2, 100])(
    "holds all pods in the write of the size, on top of the partition %i",
    async (value) => {
      const { writes } = await begun(partition(value));
      const spec = { updateStrategy: { rollingUpdate: { partition: HOLD + value } } };
      const metadata = { uid: "uid-a", resourceVersion: "1" };
      expect(writes()).toMatchObject([{ method: "PATCH", body: { metadata, spec } }]);
      expect(writes().map(patchedResources)).toEqual([resourcesFor(FOUR, false)]);
    },
  );

  it("is recorded with the hold if managed fields were reset, and otherwise by the API server", async () => {
    const recordsOf = async (options: Parameters<typeof aStatefulSet>[0]) => {
      const { writes } = await begun(aStatefulSet(options));
      return JSON.parse(JSON.stringify(writes()[0]?.body)).metadata.managedFields;
    };
    const fieldsV1 = { "f:spec": { "f:updateStrategy": { "f:rollingUpdate": { "f:partition": {} } } } };
    const record = { manager: CONTROLLER_FIELD_MANAGER, operation: "Update", fieldsV1 };
    const reset = { metadata: { managedFields: [] } };
    expect(await recordsOf(reset)).toMatchObject([record]);
    const managedFields = managedBy("owner");
    expect(await recordsOf({ metadata: { managedFields } })).toBeUndefined();
    const options = { updateStrategy: { type: "OnDelete" } } as const;
    expect(await recordsOf({ ...reset, options })).toBeUndefined();
    const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: LARGEST } } as const;
    expect(await recordsOf({ ...reset, options: { updateStrategy } })).toBeUndefined();
  });

  it.each<[string, StatefulSet]>([
    [
      "with the strategy OnDelete, which has none",
      aStatefulSet({ options: { updateStrategy: { type: "OnDelete" } } }),
    ],
    ["as large as a hold, which keeps all pods", partition(HOLD)],
    ["of the largest number", partition(LARGEST)],
  ])("changes no partition %s", async (_, statefulSet) => {
    const { writes } = await begun(statefulSet);
    expect(writes()).toMatchObject([{ body: { spec: { template: {} } } }]);
    expect(JSON.stringify(writes())).not.toContain("updateStrategy");
  });

  it.each([
    [403, 'is forbidden: User "a" cannot patch', "Forbidden"],
    [422, "a policy says no", "Refused"],
  ])("begins only if a pod could get a label: %i", async (code, message, fallback) => {
    const statefulSet = aStatefulSet();
    const pipe = toStatefulPipeView(statefulSet);
    const made = aServer({
      statefulSet,
      pods: [pod(0, "a-1")],
      write: ({ path }) => {
        if (path.endsWith("/pods/a-0")) throw refusal(code, message);
      },
    });
    made.caches.pipes.of(pipe.kind).apply(pipe);
    await apply(made.applier, { type: "commit", pipe, container: "pipe", rollout: COMMITTING });
    expect(made.writes()).toMatchObject([
      { path: expect.stringMatching(/\/pods\/a-0$/), query: { dryRun: "All" } },
    ]);
    expect(made.applier.writes.get("uid-a", "commit")?.outcome).toMatchObject({ error: { fallback } });
  });

  it("begins only if the pods can be listed", async () => {
    const statefulSet = aStatefulSet();
    const pipe = toStatefulPipeView(statefulSet);
    const made = aServer({ statefulSet, listError: UNLISTED });
    made.caches.pipes.of(pipe.kind).apply(pipe);
    await apply(made.applier, { type: "commit", pipe, container: "pipe", rollout: COMMITTING });
    expect(made.writes()).toEqual([]);
    const { outcome } = made.applier.writes.get("uid-a", "commit") ?? {};
    expect(outcome).toMatchObject({ type: "failed", error: { fallback: "Forbidden" } });
  });

  it.each<[string, KubeApiError, Partial<WriteError>]>([
    ["a policy refuses the hold", refusal(422, "no"), { reason: "Refused", fallback: "Refused" }],
    ["a webhook is down", refusal(500, "failed calling webhook"), { reason: "WriteFailed" }],
    ["a permission is missing", refusal(403, 'is forbidden: User "a" cannot patch'), { reason: "Forbidden" }],
    ["it conflicts", refusal(409, "the object has been modified"), { isConflict: true }],
  ])("falls back to a rollout only if its values are refused: %s", async (_, error, expected) => {
    const { outcome } = await begun(aStatefulSet(), () => {
      throw error;
    });
    expect(outcome).toMatchObject({ type: "failed", error: expected });
    expect(outcome?.type === "failed" && "fallback" in outcome.error).toBe("fallback" in expected);
  });
});

describe("the next step of the commit of a StatefulSet", () => {
  const committed = withAnnotation(aHeldStatefulSet({ options: { cores: 4 } }), COMMITTING);
  const status = { updateRevision: "a-2", updatedReplicas: 0 };
  const seen: StatefulSet = { ...committed, status: { ...committed.status, ...status } };
  const counted: StatefulSet = { ...seen, status: { ...seen.status, updatedReplicas: 3 } };
  const unseen: StatefulSet = { ...committed, status: { ...committed.status, observedGeneration: 6 } };
  const step = async (
    answers: Answers,
    action: {
      readonly isOverdue?: boolean;
      readonly fallback?: Fallback;
      readonly mayReplacePods?: boolean;
    } = {},
  ) => {
    const made = aServer(answers);
    const pipe = toStatefulPipeView(answers.statefulSet ?? seen);
    made.caches.pipes.of(pipe.kind).apply(pipe);
    made.applier.writes.done(made.applier.writes.begin("uid-a", "commit", "4000m/16Gi"));
    await apply(made.applier, {
      type: "continue-commit",
      pipe,
      container: "pipe",
      isOverdue: false,
      mayReplacePods: true,
      ...action,
    });
    const of = (purpose: WritePurpose) => made.applier.writes.get("uid-a", purpose)?.outcome;
    const written = made.writes().map(({ path, body }) => ({ path: path.split("/").at(-1), body }));
    return { ...made, of, written, lastRollout: made.caches.pipes.get(keyOfPipe(pipe))?.lastRollout };
  };
  const label = (revision: string) => ({ metadata: { labels: { "controller-revision-hash": revision } } });

  it("labels each pod that does not end, in the version that was read", async () => {
    const ending = pod(2, "a-1", { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const strange = pod(3, "a-1", { ownerReferences: [] });
    const { written } = await step({
      statefulSet: seen,
      pods: [pod(0, "a-1"), pod(1, "a-2"), ending, strange],
    });
    expect(written).toMatchObject([{ path: "a-0", body: label("a-2") }]);
    expect(written).toMatchObject([{ body: { metadata: { uid: "uid-0", resourceVersion: "00" } } }]);
  });

  it("releases the pods with the partition of the owner when Kubernetes counts them", async () => {
    const pods = [pod(0, "a-2")];
    expect((await step({ statefulSet: seen, pods })).written).toEqual([]);
    const { written, lastRollout } = await step({ statefulSet: counted, pods });
    expect(written).toMatchObject([
      { path: "a", body: { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } } },
    ]);
    expect(lastRollout).toMatchObject({ cameUp: true, size: FOUR });
    expect(lastRollout?.isCommitting ?? false).toBe(false);
  });

  it.each([HOLD, LARGEST])(
    "leaves the partition %i to its owner, also if the commit is undone",
    async (value) => {
      const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: value } } as const;
      const managedFields = managedBy(CONTROLLER_FIELD_MANAGER);
      const rollout = { ...COMMITTING, isUnheld: true };
      const kept = ({ status: of }: StatefulSet) =>
        withAnnotation(
          aStatefulSet({ options: { cores: 4, updateStrategy }, metadata: { managedFields }, status: of }),
          rollout,
        );
      const labeled = await step({ statefulSet: kept(seen), pods: [pod(0, "a-1")] });
      expect(labeled.written).toMatchObject([{ path: "a-0", body: label("a-2") }]);
      const ended = await step({ statefulSet: kept(counted), pods: [pod(0, "a-2")] });
      const taken = await step({ statefulSet: kept(unseen), pods: [pod(0, "a-1")] }, { isOverdue: true });
      for (const { written, lastRollout } of [ended, taken]) {
        expect(written).toMatchObject([{ path: "a" }]);
        expect(JSON.stringify(written)).not.toContain("updateStrategy");
        expect([lastRollout?.isCommitting, lastRollout?.isUnheld]).toEqual([undefined, undefined]);
      }
      expect(taken.writes().map(patchedResources)).toEqual([resourcesFor(sizeOfCores(1), false)]);
    },
  );

  it("gives the template its old size in the write that releases them, if Kubernetes does not see it", async () => {
    const pods = [pod(0, "a-1"), pod(1, "a-1")];
    expect((await step({ statefulSet: unseen, pods })).written).toEqual([]);
    const { written, writes, of, lastRollout } = await step(
      { statefulSet: unseen, pods },
      { isOverdue: true },
    );
    expect(written).toMatchObject([
      { path: "a", body: { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } } },
    ]);
    expect(writes().map(patchedResources)).toEqual([resourcesFor(sizeOfCores(1), false)]);
    expect(lastRollout).toMatchObject({ size: sizeOfCores(1), attempts: 0 });
    expect(of("commit")).toMatchObject({
      type: "failed",
      error: {
        message: expect.stringContaining("got its old size again: check the kube-controller-manager"),
      },
    });
  });

  it("releases the pods with a reason if something removed the old size from the annotation", async () => {
    const { lastGoodSize: _, ...without } = COMMITTING;
    const statefulSet = withAnnotation(unseen, without);
    const { written, writes, of, lastRollout } = await step(
      { statefulSet, pods: [pod(0, "a-1")] },
      { isOverdue: true },
    );
    expect(written).toMatchObject([{ path: "a" }]);
    // The template keeps the size.
    expect(of("commit")?.type).toBe("done");
    expect(writes().map(patchedResources)).toEqual([undefined]);
    expect(lastRollout?.inPlaceFailure?.reason).toBe("NotSettled");
  });

  it("takes it back if labels are refused, and records why the size is not tried in place again", async () => {
    const fallback = { reason: "Refused", message: "a policy says no" } as const;
    const { written, lastRollout } = await step(
      { statefulSet: seen, pods: [pod(0, "a-1")] },
      { isOverdue: true, fallback },
    );
    expect(written).toMatchObject([{ path: "a" }]);
    expect(lastRollout?.inPlaceFailure).toMatchObject(fallback);
  });

  it("tries the labels once more at the end of its time, and looks at the pods again if that fails", async () => {
    const answers = {
      statefulSet: seen,
      pods: [pod(0, "a-1"), pod(1, "a-1")],
      write: ({ path }: KubeRequest) => {
        if (path.endsWith("/pods/a-0")) throw refusal(500, "failed calling webhook");
      },
    };
    const { written } = await step(answers, { isOverdue: true });
    expect(written.map(({ path }) => path)).toEqual(["a-0", "a"]);
    const partly = { ...answers, pods: [pod(0, "a-1"), pod(1, "a-2")] };
    const failed = await step(partly, { isOverdue: true });
    expect(failed.written.map(({ path }) => path)).toEqual(["a-0"]);
    expect(failed.of("resume")).toMatchObject({ type: "failed", error: { reason: "WriteFailed" } });
  });

  it("makes one attempt to release the pods at the end of its time, and the next one after a delay", async () => {
    const answers = {
      statefulSet: counted,
      pods: [pod(0, "a-2")],
      write: () => {
        throw refusal(500, "failed calling webhook");
      },
    };
    const { written, of } = await step(answers, { isOverdue: true });
    expect(written.map(({ path }) => path)).toEqual(["a"]);
    expect(of("resume")).toMatchObject({ type: "failed", error: { reason: "WriteFailed" } });
  });

  it("replaces the rest if some pods have the label and others may not get it, unless that is forbidden", async () => {
    const fallback = { reason: "Refused", message: "a policy says no" } as const;
    const answers = { statefulSet: seen, pods: [pod(0, "a-1"), pod(1, "a-2")] };
    const { written, lastRollout } = await step(answers, { isOverdue: true, fallback });
    expect(written).toMatchObject([{ path: "a" }]);
    expect(lastRollout?.inPlaceFailure).toMatchObject(fallback);
    const kept = await step(answers, { isOverdue: true, fallback, mayReplacePods: false });
    expect(kept.written).toEqual([]);
  });

  describe("without the permission to list pods", () => {
    const forbidden = (statefulSet: StatefulSet, action: Parameters<typeof step>[1] = {}) =>
      step({ statefulSet, listError: UNLISTED }, { isOverdue: true, ...action });

    it("is another attempt until its time is over", async () => {
      const { written, of } = await forbidden(seen, { isOverdue: false });
      expect(written).toEqual([]);
      expect(of("continue-commit")).toMatchObject({ type: "failed", error: { reason: "Forbidden" } });
    });

    it.each([true, false])(
      "gives the template its old size if Kubernetes counts no pod of the new one (may replace pods: %s)",
      async (mayReplacePods) => {
        for (const statefulSet of [seen, unseen]) {
          const { written, writes } = await forbidden(statefulSet, { mayReplacePods });
          expect(written).toMatchObject([
            { path: "a", body: { spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } } },
          ]);
          expect(writes().map(patchedResources)).toEqual([resourcesFor(sizeOfCores(1), false)]);
        }
      },
    );

    it("releases the pods with the reason if one has the label, but only if pods may be replaced", async () => {
      const statefulSet = { ...seen, status: { ...seen.status, updatedReplicas: 1 } };
      const { written, writes, lastRollout } = await forbidden(statefulSet);
      expect(written).toMatchObject([{ path: "a" }]);
      expect(writes().map(patchedResources)).toEqual([undefined]);
      expect(lastRollout?.inPlaceFailure).toMatchObject({ reason: "Forbidden" });
      const kept = await forbidden(statefulSet, { mayReplacePods: false });
      expect(kept.written).toEqual([]);
      expect(kept.of("resume")).toMatchObject({ type: "failed", error: { reason: "Forbidden" } });
    });

    it("counts labels that Kubernetes has not seen yet", async () => {
      const { applier, caches, writes } = aServer({ statefulSet: seen, listError: UNLISTED });
      const pipe = toStatefulPipeView(seen);
      caches.pipes.of(pipe.kind).apply(pipe);
      applier.writes.done(applier.writes.begin("uid-a", "continue-commit", "4000m/16Gi"));
      const action = { type: "continue-commit", pipe, container: "pipe", isOverdue: true } as const;
      await apply(applier, { ...action, mayReplacePods: false });
      expect(writes()).toEqual([]);
      await apply(applier, { ...action, mayReplacePods: true });
      expect(writes().map(patchedResources)).toEqual([undefined]);
    });

    it("releases the pods if Kubernetes counts them, or if their owner changed the template", async () => {
      const all = await forbidden(counted, { mayReplacePods: false });
      expect(all.written).toMatchObject([{ path: "a" }]);
      expect(all.lastRollout?.inPlaceFailure).toBeUndefined();
      const image = "registry.example/pipe:2";
      const changed = withAnnotation(aHeldStatefulSet({ options: { cores: 4, image }, status }), COMMITTING);
      const { written, lastRollout } = await forbidden(changed, { mayReplacePods: false });
      expect(written).toMatchObject([{ path: "a" }]);
      expect(lastRollout?.inPlaceFailure).toMatchObject({ reason: "NotSettled" });
    });

    it("leaves the template as it is with the strategy OnDelete, which replaces no pod", async () => {
      const options = { cores: 4, updateStrategy: { type: "OnDelete" } } as const;
      const managedFields = managedBy(CONTROLLER_FIELD_MANAGER);
      const left = withAnnotation(aStatefulSet({ options, status, metadata: { managedFields } }), COMMITTING);
      const { writes, lastRollout } = await forbidden(left, { mayReplacePods: false });
      expect(writes().map(patchedResources)).toEqual([undefined]);
      expect(lastRollout?.isCommitting ?? false).toBe(false);
    });
  });

  it.each<[string, StatefulSet | undefined]>([
    ["is gone", undefined],
    ["is not held any more", aStatefulSet({ options: { cores: 4 } })],
  ])("writes nothing if the StatefulSet %s", async (_, statefulSet) => {
    const made = aServer({ statefulSet, pods: [pod(0, "a-1")] });
    await apply(made.applier, {
      type: "continue-commit",
      pipe: toStatefulPipeView(seen),
      container: "pipe",
      isOverdue: true,
      mayReplacePods: true,
    });
    expect(made.writes()).toEqual([]);
  });
});

describe("pods of a StatefulSet that cannot be resized although its template has the size", () => {
  const replaced = async (pods: readonly Pod[], kept: readonly string[] = []) => {
    const statefulSet = aStatefulSet({ options: { cores: 4 } });
    const made = aServer({ statefulSet, pods });
    const pipe = toStatefulPipeView(statefulSet);
    made.caches.pipes.of(pipe.kind).apply(pipe);
    await apply(made.applier, {
      type: "replace-pods",
      pipe,
      container: "pipe",
      templateHash: "a-1",
      resources: { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } },
      kept,
    });
    const outcome = made.applier.writes.get("uid-a", "replace-pods")?.outcome;
    return { written: made.writes().map(({ body }) => body), outcome };
  };
  const outdated = (number: number) => ({
    metadata: { uid: `uid-${number}`, labels: { "controller-revision-hash": "a-outdated" } },
  });
  /** A pod whose spec has the size, as its kubelet reports it. */
  const running = (number: number, cores: number): Pod => ({
    ...pod(number, "a-1"),
    status: { containerStatuses: [{ name: "pipe", resources: amounts(sizeOfCores(cores)) }] },
  });

  it("get the label of no revision, so that Kubernetes replaces them in turn", async () => {
    const { written, outcome } = await replaced([pod(0, "a-1", {}, 1), pod(1, "a-1")]);
    expect(written).toMatchObject([outdated(0)]);
    expect(written).toHaveLength(1);
    expect(outcome?.type).toBe("done");
  });

  it("get it also if only their kubelet lacks the size, unless it may still apply that", async () => {
    const pods = [running(0, 1), running(1, 4), running(2, 1)];
    const { written, outcome } = await replaced(pods, ["uid-2"]);
    expect(written).toMatchObject([outdated(0)]);
    expect(written).toHaveLength(1);
    expect(outcome?.type).toBe("done");
  });

  it("are not taken for replaced if they have the size by now", async () => {
    const { written, outcome } = await replaced([running(0, 4), pod(1, "a-1")]);
    expect(written).toEqual([]);
    expect(outcome).toMatchObject({ type: "failed", error: { isConflict: true } });
  });
});
