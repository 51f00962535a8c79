import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import type { PipeFailure, PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import { parseClusterCalls } from "../../support/cluster-calls.ts";
import { limitMemory } from "../../support/limits.ts";
import { AdmissionWebhook, allow, removeAnnotation } from "../../support/servers/admission-webhook.ts";
import { conditionOf, resourcesOf, type TestEnvironment } from "../../support/test-environment.ts";
import { it } from "./fixtures.ts";

/** Checks the number of successful PATCHes of the last controller. */
async function expectFewPatches(
  environment: TestEnvironment,
  { least, most }: { readonly least: number; readonly most: number },
): Promise<void> {
  const calls = parseClusterCalls(await environment.scrape());
  const patches = (of: string) =>
    calls
      .filter(({ verb, resource, code }) => verb === "patch" && resource === of && code.startsWith("20"))
      .reduce((sum, { count }) => sum + count, 0);
  expect(patches("deployments")).toBeGreaterThanOrEqual(least);
  expect(patches("deployments")).toBeLessThanOrEqual(most);
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

/**
 * Replaces the Deployment with a stored manifest, as some deployment tools do, when its size differs. A write every
 * 200 ms would conflict with most writes of the controller on a busy machine, after which it waits longer each time.
 */
async function replaceAgainAndAgain(
  environment: TestEnvironment,
  manifest: Pick<Deployment, "spec">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const isOther = resourcesOf(await environment.pipe("pipe")) !== resourcesOf(manifest);
    if (isOther) await replacePipe(environment, manifest);
    await delay(200);
  }
}

/** The manifest of the pipe, without what the cluster or the controller added. */
function manifestOf({ metadata, spec }: Deployment) {
  const { name, namespace, labels } = metadata;
  return { apiVersion: "apps/v1", kind: "Deployment", metadata: { name, namespace, labels }, spec };
}

describe("a writer that replaces the whole Deployment after each resize", () => {
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
    // A resize that is refused because the Deployment changes at the same time counts, too.
    expect([2, 3]).toContain(resizes.length);
    // One more records the adoption, and one each rollout that completes in between.
    await expectFewPatches(environment, { least: resizes.length, most: 1 + 2 * resizes.length });
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await environment.waitForCondition("Ready", "True");
  });
});

describe("a writer that replaces the whole Deployment after a rollback", () => {
  it("does not make the controller stop the pipe again for the size that failed", async ({ environment }) => {
    const { manifest } = await rollBack(environment);
    await replacePipe(environment, manifest);
    await environment.createPipe({ name: "later", cores: 1 });
    await expectFailedAndWaiting(environment);
    expect(resourcesOf(await environment.pipe("pipe"))).toBe("1 4Gi 4Gi");
    expect(resizesToFourCores(environment)).toBe(1);
  });

  it("makes a new controller, which does not know the failure, try the size once and roll it back", async ({
    environment,
  }) => {
    const { manifest, stop } = await rollBack(environment);
    await stop();
    await replacePipe(environment, manifest);
    await environment.startController();
    await waitFor(() => resizesToFourCores(environment) === 2, { what: "another resize" });
    await waitFor(() => isRunning(environment, "1 4Gi 4Gi"), { what: "the pipe to run one core again" });
    await environment.createPipe({ name: "later", cores: 1 });
    await expectFailedAndWaiting(environment);
    expect(failureOf(await environment.scaling())).toMatchObject({ reason: "FailedCreate", attempts: 1 });
    expect(resizesToFourCores(environment)).toBe(2);
    expect(resourcesOf(await environment.pipe("later"))).toBe("1 4Gi 4Gi");
  });

  /** A Recreate pipe of one core that could be resized to two, but not to four. */
  async function rollBack(environment: TestEnvironment): Promise<{
    /** The one of its owner, with one core. */
    readonly manifest: object;
    /** Stops the controller. */
    readonly stop: () => Promise<void>;
  }> {
    await limitMemory(environment, "8Gi");
    await environment.createPipe({ name: "pipe", cores: 1, strategy: "Recreate" });
    const manifest = manifestOf(await environment.pipe("pipe"));
    const stop = await environment.startController();
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Stalled", "True", "FailedCreate");
    await waitFor(() => isRunning(environment, "2 8Gi 8Gi"), { what: "the pipe to run two cores again" });
    return { manifest, stop };
  }

  async function isRunning(environment: TestEnvironment, size: string): Promise<boolean> {
    const pipe = await environment.pipe("pipe");
    const { observedGeneration = 0, updatedReplicas, availableReplicas } = pipe.status ?? {};
    const isSeen = observedGeneration >= (pipe.metadata.generation ?? 0);
    return isSeen && resourcesOf(pipe) === size && updatedReplicas === 1 && availableReplicas === 1;
  }

  async function expectFailedAndWaiting(environment: TestEnvironment): Promise<void> {
    const pending = async () => (await environment.scaling()).status?.pipes?.pending;
    const isWaiting = async () =>
      (await pending())?.some(({ name, state, message }) => {
        return name === "later" && state === "Waiting" && message === "waiting because of the failure";
      });
    await waitFor(isWaiting, { what: "the other pipe to wait because of the failure" });
    expect(await pending()).toMatchObject([{ name: "pipe", state: "Failed" }, { name: "later" }]);
  }

  function resizesToFourCores({ log }: TestEnvironment): number {
    return log.filter(({ msg, pipe, size }) => msg === "resize" && pipe === "pipe" && size === "4000m/16Gi")
      .length;
  }
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
      // The resize, and usually the adoption before it.
      await expectReport(environment, { writes: 2 });
      await stop();
      const written = webhook.requests.length;
      await environment.startController();
      await waitFor(() => webhook.requests.length > written, { what: "the new controller to write" });
      await expectReport(environment, { writes: 1 });
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

  /** Checks the last controller, which writes the annotation again only when that is requested. */
  async function expectReport(
    environment: TestEnvironment,
    { writes }: { readonly writes: number },
  ): Promise<void> {
    const conflict = await environment.waitForCondition("Ready", "False", "FieldConflict");
    expect(conditionOf(conflict, "Ready")?.message).toContain(LAST_ROLLOUT_ANNOTATION);
    expect(failureOf(conflict)?.nextRetryAt).toBeUndefined();
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
    await expectFewPatches(environment, { least: 1, most: writes });
  }
});
