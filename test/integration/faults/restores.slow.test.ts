import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import {
  LAST_ROLLOUT_ANNOTATION,
  REVISION_ANNOTATION,
  SERVICE_LABEL,
} from "../../../src/controller/names.ts";
import { TIMEOUTS } from "../../../src/controller/timeouts.ts";
import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import type { PipeScalingSpec } from "../../../src/crd/pipe-scaling.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, EVENTS, objectPath } from "../../../src/kube/paths.ts";
import { serviceConfigMap } from "../../../src/records/service.ts";
import { limitMemory } from "../../support/limits.ts";
import { conditionOf, resourcesOf, type TestEnvironment } from "../../support/test-environment.ts";
import { it as base } from "./fixtures.ts";

const HOUR_MS = 3_600_000;

const it = base
  .extend("settled", ({ invariants }) => async (cores: number): Promise<void> => {
    await invariants.settled(cores, { quietMs: 300 });
  })
  .extend("rescale", ({ requestSize, settled }) => async (cores: number): Promise<void> => {
    await requestSize(cores);
    await settled(cores);
  });

/** Runs kubectl in the namespace of the pipes. */
function inPipes(
  environment: TestEnvironment,
  args: readonly string[],
  input?: object | string,
): Promise<string> {
  const text = typeof input === "object" ? JSON.stringify(input) : input;
  return kubectl(
    environment.cluster,
    [...args, "-n", environment.pipes],
    text === undefined ? {} : { input: text },
  );
}

/** Revision of the Deployment: the number of its pod templates so far. */
async function revision(environment: TestEnvironment): Promise<number> {
  return Number((await environment.pipe("pipe")).metadata.annotations?.[REVISION_ANNOTATION]);
}

async function lastRollout(environment: TestEnvironment): Promise<Readonly<Record<string, unknown>>> {
  const { metadata } = await environment.pipe("pipe");
  return JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "{}");
}

async function isAnnotated(environment: TestEnvironment, name: string): Promise<boolean> {
  const { metadata } = await environment.pipe(name);
  return metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] !== undefined;
}

async function warnings(environment: TestEnvironment): Promise<readonly string[]> {
  const { items } = await environment.client.json<{
    readonly items: readonly (KubeObject & { readonly reason?: string; readonly regarding?: object })[];
  }>({
    path: collectionPath(EVENTS, environment.pipes),
    query: { fieldSelector: `type=Warning,regarding.name=${environment.serviceId}` },
  });
  return items.map(({ reason = "" }) => reason);
}

describe("a Deployment that is re-created from a backup with the annotation of an old rollout", () => {
  it("is treated as a new pipe: it has no timeout and no rollback, and gets the desired size", async ({
    environment,
    invariants,
    startPipes,
    settled,
    rescale,
  }) => {
    // Slower than the controller, which must see the rollout before it completes.
    await startPipes([{ name: "pipe", podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } }]);
    await rescale(4);
    const old = {
      ...(await lastRollout(environment)),
      startedAtMs: Date.now() - HOUR_MS,
    };
    await environment.patchPipe(
      "pipe",
      { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: JSON.stringify(old) } } },
      CONTROLLER_FIELD_MANAGER,
    );
    const backup = await inPipes(environment, ["get", "deployment", "pipe", "-o", "yaml"]);

    await inPipes(environment, ["delete", "deployment", "pipe"]);
    await inPipes(environment, ["create", "-f", "-"], backup);
    await settled(4);
    expect(await revision(environment)).toBe(1);

    await rescale(2);
    await inPipes(environment, ["delete", "deployment", "pipe"]);
    await inPipes(environment, ["create", "-f", "-"], backup);
    await settled(2);
    const { metadata } = await environment.pipe("pipe");
    expect(await lastRollout(environment)).toMatchObject({ deploymentUid: metadata.uid, attempts: 1 });
    expect(await warnings(environment)).toEqual([]);
    await invariants.end();
  });
});

