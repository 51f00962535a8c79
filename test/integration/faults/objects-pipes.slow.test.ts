import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import { PipeScalingWriter } from "../../../src/api/cluster/pipe-scaling-writer.ts";
import { toPipeScalingView } from "../../../src/api/cluster/views.ts";
import { LAST_ROLLOUT_ANNOTATION, RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { resourcesOf } from "../../support/test-environment.ts";
import { it as base } from "./fixtures.ts";

const NAMES = ["pipe-a", "pipe-b", "pipe-c"];
const OF_ONE_CORE = "1 4Gi 4Gi";
const OF_FOUR_CORES = "4 16Gi 16Gi";
/** So slow that a test can act during a rollout, also on a busy machine. */
const SLOWLY = { podAnnotations: { [START_AFTER_ANNOTATION]: "8s" } };

const PIPES = NAMES.map((name) => ({ name }));
const SLOW_PIPES = NAMES.map((name) => ({ ...SLOWLY, name }));

const it = base
  .extend("sizeOf", ({ environment }) => async (name: string): Promise<string> => {
    return resourcesOf(await environment.pipe(name));
  })
  /** Waits for the first pipe of four cores, whichever it is. */
  .extend("canary", ({ sizeOf }) => (): Promise<string> => {
    const resized = async () => NAMES[(await Promise.all(NAMES.map(sizeOf))).indexOf(OF_FOUR_CORES)];
    return waitFor(resized, { what: "a pipe of four cores" });
  })
  .extend("settled", ({ invariants }) => async (cores: number): Promise<void> => {
    await invariants.settled(cores, { quietMs: 1000 });
    await invariants.end();
  });

describe("a pipe", () => {
  it("is left to another writer that keeps setting its size, until a retry is requested", async ({
    environment,
    startPipes,
    requestSize,
    sizeOf,
    settled,
  }) => {
    await startPipes([{ name: "pipe-a" }]);
    await requestSize(4);
    await environment.waitForCondition("Ready", "True");
    const setToOne = () =>
      environment.patchPipe("pipe-a", {
        spec: {
          template: { spec: { containers: [{ name: "pipe", resources: { requests: { cpu: "1" } } }] } },
        },
      });
    await setToOne();
    await waitFor(async () => (await sizeOf("pipe-a")) === OF_FOUR_CORES, { what: "its size to be back" });
    await setToOne();
    await environment.waitForCondition("Stalled", "True", "FieldConflict");
    expect(await sizeOf("pipe-a")).toBe("1 16Gi 16Gi");
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await settled(4);
  });

  it("gets the size as a new pipe if it is deleted and created again during a rollout", async ({
    environment,
    startPipes,
    requestSize,
    canary,
    settled,
  }) => {
    await startPipes(SLOW_PIPES);
    await requestSize(4);
    const name = await canary();
    const { metadata } = await environment.pipe(name);
    const path = objectPath(DEPLOYMENTS, environment.pipes, name);
    await environment.client.json({ method: "DELETE", path });
    await environment.createPipe({ name, cores: 1 });
    await settled(4);
    const again = await environment.pipe(name);
    expect(again.metadata.uid).not.toBe(metadata.uid);
    expect(JSON.parse(again.metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "")).toMatchObject({
      attempts: 1,
    });
  });

  it("continues its rollout after its owner paused it for longer than the timeout", async ({
    environment,
    startPipes,
    requestSize,
    canary,
    settled,
  }) => {
    // Much longer than a rollout, also on a busy machine.
    const rolloutTimeoutMs = 30_000;
    // With one replica, a paused rollout would still complete.
    const podAnnotations = { [START_AFTER_ANNOTATION]: "4s" };
    const pipes = NAMES.map((name) => ({ name, replicas: 2, podAnnotations }));
    await startPipes(pipes, { rolloutTimeoutMs });
    await requestSize(4);
    const name = await canary();
    const { metadata } = await environment.patchPipe(name, { spec: { paused: true } });
    const { startedAtMs } = JSON.parse(metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "");
    await waitFor(
      async () => {
        const { status } = await environment.scaling();
        const isNamed = status?.conditions?.[0]?.message.includes(`Paused by their owner: ${name}`);
        return isNamed === true && Date.now() > startedAtMs + rolloutTimeoutMs;
      },
      { what: "the pause to be reported after the timeout of the rollout" },
    );
    // In addition to the pause, because the judge considers a write that only resumes as one of the controller.
    await environment.patchPipe(name, {
      metadata: { annotations: { resumed: "by its owner" } },
      spec: { paused: null },
    });
    await settled(4);
  });

  it("gets the size immediately without replicas, and has it when it is scaled up again", async ({
    environment,
    startPipes,
    requestSize,
    sizeOf,
    canary,
    settled,
  }) => {
    await startPipes(SLOW_PIPES);
    await environment.patchPipe("pipe-c", { spec: { replicas: 0 } });
    await waitFor(async () => (await environment.pipe("pipe-c")).status?.replicas === undefined, {
      what: "its pods to be deleted",
    });
    await requestSize(4);
    await canary();
    await waitFor(async () => (await sizeOf("pipe-c")) === OF_FOUR_CORES, { what: "its size" });
    // The status is written after the pipe.
    const { status } = await environment.waitForCondition("Ready", "False");
    expect(status?.pipes?.updated).toBeLessThan(3);
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-c", { spec: { replicas: 2 } });
    await settled(4);
  });

  it("gets the requested size even if its annotation has a generation that never existed", async ({
    environment,
    startPipes,
    requestSize,
    settled,
  }) => {
    await startPipes(PIPES);
    await requestSize(2);
    await environment.waitForCondition("Ready", "True");
    const attempt = JSON.parse(
      (await environment.pipe("pipe-b")).metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "",
    );
    const ahead = JSON.stringify({ ...attempt, scalingGeneration: 1000 });
    await environment.patchPipe(
      "pipe-b",
      { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: ahead } } },
      CONTROLLER_FIELD_MANAGER,
    );
    await requestSize(4);
    await settled(4);
  });

  it("gets the size if it is added during a rescale", async ({
    environment,
    startPipes,
    requestSize,
    canary,
    settled,
  }) => {
    await startPipes(SLOW_PIPES);
    await requestSize(4);
    await canary();
    await environment.createPipe({ name: "pipe-new", cores: 1 });
    await settled(4);
    expect((await environment.scaling()).status?.pipes?.summary).toBe("4/4");
  });
});

