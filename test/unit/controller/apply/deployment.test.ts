import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../../../../src/controller/names.ts";
import type { Fallback, LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { formatLastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import type { WriteError, WritePurpose } from "../../../../src/controller/observe/write-record.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Deployment } from "../../../../src/kube/workloads.ts";
import {
  aCommitter,
  aDeployment,
  aReplicaSet,
  patchedResources,
} from "../../../support/fixtures/committing.ts";
import { aPipe, aRollout } from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
const TARGET = resourcesFor(FOUR, false);
const refusal = (code: number, message: string) =>
  new KubeApiError("PATCH", code, JSON.stringify({ message }));

describe("the beginning of a commit", () => {
  const rollout = aRollout(FOUR, { isCommitting: true, inPlaceStartedAtMs: 0 });
  const begun = async (
    answers: Omit<Parameters<typeof aCommitter>[0], "deployment">,
    read = aDeployment(),
  ) => {
    const pipe = toPipeView(aDeployment());
    const made = aCommitter({ ...answers, deployment: read });
    made.caches.pipes.of(pipe.kind).apply(pipe);
    await apply(made.applier, { type: "commit", pipe, container: "pipe", rollout });
    return { ...made, outcome: made.applier.writes.get("uid-a", "commit")?.outcome };
  };

  it("pauses the Deployment and sets the size in one write, for the version that was read", async () => {
    const { writes, outcome, caches } = await begun({});
    expect(writes()).toMatchObject([
      { method: "PATCH", body: { metadata: { uid: "uid-a", resourceVersion: "5" }, spec: { paused: true } } },
    ]);
    expect(writes().map(patchedResources)).toEqual([TARGET]);
    expect(outcome).toMatchObject({ type: "done", annotation: { isStripped: false } });
    expect(caches.pipes.get("pipes/a")).toMatchObject({ isPaused: true, size: FOUR, lastRollout: rollout });
  });

  it("deletes older ReplicaSets of the size before that, which Kubernetes would use", async () => {
    const older = aReplicaSet("older", { cores: 4, replicas: 0, createdAt: "2025-01-01T00:00:00Z" });
    const { writes } = await begun({ replicaSets: [aReplicaSet("current"), older] });
    expect(writes()).toMatchObject([
      { method: "DELETE", body: { preconditions: { uid: "uid-older", resourceVersion: "1" } } },
      { method: "PATCH" },
    ]);
  });

  it("writes nothing if the Deployment changed meanwhile, and goes on with the version that was read", async () => {
    const { writes, outcome, caches } = await begun({}, aDeployment({ resourceVersion: "6" }));
    expect(writes()).toEqual([]);
    expect(outcome).toMatchObject({ type: "failed", error: { isConflict: true } });
    expect(caches.pipes.get("pipes/a")?.metadata.resourceVersion).toBe("6");
  });

  it("writes nothing while pods are of two ReplicaSets", async () => {
    const { writes, outcome } = await begun({ replicaSets: [aReplicaSet("current"), aReplicaSet("old")] });
    expect(writes()).toEqual([]);
    expect(outcome).toMatchObject({ error: { reason: "WriteFailed" } });
  });

  it.each<[string, KubeApiError, Partial<WriteError>]>([
    ["the values are refused", refusal(422, "too large"), { reason: "Refused", fallback: "Refused" }],
    ["a webhook is down", refusal(500, "failed calling webhook"), { reason: "WriteFailed" }],
    ["a permission is missing", refusal(403, 'is forbidden: User "a" cannot patch'), { reason: "Forbidden" }],
    ["it conflicts", refusal(409, "the object has been modified"), { isConflict: true }],
  ])("falls back to a rollout only if its values are refused: %s", async (_, error, expected) => {
    const { outcome } = await begun({
      write: () => {
        throw error;
      },
    });
    expect(outcome).toMatchObject({ type: "failed", error: expected });
    expect(outcome?.type === "failed" && "fallback" in outcome.error).toBe("fallback" in expected);
  });
});

describe("the next step of a commit", () => {
  const rollout = aRollout(FOUR, { isCommitting: true, inPlaceStartedAtMs: 0, startedAtMs: 1000 });
  const seen = { isPaused: true, isUpdated: false, cores: 4 };
  const step = async (
    answers: Partial<Parameters<typeof aCommitter>[0]>,
    action: { readonly isOverdue?: boolean; readonly fallback?: Fallback } = {},
  ) => {
    const deployment = "deployment" in answers ? answers.deployment : withRollout(aDeployment(seen), rollout);
    const pipe = toPipeView(withRollout(aDeployment(seen), rollout));
    const made = aCommitter({ ...answers, deployment });
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
    const of = (purpose: WritePurpose) => made.applier.writes.get("uid-a", purpose);
    return {
      ...made,
      of,
      written: made.writes().map(({ path, body }) => ({ path: path.split("/").at(-1), body })),
    };
  };

  it("gives the ReplicaSet the size", async () => {
    const { written, writes, of } = await step({});
    expect(written).toMatchObject([
      { path: "current", body: { metadata: { uid: "uid-current", resourceVersion: "1" } } },
    ]);
    expect(writes().map(patchedResources)).toEqual([TARGET]);
    expect(of("continue-commit")).toMatchObject({
      subject: "4000m/16Gi",
      outcome: { type: "done", generation: 3 },
    });
  });

  it("resumes when the pods count as updated, and the annotation says so", async () => {
    const deployment = withRollout(aDeployment({ ...seen, isUpdated: true }), rollout);
    const { written, caches } = await step({
      deployment,
      replicaSets: [aReplicaSet("current", { cores: 4 })],
    });
    expect(written).toMatchObject([{ path: "a", body: { spec: { paused: null } } }]);
    expect(caches.pipes.get("pipes/a")?.lastRollout).toMatchObject({ cameUp: true, size: FOUR });
    expect(caches.pipes.get("pipes/a")?.lastRollout?.isCommitting ?? false).toBe(false);
  });

  it("does not resume although the pods count as updated if the ReplicaSet has got another size since then", async () => {
    const { written, writes } = await step({
      deployment: withRollout(aDeployment({ ...seen, isUpdated: true }), rollout),
      replicaSets: [aReplicaSet("current", { cores: 8 })],
    });
    expect(written).toMatchObject([{ path: "current" }]);
    expect(writes().map(patchedResources)).toEqual([TARGET]);
  });

  it("gives the template its old size in the write that resumes, if the time is over", async () => {
    const { written, writes, caches, of } = await step({}, { isOverdue: true });
    expect(written).toMatchObject([{ path: "a", body: { spec: { paused: null } } }]);
    expect(writes().map(patchedResources)).toEqual([
      { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } },
    ]);
    expect(caches.pipes.get("pipes/a")?.lastRollout).toMatchObject({ size: sizeOfCores(1), attempts: 0 });
    // The next attempt waits, and no pod is replaced.
    expect(of("commit")?.outcome).toMatchObject({
      type: "failed",
      error: {
        message: expect.stringContaining("got its old size again: check the kube-controller-manager"),
      },
    });
    expect(caches.pipes.get("pipes/a")?.lastRollout?.inPlaceFailure).toBeUndefined();
  });

  it("resumes at the end of its time if the ReplicaSets must not be listed any more, and a rollout follows", async () => {
    const listError = refusal(403, 'replicasets is forbidden: User "a" cannot list');
    const early = await step({ listError });
    expect(early.written).toEqual([]);
    expect(early.of("continue-commit")?.outcome).toMatchObject({ error: { reason: "Forbidden" } });
    const { written, caches } = await step({ listError }, { isOverdue: true });
    expect(written).toMatchObject([{ path: "a", body: { spec: { paused: null } } }]);
    expect(caches.pipes.get("pipes/a")?.lastRollout?.inPlaceFailure?.reason).toBe("Forbidden");
  });

  it("records why the size is not tried in place again, if the ReplicaSet must not be changed", async () => {
    const fallback = { reason: "Refused", message: "a policy says no" } as const;
    const { caches } = await step({}, { isOverdue: true, fallback });
    expect(caches.pipes.get("pipes/a")?.lastRollout?.inPlaceFailure).toEqual({
      ...fallback,
      size: FOUR,
      atMs: 1000,
    });
  });

  it("resumes with a reason if its owner changed the template, because a rollout follows", async () => {
    const deployment = withRollout(aDeployment(seen), rollout);
    const containers = deployment.spec.template.spec.containers.map((each) => ({ ...each, image: "pipe:2" }));
    const template = { ...deployment.spec.template, spec: { containers } };
    const changed = { ...deployment, spec: { ...deployment.spec, template } };
    const { written, writes, caches } = await step({ deployment: changed });
    expect(written).toMatchObject([{ path: "a", body: { spec: { paused: null } } }]);
    expect(writes().map(patchedResources)).toEqual([undefined]);
    expect(caches.pipes.get("pipes/a")?.lastRollout?.inPlaceFailure?.reason).toBe("NotSettled");
  });

  it.each<[string, Deployment | undefined]>([
    ["is gone", undefined],
    ["was resumed by somebody else", aDeployment({ cores: 4, resourceVersion: "6" })],
  ])("writes nothing if the Deployment %s, and waits for no response", async (_, deployment) => {
    const { written, applier } = await step({ deployment });
    expect(written).toEqual([]);
    expect(applier.writes.unresolvedCommits().size).toBe(0);
  });

  it("remembers a failed write to the ReplicaSet, to repeat it", async () => {
    const { of } = await step({
      write: () => {
        throw refusal(500, "failed calling webhook");
      },
    });
    expect(of("continue-commit")?.outcome).toMatchObject({
      type: "failed",
      error: { reason: "WriteFailed" },
    });
  });

  it("goes on for a Deployment that has left the cache, and does not bring it back", async () => {
    const pipe = toPipeView(withRollout(aDeployment(seen), rollout));
    const resumable = withRollout(aDeployment({ ...seen, isUpdated: true }), rollout);
    const made = aCommitter({ deployment: resumable, replicaSets: [aReplicaSet("current", { cores: 4 })] });
    made.applier.departed.observe(pipe);
    await apply(made.applier, {
      type: "continue-commit",
      pipe,
      container: "pipe",
      isOverdue: false,
      mayReplacePods: true,
    });
    expect(made.writes()).toMatchObject([{ body: { spec: { paused: null } } }]);
    expect([made.caches.pipes.size, made.applier.departed.all()]).toEqual([0, []]);
    // No event about it follows, which would end its records.
    expect(made.applier.writes.get("uid-a", "resume")).toBeUndefined();
  });
});

describe("a ReplicaSet whose pods are to be replaced", () => {
  const size = resourcesFor(sizeOfCores(1), false);

  /** The pods have the template of a ReplicaSet, as the controller sees them. */
  async function replaced(templateHash: string, resources = size) {
    const replicaSets = [aReplicaSet("a-current", { cores: 4 }), aReplicaSet("a-old", { replicas: 0 })];
    const made = aCommitter({ deployment: aDeployment({ cores: 4 }), replicaSets });
    const pods = { pipe: aPipe("a"), container: "pipe", resources, templateHash, kept: [] };
    await apply(made.applier, { type: "replace-pods", ...pods });
    const outcome = made.applier.writes.get("uid-a", "replace-pods")?.outcome;
    expect(outcome).toMatchObject(
      made.writes().length > 0 ? { type: "done" } : { type: "failed", error: { isConflict: true } },
    );
    return made.writes();
  }

  it("gets the resources of its pods", async () => {
    const writes = await replaced("current");
    expect(writes.map(({ path }) => path.split("/").at(-1))).toEqual(["a-current"]);
    expect(writes.map(patchedResources)).toEqual([size]);
  });

  it("gets no less than its admission policy accepts, which differs from the template as well", async () => {
    const none = { requests: { cpu: "0", memory: "0" }, limits: { cpu: "0", memory: "1023Ki" } };
    const least = { cpu: "1m", memory: "1Mi" };
    const writes = await replaced("current", none);
    expect(writes.map(patchedResources)).toEqual([{ requests: least, limits: least }]);
    const open = { requests: { cpu: "0", memory: "4Gi" }, limits: { memory: "4Gi" } };
    const others = await replaced("current", open);
    expect(others.map(patchedResources)).toEqual([{ ...open, requests: { cpu: "1m", memory: "4Gi" } }]);
  });

  it("gets at most what the admission policy of every installation accepts, which is the size of no template", async () => {
    const earlier = { requests: { cpu: "64", memory: "256Gi" }, limits: { cpu: "64", memory: "256Gi" } };
    const most = { cpu: "23999m", memory: "98303Mi" };
    const writes = await replaced("current", earlier);
    expect(writes.map(patchedResources)).toEqual([{ requests: most, limits: most }]);
    const lean = { requests: { cpu: "8", memory: "64Gi" }, limits: { memory: "128Gi" } };
    const others = await replaced("current", lean);
    expect(others.map(patchedResources)).toEqual([{ ...lean, limits: { memory: most.memory } }]);
    const open = { requests: { cpu: "64", memory: null }, limits: { memory: null } };
    const third = await replaced("current", open);
    expect(third.map(patchedResources)).toEqual([{ ...open, requests: { cpu: most.cpu, memory: null } }]);
  });

  it("stays as it is if the pods that the controller sees are of an earlier one, and gone by now", async () => {
    expect(await replaced("old")).toEqual([]);
  });
});

function withRollout(deployment: ReturnType<typeof aDeployment>, rollout: LastRollout) {
  const annotation = formatLastRollout(rollout, "uid-a");
  const { metadata } = deployment;
  const [managed] = metadata.managedFields;
  const annotations = { ...metadata.annotations, [LAST_ROLLOUT_ANNOTATION]: annotation };
  const owned = { "f:annotations": { [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } };
  const fieldsV1 = { ...managed?.fieldsV1, "f:metadata": owned };
  const managedFields = managed ? [{ ...managed, fieldsV1 }] : [];
  return { ...deployment, metadata: { ...metadata, annotations, managedFields } };
}