describe("kubectl rollout undo", () => {
  it("brings back neither an old size nor the size that the old rollout replaced", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
    settled,
    rescale,
  }) => {
    await limitMemory(environment, "16Gi");
    await startPipes([{ name: "pipe", strategy: "Recreate" }]);
    await rescale(4);
    await rescale(2);
    const generation = async () => (await environment.pipe("pipe")).metadata.generation ?? 0;
    const before = await generation();
    await inPipes(environment, ["rollout", "undo", "deployment/pipe"]);
    // The revision may stay, because the resize can be faster than the Deployment controller.
    await waitFor(async () => (await generation()) >= before + 2, { what: "the undo, and a resize" });
    await settled(2);

    await requestSize(8);
    await environment.waitForCondition("Stalled", "True", "FailedCreate");
    await waitFor(async () => resourcesOf(await environment.pipe("pipe")) !== "8 32Gi 32Gi", {
      what: "a rollback",
    });
    expect(resourcesOf(await environment.pipe("pipe"))).toBe("2 8Gi 8Gi");
    await invariants.end();
  });
});

function manifest(environment: TestEnvironment, spec: PipeScalingSpec): object {
  const metadata = { name: environment.serviceId, namespace: environment.pipes };
  return { apiVersion: API_VERSION, kind: KIND, metadata, spec };
}

/** The delay of the re-creation in production. */
const AS_SHIPPED = { timeouts: TIMEOUTS };

describe("a PipeScaling", () => {
  it("has the new spec after kubectl replace --force, and so have the pipes", async ({
    environment,
    invariants,
    startPipes,
    settled,
    rescale,
  }) => {
    await startPipes([{ name: "pipe" }], {}, AS_SHIPPED);
    await rescale(4);
    invariants.accept(2);
    await inPipes(
      environment,
      ["replace", "--force", "-f", "-"],
      manifest(environment, { replicaCpuMillicores: 2000, replicaMemoryGb: 8 }),
    );
    await settled(2);
    expect((await environment.scaling()).spec).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
    await invariants.end();
  });

  it("is created again after 30 s with the size that the pipes run if it was deleted while suspended, and no pipe is resized", async ({
    environment,
    invariants,
    startPipes,
    rescale,
  }) => {
    await startPipes([{ name: "pipe" }], {}, AS_SHIPPED);
    await rescale(2);
    await environment.patchScaling({ replicaCpuMillicores: 8000, replicaMemoryGb: 32, suspend: true });
    await environment.waitForCondition("Ready", "Unknown", "Suspended");
    const before = await environment.pipe("pipe");
    const deletedAt = Date.now();
    await inPipes(environment, ["delete", "pipescaling", environment.serviceId]);
    const { metadata } = await environment.waitForCondition("Ready", "True");
    // Creation times are whole seconds.
    expect(Date.parse(metadata.creationTimestamp ?? "") - deletedAt).toBeGreaterThan(28_000);
    expect((await environment.scaling()).spec).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
    expect((await environment.pipe("pipe")).metadata.generation).toBe(before.metadata.generation);
    await invariants.end();
  });

  it("has the size of the pipes again if it was deleted while no controller ran, even without their annotations", async ({
    environment,
    invariants,
    settled,
    rescale,
  }) => {
    invariants.accept(1);
    const stop = await environment.startController();
    for (const name of ["pipe", "pipe-b"]) await environment.createPipe({ name, cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await rescale(4);
    await stop();
    const before = await revision(environment);
    await inPipes(environment, ["annotate", "deployment", "--all", `${LAST_ROLLOUT_ANNOTATION}-`]);
    await inPipes(environment, ["delete", "pipescaling", environment.serviceId]);
    await environment.startController();
    // A PipeScaling can be Ready shortly before the controller adopts the pipes.
    for (const name of ["pipe", "pipe-b"])
      await waitFor(() => isAnnotated(environment, name), { what: `the annotation of ${name}` });
    await settled(4);
    expect((await environment.scaling()).spec).toEqual({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 });
    expect(await revision(environment)).toBe(before);
    await invariants.end();
  });

  it("can be created by its owner for 30 s if it was deleted while no controller ran", async ({
    environment,
    invariants,
    settled,
    rescale,
  }) => {
    const { organizationId, pipes: namespace, records } = environment;
    invariants.accept(1);
    const stop = await environment.startController({}, AS_SHIPPED);
    await environment.createPipe({ name: "pipe", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await rescale(4);
    await stop();
    await inPipes(environment, ["delete", "pipescaling", environment.serviceId]);
    const other = randomUUID();
    const record = serviceConfigMap({ id: other, organizationId, name: "other", namespace });
    await environment.create(CONFIG_MAPS, records, record);
    // Nothing is written to a pipe whose container is unclear.
    const containers = ["pipe", "proxy"];
    await environment.createPipe({ name: "other", cores: 1, serviceId: other, containers });
    await environment.startController({}, AS_SHIPPED);
    await waitFor(() => environment.scaling(other), { what: "the PipeScaling of a new service" });
    const spec = { replicaCpuMillicores: 2000, replicaMemoryGb: 8 };
    invariants.accept(2);
    await inPipes(environment, ["create", "-f", "-"], manifest(environment, spec));
    await settled(2);
    expect((await environment.scaling()).spec).toEqual(spec);
    await invariants.end();
  });

  it("does not have the size of a pipe that moved in from another service before it was deleted", async ({
    environment,
  }) => {
    const { client, organizationId, serviceId, pipes: namespace, records } = environment;
    const other = randomUUID();
    const record = serviceConfigMap({ id: other, organizationId, name: "other", namespace });
    await environment.create(CONFIG_MAPS, records, record);
    const stop = await environment.startController();
    for (const name of ["pipe", "pipe-b"]) await environment.createPipe({ name, cores: 1 });
    await environment.createPipe({ name: "moved", cores: 1, serviceId: other });
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    await waitFor(() => environment.scaling(other), { what: "the PipeScaling of the other service" });
    // The newest size that a controller applied to any of the pipes.
    await client.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, namespace, other),
      patchType: "application/merge-patch+json",
      body: { spec: { replicaCpuMillicores: 8000, replicaMemoryGb: 32 } },
    });
    const sizes = async () => {
      const pipes = ["pipe", "pipe-b", "moved"].map((name) => environment.pipe(name));
      return (await Promise.all(pipes)).map(resourcesOf);
    };
    const expected = ["2 8Gi 8Gi", "2 8Gi 8Gi", "8 32Gi 32Gi"];
    await waitFor(async () => isDeepStrictEqual(await sizes(), expected), { what: "the sizes" });
    await stop();
    await environment.patchPipe("moved", { metadata: { labels: { [SERVICE_LABEL]: serviceId } } });
    await inPipes(environment, ["delete", "pipescaling", serviceId]);
    await environment.startController();
    const { spec } = await environment.waitForCondition("Ready", "Unknown", "Suspended");
    expect(spec).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8, suspend: true });
    expect(await sizes()).toEqual(expected);
  });
});

