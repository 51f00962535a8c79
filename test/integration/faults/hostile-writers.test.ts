import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import type { PipeFailure, PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import type { Deployment } from "../../../src/kube/objects.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { parseClusterCalls } from "../../support/cluster-calls.ts";
import { limitMemory } from "../../support/limits.ts";
import { AdmissionWebhook, allow, removeAnnotation } from "../../support/servers/admission-webhook.ts";
import { conditionOf, resourcesOf, type TestEnvironment } from "../../support/test-environment.ts";
import { it } from "./fixtures.ts";

/** Checks the number of successful PATCHes of the last controller. */
async function expectFewPatches(environment: TestEnvironment, { least }: { least: number }): Promise<void> {
  const calls = parseClusterCalls(await environment.scrape());
  const patches = (of: string) =>
    calls
      .filter(({ verb, resource, code }) => verb === "patch" && resource === of && code.startsWith("20"))
      .reduce((sum, { count }) => sum + count, 0);
  expect(patches("deployments")).toBeGreaterThanOrEqual(least);
  expect(patches("deployments")).toBeLessThanOrEqual(4);
  expect(patches("pipescalings/status")).toBeGreaterThan(0);
  expect(patches("pipescalings/status")).toBeLessThanOrEqual(20);
}

async function countReconciliations(environment: TestEnvironment): Promise<number> {
  const counts = (await environment.scrape()).matchAll(/^controller_runtime_reconcile_total\{.*\} (\d+)$/gm);
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

function failureOf({ status }: PipeScaling): PipeFailure | undefined {
  return status?.failures?.[0];
}

function replacePipe({ client, pipes }: TestEnvironment, manifest: object): Promise<Deployment> {
  return client.json({
    method: "PUT",
    path: objectPath(DEPLOYMENTS, pipes, "pipe"),
    query: { fieldManager: "replacer" },
    body: manifest,
  });
}

/** Replaces the Deployment with a stored manifest every 200 ms, as some deployment tools do. */
async function replaceAgainAndAgain(
  environment: TestEnvironment,
  manifest: object,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await replacePipe(environment, manifest);
    await delay(200);
  }
}

/** The manifest of the pipe, without what the cluster or the controller added. */
function manifestOf({ metadata, spec }: Deployment): object {
  const { name, namespace, labels } = metadata;
  return { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace, labels }, spec };
}

describe("a writer that replaces the whole Deployment every 200 ms", () => {
  it("is reported as a field conflict after three resizes, and gets no more than a few writes", async ({
    environment,
  }) => {
    await environment.createPipe({ name: "pipe", cores: 1 });
    const manifest = manifestOf(await environment.pipe("pipe"));
    await environment.startController({}, { timeouts: { fieldConflictMs: [0, 1000, 4000] } });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    const ending = new AbortController();
    const replacing = replaceAgainAndAgain(environment, manifest, ending.signal);
    const isGivenUp = async () => {
      const scaling = await environment.scaling();
      const { reason, attempts = 0 } = failureOf(scaling) ?? {};
      return reason === "FieldConflict" && attempts >= 3 ? scaling : undefined;
    };
    const conflict = await waitFor(isGivenUp, { what: "a field conflict after the third resize" }).finally(
      () => ending.abort(),
    );
    await replacing;
    expect(conditionOf(conflict, "Ready")).toMatchObject({ status: "False", reason: "FieldConflict" });
    expect(conditionOf(conflict, "Ready")?.message).toContain('another writer, "replacer",');
    expect(resourcesOf(await environment.pipe("pipe"))).toBe("1 4Gi 4Gi");
    const resizes = environment.log.filter(({ msg, size }) => msg === "resize" && size === "4000m/16Gi");
    expect(resizes).toHaveLength(3);
    // One more may have adopted the first size.
    await expectFewPatches(environment, { least: 3 });
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await environment.waitForCondition("Ready", "True");
  });
});

