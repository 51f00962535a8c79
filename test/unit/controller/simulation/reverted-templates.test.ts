import { describe, expect, it } from "vitest";
import { actionOf } from "../../../../src/kube/call.ts";
import type { Container } from "../../../../src/kube/pods.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** The pipe has four cores by its last resize, so its template has quantities as the controller writes them. */
async function ofFourCores(): Promise<HeldPipe> {
  const pipe = await HeldPipe.start();
  await pipe.request(4, MINUTE);
  pipe.expectSettled(4);
  return pipe;
}

function resourcesOf(pipe: HeldPipe): Container["resources"] {
  return pipe.deployment.spec.template.spec.containers[0]?.resources;
}

/** The owner sets a size in the template during the commit of another one. */
function revert(pipe: HeldPipe, resources: Container["resources"]): void {
  pipe.change({ template: { spec: { containers: [{ name: "pipe", resources }] } } });
}

function expectSamePods(pipe: HeldPipe): void {
  expect(pipe.isPaused).toBe(false);
  expect(pipe.workloads.replaced).toEqual([]);
  expect(pipe.uids()).toEqual(pipe.before);
}

/** Each has an event at the time of the revert, and the size of the pipe at the end. */
const ALSO: readonly [string, (pipe: HeldPipe) => void, number | undefined][] = [
  ["nothing", () => undefined, 2],
  ["the old size is requested", ({ simulation }) => simulation.requestSize(1, 4), 4],
  ["the service is suspended", ({ simulation }) => simulation.suspend(1, true), undefined],
  ["the strategy is InPlace", ({ simulation }) => simulation.setStrategy(1, "InPlace"), 2],
];

// The ReplicaSet gets the size of the template from before, although the status says that all pods are updated.
describe.each(ALSO)(
  "an owner that sets the old size while the controller reads the ReplicaSets of a commit: %s",
  (_, also, cores) => {
    it.each([100, SECOND, 3 * SECOND, 7 * SECOND])("replaces no pod if that takes %d ms", async (delayMs) => {
      const pipe = await ofFourCores();
      const { cluster } = pipe;
      const resources = resourcesOf(pipe);
      let isReached = false;
      cluster.latencyMs = (request) => {
        const { verb, resource } = actionOf(request);
        if (isReached || !pipe.isPaused || verb !== "list" || resource !== "replicasets") return 5;
        isReached = true;
        cluster.clock.after(1, () => {
          also(pipe);
          revert(pipe, resources);
        });
        return delayMs;
      };
      await pipe.request(2, 10 * MINUTE);
      expect(isReached).toBe(true);
      expectSamePods(pipe);
      if (cores !== undefined) pipe.expectSettled(cores);
    });
  },
);

describe("an owner that sets the old size during a SIGTERM while Kubernetes does not respond", () => {
  it.each([3, 7, 12, 18])("replaces no pod if a write to the ReplicaSet takes %d s", async (seconds) => {
    const pipe = await ofFourCores();
    const { simulation, workloads } = pipe;
    const resources = resourcesOf(pipe);
    let isEnded = false;
    pipe.at({ step: "write to the ReplicaSet", delayMs: seconds * SECOND }, () => {
      workloads.killControllerManager();
      revert(pipe, resources);
      void simulation.terminate().then(() => {
        isEnded = true;
      });
    });
    await pipe.request(2, MINUTE);
    expect(isEnded).toBe(true);
    workloads.startControllerManager();
    await pipe.run(MINUTE);
    expectSamePods(pipe);
  });
});
