import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Rights } from "../chart/rights.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";
import { Loaders } from "./stateful-loader.ts";
import { crashLastPod, expectRollback, SLOWER, start } from "./stateful-sets.ts";

const SLOW = { podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } };

let environment: TestEnvironment;
let loaders: Loaders;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  loaders = new Loaders(environment);
});
afterEach(() => environment.end());

describe("a StatefulSet of three pods", () => {
  it("goes on with the next controller if one ends in the middle", async () => {
    await loaders.create({ ...SLOWER });
    const stop = await start(environment);
    await environment.requestSize(4);
    await waitFor(async () => (await loaders.sizes()).includes("4"), {
      what: "the first pod of the new size",
    });
    await stop();
    expect(new Set(await loaders.sizes()).size).toBe(2);
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });
});

describe("a service with a Deployment and a StatefulSet", () => {
  const waits = (name: string, message: string) =>
    waitFor(
      async () =>
        (await environment.scaling()).status?.pipes?.pending?.some(
          (each) => each.name === name && each.message === message,
        ),
      { what: message },
    );

  it.each([
    ["StatefulSet", "a", "z", "z", "waiting for statefulset/a to prove the size"],
    ["Deployment", "z", "a", "statefulset/z", "waiting for a to prove the size"],
  ])("has a %s as its canary if its name is first", async (_, statefulSet, deployment, waiting, text) => {
    await loaders.create({ name: statefulSet, replicas: 2, ...SLOWER });
    await environment.createPipe({ name: deployment, cores: 1, ...SLOWER });
    await start(environment);
    await environment.requestSize(4);
    await waits(waiting, text);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes?.summary).toBe("2/2");
    expect([await loaders.sizes(statefulSet), await loaders.sizes(deployment)]).toEqual([["4", "4"], ["4"]]);
  });
});

describe("a StatefulSet whose pod of the new size does not become ready", () => {
  const readyMessage = async () => conditionOf(await environment.scaling(), "Ready")?.message ?? "";

  it("is rolled back with the policy OrderedReady, and only that pod is replaced", () =>
    expectRollback(environment, "OrderedReady"));

  it("gets a size that is requested meanwhile, although Kubernetes would wait for the pod", async () => {
    await loaders.create({ ...SLOWER });
    await start(environment);
    await environment.requestSize(4);
    const stuck = await crashLastPod(loaders);
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["2", "2", "2"]);
    expect(await loaders.uids()).not.toContain(stuck);
  });

  it("is cleaned up by the next controller if the first one ended after the rollback", async () => {
    await loaders.create({ ...SLOWER });
    const stop = await start(environment, { rolloutTimeoutMs: 8000 });
    const rights = await Rights.of("controller", environment);
    try {
      await rights.without("delete pods", async () => {
        await environment.requestSize(4);
        const stuck = await crashLastPod(loaders);
        await expect
          .poll(readyMessage, { timeout: 60_000 })
          .toContain("the size that failed, because it could not be deleted");
        await stop();
        expect(await loaders.uids()).toContain(stuck);
      });
    } finally {
      await rights.close();
    }
    await environment.startController({ rolloutTimeoutMs: 8000 });
    await waitFor(async () => (await loaders.sizes()).join() === "1,1,1", {
      what: "the old size of all pods",
    });
  });
});

describe("a StatefulSet whose first pod crashes with a size that worked before", () => {
  it.each(["OrderedReady", "Parallel"] as const)(
    "gets another size with the policy %s, although Kubernetes may wait for the pod",
    async (podManagementPolicy) => {
      await loaders.create({ podManagementPolicy, ...SLOW });
      await start(environment, {}, { timeouts: { stuckPodMs: 1000 } });
      await environment.requestSize(2);
      await loaders.ready();
      await loaders.patchPod("loader-0", { labels: { [NEVER_READY_LABEL]: "true" } });
      await waitFor(async () => (await loaders.read()).status?.availableReplicas === 2, {
        what: "the crash of the first pod",
      });
      await environment.requestSize(4);
      await loaders.ready();
      expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
    },
  );
});
