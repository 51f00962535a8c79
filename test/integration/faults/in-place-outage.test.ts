import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, describe, it } from "vitest";
import { resourcesOf } from "../../support/test-environment.ts";
import { HeldServices } from "./held-services.ts";

let cluster: Cluster;
let held: HeldServices | undefined;
beforeAll(async () => {
  cluster = await startCluster({ progress: silentProgress });
});
afterEach(async () => {
  await cluster.revive();
  await held?.end();
});
afterAll(() => cluster?.stop());

/** The controller manager is killed before each of these steps. */
async function killControllerManager(): Promise<HeldServices> {
  const services = await HeldServices.start({ cluster, steps: ["pause", "ReplicaSet", "resume"] });
  held = services;
  await services.hold(2);
  await cluster.kill("kube-controller-manager");
  services.release();
  await services.each(async (service) => {
    const isSized = async () => resourcesOf(await service.pipe()) === "2 8Gi 8Gi";
    await waitFor(isSized, { what: "the template to have the size" });
  });
  return services;
}

describe("a controller manager that is killed during the commit", () => {
  it("causes no restart if it comes back soon", async () => {
    const services = await killControllerManager();
    await cluster.revive();
    await services.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("leaves no Deployment paused for longer than 30 s", async () => {
    const services = await killControllerManager();
    await services.each(async (service) => {
      const isResumed = async () => (await service.pipe()).spec.paused === undefined;
      await waitFor(isResumed, { what: "the Deployment to be resumed" });
    });
    await cluster.revive();
    await services.each(async (service) => {
      await service.settled(2);
      // The pods are replaced, because the ReplicaSet did not get the size.
      if (service.step === "pause") await service.expectFallback("CommitTimeout");
      else await service.expectNoRestart();
    });
  });
});
