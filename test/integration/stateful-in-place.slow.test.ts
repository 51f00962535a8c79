import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { HOLD } from "../../src/controller/observe/workloads/stateful-set.ts";
import { objectPath, PODS, STATEFUL_SETS } from "../../src/kube/paths.ts";
import { Rights } from "../chart/rights.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";
import { IN_PLACE, InPlaceLoaders } from "./stateful-in-place.ts";
import { partitionIn, templateCpu } from "./stateful-loader.ts";

/** A pod with this finalizer does not end. */
const STAY = "test.pipes.clouddb.dev/stay";

let environment: TestEnvironment;
let loaders: InPlaceLoaders;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
  loaders = new InPlaceLoaders(environment);
});
afterEach(() => environment.end());

describe("the pods of a StatefulSet that are resized in place", () => {
  it.each(["OrderedReady", "Parallel"] as const)(
    "keep running with the policy %s, and the template has their size",
    async (podManagementPolicy) => {
      await loaders.create({ podManagementPolicy });
      await environment.startController(IN_PLACE);
      await loaders.ready();
      const before = await loaders.read();
      const uids = await loaders.uids();
      for (const cores of [4, 1]) {
        await environment.requestSize(cores);
        const { status } = await environment.waitForCondition("Ready", "True");
        expect(status?.pipes).toMatchObject({
          summary: "1/1",
          resizedBy: { "statefulset/loader": "InPlace" },
        });
        expect(status?.pipes?.fallbacks ?? []).toEqual([]);
        expect(await loaders.sizes()).toEqual(Array(3).fill(`${cores}`));
        const object = await loaders.settled();
        expect([templateCpu(object), partitionIn(object)]).toEqual([`${cores}`, 0]);
        expect(object.status?.currentRevision).toBe(object.status?.updateRevision);
      }
      expect(await loaders.uids()).toEqual(uids);
      const after = await loaders.settled();
      expect(after.spec).toEqual(before.spec);
      // The earlier size has the earlier revision again.
      expect(after.status?.updateRevision).toBe(before.status?.updateRevision);
      for (const { status } of await loaders.pods())
        expect(status?.containerStatuses).toMatchObject([{ restartCount: 0 }]);
      expect(environment.errors).toEqual([]);
    },
  );

  // From 1000000000 on, the commit needs no hold; the last one is the largest that the API server accepts.
  it.each([1, 3, 5, HOLD, 2 ** 31 - 1])(
    "include those below the partition %i of the owner, which stays",
    async (partition) => {
      const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition } } as const;
      const uids = await loaders.running({ updateStrategy });
      await environment.requestSize(4);
      await environment.waitForCondition("Ready", "True");
      expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
      const object = await loaders.settled();
      expect([templateCpu(object), partitionIn(object)]).toEqual(["4", partition]);
      await loaders.patch({ updateStrategy: { rollingUpdate: { partition: 0 } } });
      await loaders.settled();
      expect(await loaders.uids()).toEqual(uids);
    },
  );

  it("keep running with the strategy OnDelete, and after a change to RollingUpdate", async () => {
    const uids = await loaders.running({ updateStrategy: { type: "OnDelete" } });
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
    const object = await loaders.settled();
    expect([templateCpu(object), partitionIn(object)]).toEqual(["4", undefined]);
    await loaders.patch({ updateStrategy: { type: "RollingUpdate" } });
    await loaders.settled();
    expect(await loaders.uids()).toEqual(uids);
  });

  it("are as many as the owner wants while they are scaled up and down", async () => {
    const uids = await loaders.running();
    await environment.requestSize(4);
    await loaders.patch({ replicas: 5 });
    await waitFor(async () => (await loaders.sizes()).join() === "4,4,4,4,4", {
      what: "five pods of the size",
    });
    await loaders.ready();
    await loaders.settled();
    expect((await loaders.uids()).slice(0, 3)).toEqual(uids);
    await environment.requestSize(2);
    await loaders.patch({ replicas: 2 });
    await waitFor(async () => (await loaders.sizes()).join() === "2,2", { what: "two pods of the size" });
    await environment.waitForCondition("Ready", "True");
    expect(templateCpu(await loaders.settled())).toBe("2");
    expect(await loaders.uids()).toEqual(uids.slice(0, 2));
  });

  it.each(["OrderedReady", "Parallel"] as const)(
    "get their sizes while another one takes long to end, and keep running: %s",
    async (podManagementPolicy) => {
      const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: "database" };
      await environment.createPipe({ name: "pipe-b", cores: 1, podLabels });
      const uids = await loaders.running({ podManagementPolicy });
      await loaders.patchPod("loader-1", { finalizers: [STAY] });
      await environment.client.json({
        method: "DELETE",
        path: objectPath(PODS, environment.pipes, "loader-1"),
      });
      for (const cores of [4, 2]) {
        await environment.requestSize(cores);
        const sizes = `${cores},1,${cores}`;
        await waitFor(async () => (await loaders.sizes()).join() === sizes, { what: `the sizes ${sizes}` });
      }
      await waitFor(
        async () => {
          const { status } = await environment.scaling();
          return status?.pipes?.pending?.some(({ message }) => message?.includes("loader-1 has ended"));
        },
        { what: "the status to name the pod that ends" },
      );
      expect(templateCpu(await loaders.read())).toBe("1");
      expect(await loaders.uids()).toEqual(uids);
      await loaders.patchPod("loader-1", { finalizers: null });
      await environment.waitForCondition("Ready", "True");
      expect(await loaders.sizes()).toEqual(["2", "2", "2"]);
      expect(templateCpu(await loaders.settled())).toBe("2");
      const [first, replaced, last] = await loaders.uids();
      expect([first, last]).toEqual([uids[0], uids[2]]);
      expect(replaced).not.toBe(uids[1]);
      const { status } = await environment.scaling();
      expect(status?.pipes).toMatchObject({ summary: "2/2", inPlace: 2 });
      expect(status?.pipes?.fallbacks ?? []).toEqual([]);
    },
  );

  it("get two sizes although none of them counts as available, and keep running", async () => {
    const uids = await loaders.running();
    await loaders.patch({ minReadySeconds: 3600 });
    await waitFor(async () => (await loaders.read()).status?.availableReplicas === 0, {
      what: "no pod to be available",
    });
    for (const cores of [4, 2]) {
      await environment.requestSize(cores);
      await environment.waitForCondition("Ready", "True");
      expect(await loaders.sizes()).toEqual(Array(3).fill(`${cores}`));
      expect(templateCpu(await loaders.settled())).toBe(`${cores}`);
    }
    expect(await loaders.uids()).toEqual(uids);
  });

  it("are replaced in turn by a new image of the owner, and have the size", async () => {
    const uids = await loaders.running();
    await environment.requestSize(4);
    await loaders.patch({
      template: { spec: { containers: [{ name: "pipe", image: "registry.example/pipe:2" }] } },
    });
    await waitFor(
      async () => {
        const pods = await loaders.pods();
        return pods.length === 3 && pods.every(({ spec }) => JSON.stringify(spec).includes("pipe:2"));
      },
      { what: "the pods of the new image" },
    );
    await environment.waitForCondition("Ready", "True");
    await loaders.settled();
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
    expect((await loaders.uids()).filter((uid) => uids.includes(uid))).toEqual([]);
  });
});

