import { expect, it } from "vitest";
import { FailedSteps } from "../../../../src/controller/apply/failed-steps.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";

const MINUTE = 60_000;

function pausedPipe(resourceVersion: string, changes: Partial<DeploymentView> = {}): DeploymentView {
  const { metadata } = aPipe("a");
  return aPipe("a", {
    isPaused: true,
    isPausedByUs: true,
    metadata: { ...metadata, resourceVersion },
    ...changes,
  });
}

/** A pipe whose Deployment could not be resumed at once, and again after three minutes. */
async function setup() {
  const { pipes } = createCaches();
  const clock = new FakeClock();
  const steps = new FailedSteps(pipes, clock, TIMEOUTS);
  const pipe = pausedPipe("1");
  pipes.apply(pipe);
  const fail = () =>
    steps.attempt(pipe, "resume", () => Promise.reject(new KubeApiError("PATCH", 500, "{}")));
  await expect(fail()).rejects.toThrow("500");
  await clock.advance(3 * MINUTE);
  await expect(fail()).rejects.toThrow("500");
  return { pipes, clock, steps };
}

it("a write fails too long after two minutes, until it has not been tried for 15 minutes", async () => {
  const { clock, steps } = await setup();
  expect(steps.failsTooLong("uid-a")).toBe(true);
  await clock.advance(15 * MINUTE);
  expect(steps.failsTooLong("uid-a")).toBe(false);
});

it("the failures of a resume are forgotten when the Deployment is resumed in another way", async () => {
  const { pipes, steps } = await setup();
  pipes.apply(pausedPipe("2", { replicas: 3 }));
  expect(steps.failsTooLong("uid-a")).toBe(true);
  pipes.apply(pausedPipe("3", { isPaused: false, isPausedByUs: false }));
  expect([steps.failsTooLong("uid-a"), steps.records.size]).toEqual([false, 0]);
});

it("the failures of a pipe are forgotten when another resize begins", async () => {
  const { steps } = await setup();
  steps.forget("uid-a");
  expect(steps.failsTooLong("uid-a")).toBe(false);
});
