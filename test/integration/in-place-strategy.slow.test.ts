import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TemplateContainer } from "../../src/kube/pods.ts";
import { resourcesOf, type TestEnvironment } from "../support/test-environment.ts";
import { InPlacePipe } from "./in-place-pipe.ts";

describe("the controller", () => {
  let pipe: InPlacePipe;
  let environment: TestEnvironment;
  beforeEach(async () => {
    pipe = await InPlacePipe.create();
    ({ environment } = pipe);
  });
  afterEach(() => environment.end());

  it.each<[string, Partial<TemplateContainer>]>([
    [
      "SizeFromEnvironment",
      { env: [{ name: "GOMEMLIMIT", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } }] },
    ],
    ["SizeFromPercentage", { args: ["-XX:MaxRAMPercentage=75"] }],
  ])(
    "rolls out a pipe whose program reads its size once, unless the strategy is InPlace (%s)",
    async (reason, container) => {
      const before = await pipe.started(container);
      await environment.patchScaling({ strategy: "InPlace" });
      await environment.requestSize(2);
      await pipe.waiting(reason);
      expect(await pipe.uids()).toEqual(before);
      await environment.patchScaling({ strategy: "InPlaceOrRollout" });
      const { status } = await environment.waitForCondition("Ready", "True");
      expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
      expect(status?.pipes).toMatchObject({ resizedBy: { "pipe-a": "Rollout" }, fallbacks: [{ reason }] });
      expect(await pipe.uids()).not.toEqual(before);
    },
  );

  it("leaves a pod with a deferred resize alone with the strategy InPlace, and reports it as failed later", async () => {
    const before = await pipe.started({}, { [RESIZE_OUTCOME_ANNOTATION]: "Deferred" }, [
      { resizeStrategy: "InPlace", rolloutTimeoutMs: 3000 },
      { timeouts: { deferredMs: 500 } },
    ]);
    await environment.requestSize(2);
    await pipe.waiting("Deferred");
    const { status } = await environment.waitForCondition("Stalled", "True", "NotResizedInPlace");
    expect(status?.failures).toMatchObject([{ pipe: "pipe-a", reason: "NotResizedInPlace" }]);
    expect(await pipe.uids()).toEqual(before);
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    // The kubelet has room.
    for (const { metadata } of await pipe.pods())
      await kubectl(environment.cluster, [
        ...["annotate", "pod", metadata.name, "--namespace", environment.pipes],
        `${RESIZE_OUTCOME_ANNOTATION}-`,
      ]);
    await environment.waitForCondition("Ready", "True");
    expect(await pipe.uids()).toEqual(before);
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  });

  it("rolls out a pipe with an injected container that no annotation names", async () => {
    await pipe.injectContainers();
    await pipe.started({});
    await environment.requestSize(2);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      resizedBy: { "pipe-a": "Rollout" },
      fallbacks: [{ reason: "ContainerNotNamed" }],
    });
  });
});