describe("a service", () => {
  it("applies only the last requested size when it is resumed after a suspension during a rescale", async ({
    environment,
    startPipes,
    requestSize,
    sizeOf,
    canary,
    settled,
  }) => {
    await startPipes(SLOW_PIPES);
    await requestSize(4);
    const name = await canary();
    await environment.patchScaling({ suspend: true });
    await environment.waitForCondition("Ready", "Unknown", "Suspended");
    await waitFor(async () => (await environment.scaling()).status?.pipes?.updated === 1, {
      what: "the rollouts in progress to end",
    });
    await environment.createPipe({ name: "pipe-new", cores: 1 });
    await environment.requestSize(8);
    await requestSize(2);
    await waitFor(async () => (await environment.scaling()).status?.pipes?.summary === "0/4", {
      what: "the controller to observe the last request",
    });
    const others = NAMES.filter((each) => each !== name);
    expect(await Promise.all(others.map(sizeOf))).toEqual([OF_ONE_CORE, OF_ONE_CORE]);
    expect(await sizeOf(name)).toBe(OF_FOUR_CORES);
    await environment.patchScaling({ suspend: null });
    await settled(2);
  });

  it("is suspended if its PipeScaling is deleted during a rescale, and continues when people resume it", async ({
    environment,
    sizeOf,
    startPipes,
    requestSize,
    canary,
    settled,
  }) => {
    await startPipes(SLOW_PIPES);
    await requestSize(4);
    await canary();
    const { metadata } = await environment.scaling();
    // Starting kubectl could take longer than the rollout of the canary.
    const path = objectPath(PIPE_SCALINGS, environment.pipes, environment.serviceId);
    await environment.client.json({ method: "DELETE", path });
    const again = await waitFor(() => environment.scaling().catch(() => undefined), {
      what: "the PipeScaling to be created again",
    });
    expect(again.metadata.uid).not.toBe(metadata.uid);
    // The pipes show only that one of them got this size, and the others did not.
    expect(again.spec).toEqual({ replicaCpuMillicores: 4000, replicaMemoryGb: 16, suspend: true });
    await environment.waitForCondition("Ready", "Unknown", "Suspended");
    expect((await Promise.all(NAMES.map(sizeOf))).filter((size) => size === OF_FOUR_CORES)).toHaveLength(1);
    await environment.patchScaling({ suspend: false });
    await settled(4);
  });

  it("gets the last of 200 requested sizes, attributed to its request, while its tier changes", async ({
    environment,
    invariants,
    startPipes,
    settled,
  }) => {
    const requests = 200;
    await startPipes(PIPES);
    const writer = new PipeScalingWriter(environment.client);
    const scaling = toPipeScalingView(await environment.scaling());
    const write = async (index: number) => {
      const cores = 1 + (index % 8);
      // More than two, the default of the tiers that the test sets meanwhile.
      for (let changes = 0; changes < 3; changes += 1) {
        invariants.accept(Math.min(2, cores));
        invariants.accept(cores);
      }
      await writer.write(scaling, sizeOfCores(cores), {
        requestId: `request-${index}`,
        apiKey: "key",
        requestedAt: new Date().toISOString(),
      });
    };
    const changeTiers = async () => {
      for (const tier of ["small", "scale", "small", "enterprise"]) await environment.setTier(tier);
    };
    const begun = performance.now();
    const changing = changeTiers();
    for (let index = 0; index < requests; index += 1) await write(index);
    await changing;
    await settled(1 + ((requests - 1) % 8));
    const tenths = Math.ceil((performance.now() - begun) / 100);
    const { status } = await environment.scaling();
    expect(status?.propagation?.requestId).toBe(`request-${requests - 1}`);
    expect(status?.tier).toBe("enterprise");
    const patches = [
      ...(await environment.scrape()).matchAll(/^rest_client_requests_total\{.*method="PATCH".*\} (\d+)$/gm),
    ];
    const sum = patches.reduce((total, [, count]) => total + Number(count), 0);
    expect(sum).toBeGreaterThan(0);
    // At most one reconciliation per 100 ms, which resizes one or two pipes and writes the status.
    expect(sum).toBeLessThan(30 + 4 * tenths);
  });
});
