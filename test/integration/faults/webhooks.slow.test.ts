import { randomUUID, type UUID } from "node:crypto";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import type { PipeFailure } from "../../../src/crd/pipe-scaling.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, EVENTS, objectPath } from "../../../src/kube/paths.ts";
import { serviceConfigMap } from "../../../src/records/service.ts";
import { accountName, shippedAccount } from "../../support/fixtures/shipped-account.ts";
import { limitMemory } from "../../support/limits.ts";
import {
  type AdmissionRequest,
  AdmissionWebhook,
  allow,
  deny,
} from "../../support/servers/admission-webhook.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../../support/test-environment.ts";
import { Invariants } from "./invariants.ts";

let environment: TestEnvironment;
let invariants: Invariants;
let webhook: AdmissionWebhook;
let cores = 1;
/** One service for each worker of the controller. */
const SLOW = Array.from({ length: 16 }, (_, index) => ({ id: randomUUID(), name: `slow-${index}` }));

beforeAll(async () => {
  environment = await TestEnvironment.create();
  invariants = await Invariants.observe(environment, {
    services: new Map(SLOW.map(({ id }) => [id, environment.pipes])),
  });
  invariants.accept(1);
  await environment.startController();
  await environment.createPipe({ name: "pipe", cores: 1 });
  await environment.waitForCondition("Ready", "True");
  webhook = await AdmissionWebhook.start(environment, "ValidatingWebhookConfiguration", "pipe");
});
afterAll(async () => {
  await webhook?.end();
  await environment?.end();
  await invariants?.close();
});

/** Requests a size that the pipe does not have. */
async function requestAnotherSize(): Promise<void> {
  cores = cores === 4 ? 2 : 4;
  invariants.accept(cores);
  await environment.requestSize(cores);
}

/** Waits until the status reports this number of attempts, with this part of the message, and returns the failure. */
function reportedFailure(words: string, attempts: number): Promise<PipeFailure> {
  return waitFor(
    async () => {
      const [failure] = (await environment.scaling()).status?.failures ?? [];
      const isIt = failure !== undefined && failure.attempts >= attempts && failure.message.includes(words);
      return isIt ? failure : undefined;
    },
    { what: `the status to report ${attempts} attempts and "${words}"` },
  );
}

/** Expects the failure in the conditions, and one Event for all attempts. */
async function expectReport(failure: PipeFailure, words: string): Promise<void> {
  const scaling = await environment.scaling();
  expect(conditionOf(scaling, "Ready")).toMatchObject({ status: "False", reason: failure.reason });
  expect(conditionOf(scaling, "Ready")?.message).toContain(words);
  expect(Date.parse(failure.nextRetryAt ?? "")).toBeGreaterThan(Date.parse(failure.at));
  await waitFor(async () => (await eventsAbout(words)).length > 0, { what: `an Event with "${words}"` });
  expect(await eventsAbout(words)).toHaveLength(1);
}

async function eventsAbout(words: string): Promise<readonly KubeObject[]> {
  const { items } = await environment.client.json<{
    readonly items: readonly (KubeObject & {
      readonly note?: string;
      readonly regarding?: { name: string };
    })[];
  }>({ path: collectionPath(EVENTS, environment.pipes) });
  return items.filter(
    ({ note, regarding }) => regarding?.name === environment.serviceId && note?.includes(words),
  );
}

async function settled(): Promise<void> {
  await invariants.settled(cores, { quietMs: 300 });
}

