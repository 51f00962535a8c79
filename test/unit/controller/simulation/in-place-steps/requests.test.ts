import { describe, expect, it } from "vitest";
import { KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import { STEPS } from "../../../../support/in-place-steps.ts";
import { HeldPipe } from "../../../../support/simulation/held-steps.ts";
import { idOf } from "../../../../support/simulation/inputs.ts";
import { before, MOMENTS } from "../../../../support/simulation/moments.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const UNAVAILABLE = { error: new KubeUnreachableError("the connection was reset") };

describe.each(MOMENTS)("$when of a resize in place, and without a restart,", (moment) => {
  it.each([
    ["a larger size can be requested", 4],
    ["a size in between can be requested", 2],
    ["the first size can be requested again", 1],
  ])("%s", async (_, cores) => {
    const pipe = await HeldPipe.start();
    await pipe.resize(3, moment, () => pipe.simulation.requestSize(1, cores));
    pipe.expectSettled(cores);
    pipe.expectNoRestart();
  });

  it("the tier can be lowered", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(4, moment, () => pipe.simulation.setTier("small"));
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it("the service can be suspended and resumed", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.simulation.suspend(1, true));
    expect(pipe.simulation.condition(1)?.reason).toBe("Suspended");
    expect(pipe.isPaused).toBe(false);
    expect(pipe.uids()).toEqual(pipe.before);
    pipe.simulation.suspend(1, false);
    await pipe.run(MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it("the PipeScaling can be deleted, and the new one resizes nothing", async () => {
    const pipe = await HeldPipe.start();
    const sizes = () => [...pipe.wantedSizes(), pipe.templateSize()];
    let earlier: readonly string[] = [];
    await pipe.resize(2, moment, () => {
      pipe.simulation.removeScaling(1);
      // The writes in flight have ended, and there is no new PipeScaling yet.
      pipe.cluster.clock.after(20 * SECOND, () => {
        if (!pipe.simulation.hasScaling(1)) earlier = sizes();
      });
    });
    await pipe.run(2 * MINUTE);
    const { suspend = false } = pipe.cluster.scalings.get(idOf(1))?.spec ?? {};
    expect(suspend).toBe(new Set(earlier).size > 1);
    expect(sizes()).toEqual(earlier);
    expect(pipe.isPaused).toBe(false);
    pipe.simulation.suspend(1, false);
    await pipe.request(2, MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it("the controller can be restarted", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => pipe.simulation.start());
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it("the controller can be restarted while the first size is requested again", async () => {
    const pipe = await HeldPipe.start();
    await pipe.resize(2, moment, () => {
      pipe.simulation.requestSize(1, 1);
      pipe.simulation.start();
    });
    pipe.expectSettled(1);
    pipe.expectNoRestart();
  });
});

it("the controller can be restarted while the first size is requested again, although status updates failed before", async () => {
  const pipe = await HeldPipe.start();
  // The status marks the pods before the first one is resized, so that the next controller looks at them.
  const failsUntilMs = pipe.cluster.clock.now() + 20 * SECOND;
  pipe.cluster.fault = ({ path }) =>
    path.endsWith("/status") && pipe.cluster.clock.now() < failsUntilMs ? UNAVAILABLE : undefined;
  await pipe.resize(2, before("resize of the second pod"), () => {
    pipe.simulation.requestSize(1, 1);
    pipe.simulation.start();
  });
  pipe.expectSettled(1);
  pipe.expectNoRestart();
});

it.each(STEPS)("the controller can be restarted before it gets the response to the %s", async (step) => {
  const pipe = await HeldPipe.start();
  pipe.onArrival(step, () => pipe.simulation.start());
  await pipe.request(2);
  pipe.expectSettled(2);
  pipe.expectNoRestart();
});
