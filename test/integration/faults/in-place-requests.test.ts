import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { objectPath } from "../../../src/kube/paths.ts";
import { HeldServices } from "./held-services.ts";

let held: HeldServices | undefined;
afterEach(() => held?.end());

describe("between any two steps of a resize in place, and without a restart,", () => {
  it.each([
    ["a larger size can be requested", 4],
    ["a size in between can be requested", 2],
    ["the first size can be requested again", 1],
  ])("%s", async (_, cores) => {
    held = await HeldServices.start();
    await held.between(3, ({ environment }) => environment.requestSize(cores));
    await held.each(async (service) => {
      await service.settled(cores);
      await service.expectNoRestart();
    });
  });

  it("the tier can be lowered", async () => {
    held = await HeldServices.start();
    await held.between(4, ({ environment }) => environment.setTier("small"));
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("the service can be suspended and resumed", async () => {
    held = await HeldServices.start({ steps: ["dry run", "first pod", "second pod"] });
    await held.between(2, ({ environment }) => environment.patchScaling({ suspend: true }));
    await held.each(({ environment }) => environment.waitForCondition("Ready", "Unknown", "Suspended"));
    await held.each(({ environment }) => environment.patchScaling({ suspend: null }));
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("the controller can be restarted", async () => {
    held = await HeldServices.start();
    await held.hold(2);
    await held.crash();
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("the controller can be restarted, and the first size requested again", async () => {
    held = await HeldServices.start();
    await held.hold(2);
    await held.each(({ environment }) => environment.requestSize(1));
    await held.crash();
    await held.each(async (service) => {
      await service.settled(1);
      await service.expectNoRestart();
    });
  });
});

it("the PipeScaling can be deleted between any two steps of a resize in place", async () => {
  held = await HeldServices.start();
  const deleted = new Map<string, string>();
  await held.between(2, async ({ environment }) => {
    const { client, pipes, serviceId } = environment;
    deleted.set(serviceId, (await environment.scaling()).metadata.uid);
    await client.json({ method: "DELETE", path: objectPath(PIPE_SCALINGS, pipes, serviceId) });
  });
  await held.each(async (service) => {
    const { environment } = service;
    const isRecreated = async () =>
      (await environment.scaling()).metadata.uid !== deleted.get(environment.serviceId);
    await waitFor(isRecreated, { what: "the PipeScaling to be created again" });
    await service.settled(2);
    expect((await service.pipe()).spec.paused).toBeUndefined();
  });
});
