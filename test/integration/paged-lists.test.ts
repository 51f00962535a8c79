import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { afterAll, beforeAll, expect, it } from "vitest";
import { World } from "../support/test-environment.ts";

let cluster: Cluster;
let world: World;
beforeAll(async () => {
  // WatchListClient would have Kubernetes' own components ask for what they are then refused.
  const gates = { "feature-gates": "WatchList=false,WatchListClient=false" };
  cluster = await startCluster({
    progress: silentProgress,
    componentArgs: { "kube-apiserver": gates, "kube-controller-manager": gates, "kube-scheduler": gates },
  });
  world = await World.create("basic", cluster);
});
afterAll(async () => {
  await world?.end();
  await cluster?.stop();
});

it("an API server that cannot tell lists as events is asked for pages", async () => {
  await world.createPipe({ name: "pipe-a", cores: 1 });
  await world.startController();
  await world.waitForCondition("Ready", "True");
  await world.askFor(4);
  await world.waitForCondition("Ready", "True");
  const refused = /^rest_client_requests_total\{(?=.*method="GET")(?=.*code="422").*\} [1-9]/m;
  expect(await world.scrape()).toMatch(refused);
  expect(world.errors).toEqual([]);
});