/** A StatefulSet with a name of 53 characters, whose hash has few enough digits. */
async function runningWithLongName() {
  for (let at = 0; at < 20; at += 1) {
    const name = `${"a".repeat(51)}${String(at).padStart(2, "0")}`;
    await loaders.create({ name, replicas: 1 });
    const { status } = await waitFor(
      async () => {
        const object = await loaders.read(name);
        return object.status?.updateRevision ? object : undefined;
      },
      { what: "the revision" },
    );
    if ((status?.updateRevision?.length ?? 0) <= 63) {
      await environment.startController(IN_PLACE);
      await loaders.ready(name);
      return { name, uids: await loaders.uids(name) };
    }
    await environment.deleteAll(STATEFUL_SETS);
  }
  throw new Error("each hash has ten digits");
}

describe("a service with a Deployment and a StatefulSet", () => {
  it("is resized in place as a whole", async () => {
    await loaders.create({ name: "same", replicas: 2 });
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: "database" };
    await environment.createPipe({ name: "same", cores: 1, podLabels });
    await environment.startController(IN_PLACE);
    await loaders.ready("same");
    const uids = await loaders.uids("same");
    await environment.requestSize(2);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "2/2",
      resizedBy: { same: "InPlace", "statefulset/same": "InPlace" },
    });
    expect(await loaders.uids("same")).toEqual(uids);
    expect(await loaders.sizes("same")).toEqual(["2", "2", "2"]);
  });
});

describe("a StatefulSet that cannot be resized in place", () => {
  it("keeps its pods with any strategy if its name is too long for the label of another template", async () => {
    const { uids, name } = await runningWithLongName();
    for (const strategy of ["Rollout", "InPlaceOrRollout"]) {
      await environment.patchScaling({ strategy });
      await environment.requestSize(4);
      const scaling = await environment.waitForCondition("Stalled", "True", "Refused");
      expect(conditionOf(scaling, "Stalled")?.message).toContain(
        "create it again with a name of at most 52 characters",
      );
    }
    expect(await loaders.uids(name)).toEqual(uids);
    expect(await loaders.sizes(name)).toEqual(["1"]);
  });

  it("is rolled out if the controller may not label its pods", async () => {
    await loaders.running();
    const rights = await Rights.of("controller", environment);
    try {
      await rights.without("patch pods", async () => {
        await environment.requestSize(4);
        const { status } = await environment.waitForCondition("Ready", "True");
        expect(status?.pipes).toMatchObject({
          summary: "1/1",
          resizedBy: { "statefulset/loader": "Rollout" },
          fallbacks: [{ pipe: "statefulset/loader", reason: "Forbidden" }],
        });
        expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
      });
    } finally {
      await rights.close();
    }
  });
});
