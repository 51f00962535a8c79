import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import {
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  RETRY_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import { AdmissionWebhook, allow } from "../../support/servers/admission-webhook.ts";
import { conditionOf, resourcesOf, type TestEnvironment } from "../../support/test-environment.ts";
import { it } from "./fixtures.ts";

const NAMES = ["pipe-a", "pipe-b", "pipe-c"];
const OF_FOUR_CORES = "4 16Gi 16Gi";
/** A rollout that is still in progress when the next reconciliation comes. */
const SLOWLY = { podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } };
const NEVER = { [START_AFTER_ANNOTATION]: "1h" };

function isRunningFour(pipe: Deployment): boolean {
  const { observedGeneration = 0, updatedReplicas, availableReplicas } = pipe.status ?? {};
  const isSeen = observedGeneration >= (pipe.metadata.generation ?? 0);
  return isSeen && resourcesOf(pipe) === OF_FOUR_CORES && updatedReplicas === 1 && availableReplicas === 1;
}

/** Time at which the controller resized the pipe; Infinity if it did not. */
function resizedAt({ metadata }: Deployment): number {
  const { startedAtMs } = JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "{}");
  return startedAtMs ?? Number.POSITIVE_INFINITY;
}

/** Sets an image that never starts, as the owner of the pipe would. */
async function breakImage(environment: TestEnvironment, name: string): Promise<void> {
  const containers = [{ name: "pipe", image: "registry.example/pipe:broken" }];
  const template = { metadata: { annotations: NEVER }, spec: { containers } };
  await environment.patchPipe(name, { spec: { template } });
  await waitFor(async () => (await environment.pipe(name)).status?.replicas === 2, {
    what: `the pod of ${name} with the broken image`,
  });
}

describe("a pipe without replicas", () => {
  it("does not prove a size: one running pipe is still the canary of the others", async ({
    invariants,
    startPipes,
    requestSize,
  }) => {
    const [idle, ...others] = NAMES.map((name) => ({ ...SLOWLY, name }));
    await startPipes([{ ...idle, name: "pipe-a", replicas: 0 }, ...others]);
    await requestSize(4);
    await invariants.settled(4, { quietMs: 300 });
    // Throws if two pipes rolled at once to a size that no running pipe had proven.
    await invariants.end();
  });

  it("is not ready when its first pods never come up after a resize", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
  }) => {
    await startPipes([{ name: "pipe-a", replicas: 0, podAnnotations: NEVER }]);
    await requestSize(4);
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-a", { spec: { replicas: 1 } });
    await environment.waitForCondition("Ready", "False", "Progressing");
    await invariants.quiet(500);
    expect(conditionOf(await environment.scaling(), "Ready")).toMatchObject({
      status: "False",
      reason: "Progressing",
    });
    await invariants.end();
  });
});

describe("a pipe that was created without replicas, with the default size of the tier", () => {
  it("is not ready while its first pods do not come up, although the controller never resized it", async ({
    environment,
    invariants,
    startPipes,
  }) => {
    await startPipes([{ name: "pipe-a", replicas: 0, podAnnotations: NEVER }]);
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-a", { spec: { replicas: 1 } });
    await environment.waitForCondition("Ready", "False", "Progressing");
    await waitFor(async () => (await environment.pipe("pipe-a")).status?.updatedReplicas === 1, {
      what: "the Deployment controller to create the pod",
    });
    await invariants.quiet(500);
    const ready = conditionOf(await environment.scaling(), "Ready");
    expect(ready).toMatchObject({ status: "False", reason: "Progressing" });
    await environment.patchPipe("pipe-a", {
      spec: { template: { metadata: { annotations: { [START_AFTER_ANNOTATION]: "1s" } } } },
    });
    await environment.waitForCondition("Ready", "True");
    await invariants.end();
  });
});

describe("a pipe whose image its owner broke before the rescale", () => {
  it("is not the canary, and the healthy pipes get the size", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
  }) => {
    await startPipes(NAMES.map((name) => ({ ...SLOWLY, name })));
    await breakImage(environment, "pipe-a");
    await requestSize(4);
    for (const name of ["pipe-b", "pipe-c"])
      await waitFor(async () => isRunningFour(await environment.pipe(name)), {
        what: `${name} to run four cores`,
      });
    const [broken = 0, ...healthy] = (await Promise.all(NAMES.map((name) => environment.pipe(name)))).map(
      resizedAt,
    );
    expect(broken).toBeGreaterThan(Math.min(...healthy));
    await invariants.end();
  });
});

describe("three pipes whose images their owner broke", () => {
  it.for([
    // The pods show that the pipes run the size, so they have proven it.
    ["the controller sees", true, "because the limit of concurrent resizes and rollouts is reached"],
    ["the controller does not see", false, "to prove the size"],
  ] as const)(
    "and whose pods %s hold back a new pipe until the rollout timeout, which names them",
    async ([, isSeen, because], { environment, invariants, startPipes }) => {
      const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
      await startPipes(
        NAMES.map((name) => ({ name, ...(isSeen ? { podLabels } : {}) })),
        { rolloutTimeoutMs: 20_000 },
      );
      for (const name of NAMES) await breakImage(environment, name);
      // Otherwise, a pipe with another size would wait for the first request.
      await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
      await environment.createPipe({ name: "pipe-new", cores: 2 });
      const message = await waitFor(
        async () => {
          const ready = conditionOf(await environment.scaling(), "Ready");
          return ready?.message.includes("waiting") ? ready.message : undefined;
        },
        { what: "the reason why the new pipe waits" },
      );
      expect(message).toMatch(new RegExp(`1 waiting for pipe-a, pipe-b, pipe-c,? ${because}\\.`));
      expect(resourcesOf(await environment.pipe("pipe-new"))).toBe("2 8Gi 8Gi");
      await waitFor(async () => resourcesOf(await environment.pipe("pipe-new")) === "1 4Gi 4Gi", {
        what: "the size of the new pipe",
      });
      await invariants.end();
    },
  );
});

describe("a pipe whose writes always fail", () => {
  it("does not block the other pipes of the service, and gets the size when writes succeed", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
  }) => {
    await startPipes(NAMES.map((name) => ({ name })));
    const webhook = await AdmissionWebhook.start(environment, "ValidatingWebhookConfiguration", "pipe-a");
    try {
      webhook.respond = ({ name }) =>
        name === "pipe-a"
          ? { allowed: false, status: { code: 500, message: "out of order" } }
          : { allowed: true };
      await requestSize(4);
      for (const name of ["pipe-b", "pipe-c"])
        await waitFor(async () => isRunningFour(await environment.pipe(name)), {
          what: `${name} to run four cores`,
        });
      expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
      const { status } = await environment.scaling();
      expect(status?.failures).toMatchObject([{ pipe: "pipe-a", reason: "WriteFailed" }]);
      webhook.respond = allow;
      await invariants.settled(4, { quietMs: 300 });
      await invariants.end();
    } finally {
      await webhook.end();
    }
  });
});
