import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, EVENTS } from "../../src/kube/paths.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";
import { Loaders, templateCpu } from "./stateful-loader.ts";
import { expectRollback, start } from "./stateful-sets.ts";

let environment: TestEnvironment;
let loaders: Loaders;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  loaders = new Loaders(environment);
});
afterEach(() => environment.end());

describe("a StatefulSet of three pods", () => {
  it("gets a larger and a smaller size by a rollout, and nothing else of it changes", async () => {
    await loaders.create();
    await start(environment);
    const before = await loaders.read();
    await environment.requestSize(4);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "1/1",
      resizedBy: { "statefulset/loader": "Rollout" },
    });
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
    await environment.requestSize(1);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["1", "1", "1"]);
    const after = await loaders.read();
    expect(after.spec).toEqual(before.spec);
    expect(after.status?.currentRevision).toBe(after.status?.updateRevision);
    expect(environment.errors).toEqual([]);
  });

  it("gets its size without replicas, and has it when it is scaled up", async () => {
    await loaders.create({ replicas: 0 });
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    expect(templateCpu(await loaders.read())).toBe("4");
    await loaders.patch({ replicas: 2 });
    await waitFor(async () => (await environment.scaling()).status?.replicas === 2, { what: "two replicas" });
    await environment.waitForCondition("Ready", "True");
    await waitFor(async () => (await loaders.sizes()).join() === "4,4", { what: "two pods of the new size" });
  });

  it("has an Event that says why it is left alone if its service is unknown", async () => {
    await loaders.create({ name: "unknown", serviceId: "unknown", replicas: 0 });
    await environment.startController();
    interface Report extends KubeObject {
      readonly reason: string;
      readonly regarding: { readonly kind: string; readonly name: string };
    }
    const path = collectionPath(EVENTS, environment.pipes);
    const event = await waitFor(
      async () => {
        const { items } = await environment.client.json<{ readonly items: readonly Report[] }>({ path });
        return items.find(({ reason }) => reason === "UnknownService");
      },
      { what: "the Event" },
    );
    expect(event.regarding).toMatchObject({ kind: "StatefulSet", name: "unknown" });
  });
});

describe("a service with a Deployment and a StatefulSet", () => {
  it("resizes both if they have the same name", async () => {
    await loaders.create({ name: "same", replicas: 1 });
    await environment.createPipe({ name: "same", cores: 1 });
    await start(environment);
    await environment.requestSize(2);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "2/2",
      resizedBy: { same: "Rollout", "statefulset/same": "Rollout" },
    });
    expect(await loaders.sizes("same")).toEqual(["2", "2"]);
  });
});

describe("the update strategy of a StatefulSet", () => {
  it("keeps the pods below its partition, until the owner lowers it", async () => {
    const rollingUpdate = { partition: 2 };
    await loaders.create({ updateStrategy: { type: "RollingUpdate", rollingUpdate } });
    await start(environment);
    const [first, second] = await loaders.uids();
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(conditionOf(scaling, "Stalled")).toBeUndefined();
    expect(scaling.status?.pipes?.pending).toMatchObject([
      {
        name: "statefulset/loader",
        state: "Paused",
        message: expect.stringContaining("2 of its 3 pods are below the partition 2"),
      },
    ]);
    expect(await loaders.sizes()).toEqual(["1", "1", "4"]);
    expect((await loaders.uids()).slice(0, 2)).toEqual([first, second]);
    expect((await loaders.read()).spec.updateStrategy?.rollingUpdate?.partition).toBe(2);
    await loaders.patch({ updateStrategy: { rollingUpdate: { partition: 0 } } });
    // The last pod may be missing for a moment, because the owner replaces it.
    await loaders.ready();
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });

  it("is never overruled if it is OnDelete", async () => {
    await loaders.create({ updateStrategy: { type: "OnDelete" } });
    await start(environment);
    const before = await loaders.uids();
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(conditionOf(scaling, "Ready")?.message).toMatch(
      /its update strategy is OnDelete, so only its owner replaces its pods/,
    );
    expect([templateCpu(await loaders.read()), await loaders.uids()]).toEqual(["1", before]);
    await loaders.patch({ updateStrategy: { type: "RollingUpdate" } });
    // The last pod may be missing for a moment, because the owner replaces it.
    await loaders.ready();
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });
});

describe("a StatefulSet whose pod of the new size does not become ready", () => {
  it("is rolled back with the policy Parallel, and only that pod is replaced", () =>
    expectRollback(environment, "Parallel"));
});
