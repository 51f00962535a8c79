import { afterEach, describe, expect, it } from "vitest";
import { HeldServices } from "../integration/faults/held-services.ts";
import { resourcesOf } from "../support/test-environment.ts";
import { isPaused, podCpus, resumed, unlabel } from "./paused-pipe.ts";

// The controller has exactly the permissions that the chart grants, and the admission policies restrict it.
let held: HeldServices;
afterEach(() => held?.end());

describe("with the permissions and policies of the chart, the controller", () => {
  it("resizes pods in place, and their template follows", async () => {
    held = await HeldServices.start({ steps: ["resumption"] });
    await held.between(2, async (service) => expect(await isPaused(service)).toBe(true));
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("finishes the commit of a Deployment that loses its labels in the middle", async () => {
    held = await HeldServices.start({ steps: ["write to the ReplicaSet", "resumption"] });
    await held.between(2, async (service) => {
      expect(await isPaused(service)).toBe(true);
      await unlabel(service);
    });
    await held.each(async (service) => {
      await resumed(service);
      expect(resourcesOf(await service.pipe())).toBe("2 8Gi 8Gi");
      expect(await podCpus(service)).toEqual(["2", "2"]);
      await service.expectNoRestart();
    });
  });
});
