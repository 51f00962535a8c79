import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, expect, it } from "vitest";
import type { Step } from "../../support/in-place-steps.ts";
import { type HeldService, HeldServices } from "./held-services.ts";

/** Commits in flight over all services. */
const MOST_COMMITS = 6;

let held: HeldServices | undefined;
afterEach(() => held?.end());

it("all pods get the size at once, and no more than six templates follow them at a time", async () => {
  const steps = Array.from({ length: 2 * MOST_COMMITS }, (): Step => "write to the ReplicaSet");
  const services = await HeldServices.start({ steps });
  held = services;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  services.handle(({ verb, resource }) =>
    verb === "patch" && resource === "replicasets" ? { type: "pass", after: released } : undefined,
  );
  await services.each(({ environment }) => environment.requestSize(2));
  await services.each(async ({ environment }) => {
    const areResized = async () => {
      const { metadata, status } = await environment.scaling();
      return status?.observedGeneration === metadata.generation && status?.pipes?.summary === "1/1";
    };
    await waitFor(areResized, { what: "the pods to have the size" });
  });
  await waitFor(async () => (await paused(services)).length === MOST_COMMITS, { what: "six commits" });
  await services.each(async (service) => {
    const { status } = await service.environment.scaling();
    const pending = status?.pipes?.pending?.map(({ state, message }) => `${state}: ${message}`);
    expect(pending?.join()).toBe("Resized: its template follows its pods");
  });
  expect(await paused(services)).toHaveLength(MOST_COMMITS);
  release();
  await services.each(async (service) => {
    await service.settled(2);
    await service.expectNoRestart();
  });
});

async function paused({ services }: HeldServices): Promise<readonly HeldService[]> {
  const pipes = await Promise.all(services.map(async (service) => ({ service, pipe: await service.pipe() })));
  return pipes.filter(({ pipe }) => pipe.spec.paused).map(({ service }) => service);
}
