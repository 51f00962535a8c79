import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { TestEnvironment } from "../../support/test-environment.ts";
import { committed, expectQuiet, isHeld } from "../stateful-commit.ts";
import { Loaders, templateCpu } from "../stateful-loader.ts";

let cluster: Cluster;
let environment: TestEnvironment | undefined;
// The test kills the controller manager, so the cluster is not the shared one.
beforeAll(async () => {
  cluster = await startCluster({ progress: silentProgress });
});
afterEach(async () => {
  await cluster.revive();
  await environment?.end();
});
afterAll(() => cluster?.stop());

it("a controller manager that is away during the commit of a StatefulSet leaves no pods held for longer than the timeout", async () => {
  const world = await TestEnvironment.create("basic", cluster);
  environment = world;
  const loaders = new Loaders(world);
  await loaders.create();
  await world.startController({ resizeStrategy: "InPlaceOrRollout" }, { timeouts: { commitMs: 4000 } });
  await loaders.ready();
  const uids = await loaders.uids();
  await cluster.kill("kube-controller-manager");
  await world.requestSize(4);
  await waitFor(async () => isHeld(await loaders.read()), { what: "the pods to be held" });
  await waitFor(async () => !isHeld(await loaders.read()), { what: "the pods to be released" });
  // The template has the size of the revision that the pods still have.
  expect(templateCpu(await loaders.read())).toBe("1");
  expect(await loaders.sizes()).toEqual(["4", "4", "4"]);
  await cluster.revive();
  await committed(loaders, 4);
  await world.waitForCondition("Ready", "True");
  expect(await loaders.uids()).toEqual(uids);
  await expectQuiet(loaders);
});
