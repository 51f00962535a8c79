import { afterEach, it } from "vitest";
import { HeldServices } from "./held-services.ts";

let held: HeldServices | undefined;
afterEach(() => held?.end());

// test/unit/controller/simulation/in-place-steps/requests.test.ts has the other requests.
it("between any two steps of a resize in place, the controller can be restarted, also while the first size is requested again, without a restart of the pods", async () => {
  held = await HeldServices.start();
  await held.hold(2);
  await held.crash();
  await held.each((service) => service.settled(2));
  await held.hold(3);
  await held.each(({ environment }) => environment.requestSize(2));
  await held.crash();
  await held.each(async (service) => {
    await service.settled(2);
    await service.expectNoRestart();
  });
});
