import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TestEnvironment } from "../support/test-environment.ts";
import { BothKinds, CANARIES } from "./both-kinds.ts";
import { restrictController } from "./in-place-account.ts";

/** Much shorter than in production. */
const SHORT = { timeouts: { smallerMemoryMs: 1000 } };
const SLOW = { podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } };

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
});
afterEach(() => environment.end());

describe("a service with a Deployment of two pods and a StatefulSet of three", () => {
  it.each([
    { ...CANARIES[0], partition: 0 },
    { ...CANARIES[1], partition: 0 },
    { ...CANARIES[1], partition: 2 },
  ])(
    "keeps its pods with a larger and a smaller size, and its owner's partition $partition, if its canary is the $canary",
    async ({ deployment, partition }) => {
      const pipes = new BothKinds(environment, deployment, partition);
      await environment.startController({ resizeStrategy: "InPlaceOrRollout" }, SHORT);
      await pipes.create();
      const before = await pipes.containers();
      const revisions = new Set<string | undefined>();
      for (const cores of [4, 1, 4, 1]) {
        revisions.add(await pipes.rescale(cores, "InPlace"));
        expect(await pipes.containers()).toEqual(before);
      }
      // An earlier size has its earlier revision again.
      expect(revisions.size).toBe(2);
      expect(environment.errors).toEqual([]);
    },
  );

  it.each(CANARIES)(
    "is rolled out to a larger and a smaller size, and the $canary as its canary first",
    async ({ deployment }) => {
      const pipes = new BothKinds(environment, deployment);
      await environment.startController({ resizeStrategy: "Rollout" });
      await pipes.create(SLOW);
      for (const cores of [4, 1]) {
        await pipes.rescale(cores, "Rollout");
        await pipes.expectCanaryFirst();
      }
      expect(environment.errors).toEqual([]);
    },
  );
});