describe("a resize that the API server rejects", () => {
  it("is reported as Refused if a webhook responds with 400, and succeeds with a requested retry", async () => {
    webhook.respond = deny(400, "sizes are frozen today");
    await requestAnotherSize();
    const failure = await reportedFailure("sizes are frozen today", 1);
    expect(failure).toMatchObject({ pipe: "pipe", reason: "Refused", attempts: 1 });
    await expectReport(failure, "sizes are frozen today");
    expect(webhook.requests).toHaveLength(1);
    webhook.respond = allow;
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await settled();
  });

  it("is reported as Refused if a webhook responds with 409, which is no conflict of the object", async () => {
    webhook.respond = deny(409, "this size conflicts with a freeze");
    await requestAnotherSize();
    const failure = await reportedFailure("this size conflicts with a freeze", 1);
    expect(failure.reason).toBe("Refused");
    webhook.respond = allow;
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await settled();
  });

  it("is retried while a webhook responds with 429", async () => {
    webhook.respond = deny(429, "too many writes");
    await requestAnotherSize();
    const failure = await reportedFailure("too many writes", 2);
    expect(failure.reason).toBe("WriteFailed");
    await expectReport(failure, "too many writes");
    webhook.respond = allow;
    await settled();
  });

  it("is retried while a webhook is unreachable", async () => {
    await webhook.close();
    try {
      await requestAnotherSize();
      const words = "failed calling webhook";
      const failure = await reportedFailure(words, 2);
      expect(failure.reason).toBe("WriteFailed");
      await expectReport(failure, words);
    } finally {
      await webhook.listen();
    }
    await settled();
  });

  it("is reported as Forbidden and retried while the controller lacks the permission", async () => {
    const account = shippedAccount("controller", environment.records);
    await apply(environment.cluster, account.map(withoutPatchOfDeployments));
    try {
      await waitFor(async () => !(await mayPatchDeployments()), {
        what: "the removal of the permission to take effect",
      });
      await requestAnotherSize();
      const words = 'cannot patch resource "deployments"';
      const failure = await reportedFailure(words, 2);
      expect(failure.reason).toBe("Forbidden");
      await expectReport(failure, words);
    } finally {
      await apply(environment.cluster, account);
    }
    await settled();
  });
});

describe("a resize that a webhook allows after 6 s", () => {
  it("is made once, and one for each worker does not block another service", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const writesTo = (name: string) =>
      webhook.requests.filter((request) => request.name === name).map(purposeOf);
    const areReady = async () => (await Promise.all(SLOW.map(({ id }) => isReady(id)))).every(Boolean);
    webhook.respond = allow;
    await Promise.all(SLOW.map(({ id, name }) => createSlowService(id, name)));
    await waitFor(areReady, { what: "the other services to be ready" });
    await waitFor(() => SLOW.every(({ name }) => writesTo(name).length > 0), { what: "their adoption" });
    webhook.respond = async ({ name }) => {
      if (name.startsWith("slow")) await released;
      return { allowed: true };
    };
    try {
      await Promise.all(SLOW.map(({ id }) => askForFourCores(id)));
      await waitFor(() => SLOW.every(({ name }) => writesTo(name).length > 1), {
        what: "the writes to be slow",
      });
      const heldAt = performance.now();
      await requestAnotherSize();
      // The status of the slow ones is still written meanwhile.
      await invariants.reached(cores);
      await waitFor(() => performance.now() - heldAt > 6000, { what: "the writes to be slow for 6 s" });
      for (const { name } of SLOW) expect(writesTo(name).join(" ")).toMatch(/^(record )+resize$/);
    } finally {
      release();
    }
    await waitFor(areReady, { what: "the other services to have the size" });
    for (const { name } of SLOW) {
      expect(resourcesOf(await environment.pipe(name))).toBe("4 16Gi 16Gi");
      await waitFor(() => writesTo(name).at(-1) === "record", {
        what: "the record that the rollout is complete",
      });
      // A write that conflicts with one of Kubernetes is repeated.
      expect(writesTo(name).join(" ")).toMatch(/^(record )+(resize )+record$/);
    }
    await invariants.end();
  });
});

describe("dry runs of a service with several pipes", () => {
  const names = ["pipe-a", "pipe-b", "pipe-c"];
  let other: TestEnvironment;
  let reviewing: AdmissionWebhook;
  beforeAll(async () => {
    other = await TestEnvironment.create();
    await other.startController();
    for (const name of names) await other.createPipe({ name, cores: 1 });
    await other.waitForCondition("Ready", "True");
    reviewing = await AdmissionWebhook.start(other, "ValidatingWebhookConfiguration", "pipe-a");
  });
  afterAll(async () => {
    await reviewing?.end();
    await other?.end();
  });

  it("name every pipe if a webhook responds with 409, before anything is written", async () => {
    reviewing.respondToDryRun = deny(409, "sizes are frozen");
    await other.requestSize(4);
    const { status } = await other.waitForCondition("Stalled", "True", "Refused");
    expect(status?.failures?.map(({ pipe }) => pipe)).toEqual(names);
    expect(status?.conditions?.[0]?.message).toMatch(/sizes are frozen.*pipe-b, pipe-c/);
    expect(reviewing.requests).toEqual([]);
  });

  it.each([429, 500])("hold nothing back if a webhook responds with %i", async (code) => {
    reviewing.respondToDryRun = deny(code, "too many dry runs");
    await other.requestSize(code === 429 ? 2 : 4);
    await other.waitForCondition("Ready", "True");
    const resized = reviewing.requests.filter((request) => purposeOf(request) === "resize");
    expect(resized.map(({ name }) => name).toSorted()).toEqual(names);
    reviewing.requests.length = 0;
  });
});