describe("an annotation by the owner during a rollout", () => {
  it("does not extend the timeout of the rollout", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
  }) => {
    await limitMemory(environment, "8Gi");
    await startPipes([{ name: "pipe" }], { rolloutTimeoutMs: 4000 });
    await requestSize(4);
    const ending = new AbortController();
    const annotating = annotateAgainAndAgain(environment, ending.signal);
    // Without the timeout, the rollout would fail after 30 s with another reason.
    const stalled = await environment.waitForCondition("Stalled", "True").finally(() => ending.abort());
    await annotating;
    expect(conditionOf(stalled, "Stalled")?.reason).toBe("RolloutTimeout");
    await waitFor(async () => resourcesOf(await environment.pipe("pipe")) === "1 4Gi 4Gi", {
      what: "the rollback",
    });
    await invariants.end();
  });

  it("does not keep a failed rollout from being rolled back after its PipeScaling was created again", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
  }) => {
    await limitMemory(environment, "8Gi");
    await startPipes([{ name: "pipe" }], { rolloutTimeoutMs: 4000 }, AS_SHIPPED);
    await requestSize(4);
    const isOf = (resources: string) => async () => resourcesOf(await environment.pipe("pipe")) === resources;
    await waitFor(isOf("4 16Gi 16Gi"), { what: "the resize" });
    await inPipes(environment, ["annotate", "deployment", "pipe", "example.com/note=1"]);
    const { spec = {} } = await environment.scaling();
    await inPipes(environment, ["replace", "--force", "-f", "-"], manifest(environment, spec));
    await environment.waitForCondition("Stalled", "True", "RolloutTimeout");
    await waitFor(isOf("1 4Gi 4Gi"), { what: "the rollback" });
    await invariants.end();
  });

  async function annotateAgainAndAgain(environment: TestEnvironment, signal: AbortSignal): Promise<void> {
    for (let count = 0; !signal.aborted; count += 1) {
      await inPipes(environment, [
        "annotate",
        "deployment",
        "pipe",
        "--overwrite",
        `example.com/note=${count}`,
      ]);
      await delay(100);
    }
  }
});
