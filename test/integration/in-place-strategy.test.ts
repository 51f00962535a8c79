import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CONTAINER_ANNOTATION } from "../../src/controller/names.ts";
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

  it("does not resize pods with an injected container before the pod template names the container", async () => {
    await pipe.injectContainers();
    const before = await pipe.started({});
    expect((await pipe.pods())[0]?.spec.containers).toHaveLength(2);
    await environment.patchScaling({ strategy: "InPlace" });
    await environment.requestSize(2);
    const { message } = await pipe.waiting("ContainerNotNamed");
    expect(message).toContain(`${CONTAINER_ANNOTATION}=pipe`);
    expect(await pipe.uids()).toEqual(before);
    const annotations = { [CONTAINER_ANNOTATION]: "pipe" };
    await environment.patchPipe("pipe-a", { spec: { template: { metadata: { annotations } } } });
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect(status?.pipes).toMatchObject({ resizedBy: { "pipe-a": "InPlace" } });
  });
});
