import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";
import { InPlaceLoaders } from "./stateful-in-place.ts";
import { partitionIn, templateCpu } from "./stateful-loader.ts";

// both-kinds.slow.test.ts has a larger and a smaller size, with a partition of the owner.

let environment: TestEnvironment;
let loaders: InPlaceLoaders;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
  loaders = new InPlaceLoaders(environment);
});
afterEach(() => environment.end());

describe("the pods of a StatefulSet that are resized in place", () => {
  it("get a second size that is requested at once", async () => {
    const uids = await loaders.running();
    for (const cores of [4, 2, 8, 1, 3]) await environment.requestSize(cores);
    await environment.waitForCondition("Ready", "True");
    expect(await loaders.sizes()).toEqual(["3", "3", "3"]);
    expect(templateCpu(await loaders.settled())).toBe("3");
    expect(await loaders.uids()).toEqual(uids);
  });

  it("stay if their StatefulSet loses its labels meanwhile", async () => {
    const uids = await loaders.running();
    await environment.requestSize(4);
    await waitFor(async () => (await loaders.sizes()).includes("4"), { what: "the first pod of the size" });
    await loaders.patchObject({ metadata: { labels: { [SERVICE_LABEL]: null, [TYPE_LABEL]: null } } });
    await waitFor(
      async () => {
        const object = await loaders.read();
        return (partitionIn(object) ?? 0) === 0 && object.status?.updatedReplicas === 3;
      },
      { what: "the pods to be released" },
    );
    expect(await loaders.uids()).toEqual(uids);
  });
});

describe("a StatefulSet that cannot be resized in place", () => {
  it("is left alone with the strategies InPlace and OnDelete, and reported", async () => {
    const uids = await loaders.running({
      updateStrategy: { type: "OnDelete" },
      args: ["-XX:MaxRAMPercentage=75"],
    });
    await environment.requestSize(4);
    const scaling = await environment.waitForCondition("Ready", "False", "WaitingForOwner");
    expect(conditionOf(scaling, "Ready")?.message).toMatch(/its update strategy is OnDelete/);
    expect([await loaders.sizes(), await loaders.uids()]).toEqual([["1", "1", "1"], uids]);
    expect(templateCpu(await loaders.read())).toBe("1");
  });

  it("is rolled out with the reason in the status", async () => {
    await loaders.running({ args: ["-XX:MaxRAMPercentage=75"] });
    await environment.requestSize(4);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "1/1",
      resizedBy: { "statefulset/loader": "Rollout" },
      fallbacks: [{ pipe: "statefulset/loader", reason: "SizeFromPercentage" }],
    });
    expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  });
});