describe("a writer that replaces the whole Deployment after a rollback", () => {
  it("does not make a controller stop the pipe again for the size that failed", async ({ environment }) => {
    await limitMemory(environment, "8Gi");
    await environment.createPipe({ name: "pipe", cores: 1, strategy: "Recreate" });
    const manifest = manifestOf(await environment.pipe("pipe"));
    const stop = await environment.startController();
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    const isRolledBack = async () => {
      const { status } = await environment.pipe("pipe");
      const isBack = resourcesOf(await environment.pipe("pipe")) === "2 8Gi 8Gi";
      return isBack && status?.availableReplicas === 1;
    };
    await waitFor(isRolledBack, { what: "the pipe to run two cores again" });
    await environment.waitForCondition("Stalled", "True", "FailedCreate");
    await stop();
    await replacePipe(environment, manifest);
    await environment.startController();
    // Its status shows that the new controller has decided.
    await environment.createPipe({ name: "later", cores: 1 });
    await waitFor(
      async () => {
        const pending = (await environment.scaling()).status?.pipes?.pending;
        return pending?.some(({ name, state }) => name === "later" && state === "Waiting");
      },
      { what: "the other pipe to wait" },
    );
    expect((await environment.scaling()).status?.pipes?.pending).toMatchObject([
      { name: "pipe", state: "Failed" },
      { name: "later", message: "waiting because of the failure" },
    ]);
    expect(resourcesOf(await environment.pipe("pipe"))).toBe("1 4Gi 4Gi");
    const resizes = environment.log.filter(({ msg, size }) => msg === "resize" && size === "4000m/16Gi");
    expect(resizes).toHaveLength(1);
  });
});

describe("a webhook that removes the controller's annotation", () => {
  it("is reported as a field conflict with few writes, also after a restart, until it lets a retry through", async ({
    environment,
  }) => {
    await environment.createPipe({ name: "pipe", cores: 1 });
    const stop = await environment.startController();
    await environment.waitForCondition("Ready", "True");
    const webhook = await AdmissionWebhook.start(environment, "MutatingWebhookConfiguration", "pipe");
    try {
      webhook.respond = removeAnnotation;
      await environment.requestSize(4);
      await expectReportWithFewWrites(environment);
      await stop();
      const written = webhook.requests.length;
      await environment.startController();
      await waitFor(() => webhook.requests.length > written, { what: "the new controller to write" });
      await expectReportWithFewWrites(environment);
      expect(resourcesOf(await environment.pipe("pipe"))).toBe("4 16Gi 16Gi");
      webhook.respond = allow;
      await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
      await environment.waitForCondition("Ready", "True");
    } finally {
      await webhook.end();
    }
  });

  it("does not keep a Recreate pipe from being rolled back when its new pods cannot be created", async ({
    environment,
  }) => {
    await limitMemory(environment, "8Gi");
    await environment.createPipe({ name: "pipe", cores: 1, strategy: "Recreate" });
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    const webhook = await AdmissionWebhook.start(environment, "MutatingWebhookConfiguration", "pipe");
    try {
      webhook.respond = removeAnnotation;
      await environment.requestSize(4);
      await environment.waitForCondition("Stalled", "True", "FailedCreate");
      const isBack = async () => {
        const pipe = await environment.pipe("pipe");
        return resourcesOf(pipe) === "1 4Gi 4Gi" && pipe.status?.availableReplicas === 1;
      };
      await waitFor(isBack, { what: "the pipe to run again" });
    } finally {
      await webhook.end();
    }
  });

  async function expectReportWithFewWrites(environment: TestEnvironment): Promise<void> {
    const conflict = await environment.waitForCondition("Ready", "False", "FieldConflict");
    expect(conditionOf(conflict, "Ready")?.message).toContain(LAST_ROLLOUT_ANNOTATION);
    const hasLongDelay = async () => {
      const { nextRetryAt = "" } = failureOf(await environment.scaling()) ?? {};
      return Date.parse(nextRetryAt) > Date.now() + 5000;
    };
    await waitFor(hasLongDelay, { what: "the next attempt to be seconds later" });
    // The controller must respond with writes neither to the changes of the rollout nor to others.
    await waitFor(async () => (await environment.pipe("pipe")).status?.updatedReplicas === 1, {
      what: "the pod",
    });
    const reconciled = await countReconciliations(environment);
    for (let count = 0; count < 20; count += 1)
      await environment.patchPipe("pipe", { metadata: { annotations: { note: `${count}` } } });
    await waitFor(async () => (await countReconciliations(environment)) > reconciled, {
      what: "a reconciliation",
    });
    await expectFewPatches(environment, { least: 1 });
  }
});
