import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, it } from "vitest";
import { resourcesOf } from "../../support/test-environment.ts";
import { HeldServices } from "./held-services.ts";

let cluster: Cluster;
let held: HeldServices | undefined;
// The test kills the controller manager, so the cluster is not the shared one.
beforeAll(async () => {
  cluster = await startCluster({ progress: silentProgress });
});
afterEach(async () => {
  await cluster.revive();
  await held?.end();
});
afterAll(() => cluster?.stop());

// test/unit/controller/simulation/in-place-steps/outage.test.ts has the other steps, and a shorter outage.
it("a controller manager that is killed during the commit leaves no Deployment paused for longer than the timeout", async () => {
  const services = await HeldServices.start({
    cluster,
    steps: ["pause", "write to the ReplicaSet", "resumption"],
    timeouts: { commitMs: 8000 },
  });
  held = services;
  await services.hold(2);
  await cluster.kill("kube-controller-manager");
  services.release();
  await services.each(async (service) => {
    const isSized = async () => resourcesOf(await service.pipe()) === "2 8Gi 8Gi";
    await waitFor(isSized, { what: "the template to have the size" });
    const isResumed = async () => (await service.pipe()).spec.paused === undefined;
    await waitFor(isResumed, { what: "the Deployment to be resumed", timeoutMs: 20_000 });
  });
  await cluster.revive();
  await services.each(async (service) => {
    // A template whose ReplicaSet did not get the size gets its old size again, and the commit is repeated.
    await service.settled(2);
    await service.expectNoRestart();
  });
});