describe("a rollback that a webhook denies", () => {
  it("is reported with the server's message beside the failure, and retried automatically and on request", async () => {
    const other = await TestEnvironment.create();
    let denying: AdmissionWebhook | undefined;
    try {
      await limitMemory(other, "8Gi");
      await other.startController();
      await other.createPipe({ name: "pipe", cores: 1, strategy: "Recreate" });
      await other.waitForCondition("Ready", "True");
      denying = await AdmissionWebhook.start(other, "ValidatingWebhookConfiguration", "pipe");
      denying.respond = (request) => (isRollback(request) ? deny(500, "no rollback now")() : allow());
      await other.requestSize(4);
      const reported = await waitFor(
        async () => {
          const stalled = conditionOf(await other.scaling(), "Stalled");
          return stalled?.message.includes("attempt 2, next at") ? stalled : undefined;
        },
        { what: "the status to report two attempts" },
      );
      expect(reported.reason).toBe("FailedCreate");
      expect(reported.message).toContain("maximum memory usage per Container is 8Gi");
      expect(reported.message).toMatch(/the rollback failed: .*no rollback now \(attempt 2, next at 2/);
      denying.respond = deny(400, "rollbacks are frozen");
      await waitFor(
        async () => conditionOf(await other.scaling(), "Stalled")?.message.includes("rollbacks are frozen"),
        { what: "the status to report the denial" },
      );
      denying.respond = allow;
      await other.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
      await waitFor(async () => (await other.pipe("pipe")).status?.availableReplicas === 1, {
        what: "the pipe to run again",
      });
      expect(resourcesOf(await other.pipe("pipe"))).toBe("1 4Gi 4Gi");
    } finally {
      await denying?.end();
      await other.end();
    }
  });

  function isRollback({ object }: AdmissionRequest): boolean {
    return JSON.parse(object.metadata.annotations[LAST_ROLLOUT_ANNOTATION] ?? "{}").isRollback === true;
  }
});

/** Returns if a write gives a pipe its size, or only records that the rollout is complete. */
function purposeOf({ object }: AdmissionRequest): "resize" | "record" {
  const { cameUp } = JSON.parse(object.metadata.annotations[LAST_ROLLOUT_ANNOTATION] ?? "{}");
  return cameUp === true ? "record" : "resize";
}

/** A service with one pipe of one core, which is the default of its tier. */
async function createSlowService(id: UUID, name: string): Promise<void> {
  const { organizationId, pipes: namespace, records } = environment;
  await environment.create(CONFIG_MAPS, records, serviceConfigMap({ id, organizationId, name, namespace }));
  invariants.accept(1, id);
  await environment.createPipe({ name, serviceId: id, cores: 1 });
}

async function askForFourCores(serviceId: UUID): Promise<void> {
  invariants.accept(4, serviceId);
  await environment.client.json({
    method: "PATCH",
    path: objectPath(PIPE_SCALINGS, environment.pipes, serviceId),
    patchType: "application/merge-patch+json",
    body: { spec: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 } },
  });
}

async function isReady(serviceId: UUID): Promise<boolean> {
  const scaling = await environment.scaling(serviceId);
  const ready = conditionOf(scaling, "Ready");
  return ready?.status === "True" && ready.observedGeneration === scaling.metadata.generation;
}

interface ClusterRole {
  readonly kind: string;
  readonly rules: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[];
}

function isClusterRole(object: object): object is ClusterRole {
  return "kind" in object && object.kind === "ClusterRole";
}

function withoutPatchOfDeployments(object: object): object {
  if (!isClusterRole(object)) return object;
  const rules = object.rules.map((rule) =>
    rule.resources.includes("deployments")
      ? { ...rule, verbs: rule.verbs.filter((verb) => verb !== "patch") }
      : rule,
  );
  return { ...object, rules };
}

async function mayPatchDeployments(): Promise<boolean> {
  const review = await environment.client.json<{ readonly status: { readonly allowed: boolean } }>({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: {
        user: `system:serviceaccount:${environment.records}:${accountName("controller")}`,
        resourceAttributes: {
          namespace: environment.pipes,
          verb: "patch",
          group: "apps",
          resource: "deployments",
        },
      },
    },
  });
  return review.status.allowed;
}
