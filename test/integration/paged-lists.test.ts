import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TestEnvironment } from "../support/test-environment.ts";

let cluster: Cluster;
let environment: TestEnvironment;
beforeAll(async () => {
  // With WatchListClient, the components of Kubernetes would request streamed lists, which the API server rejects.
  const gates = { "feature-gates": "WatchList=false,WatchListClient=false" };
  cluster = await startCluster({
    progress: silentProgress,
    componentArgs: { "kube-apiserver": gates, "kube-controller-manager": gates, "kube-scheduler": gates },
  });
  environment = await TestEnvironment.create("basic", cluster);
});
afterAll(async () => {
  await environment?.end();
  await cluster?.stop();
});

it("the controller requests pages from an API server without streamed lists", async () => {
  await environment.createPipe({ name: "pipe-a", cores: 1 });
  await environment.startController();
  await environment.waitForCondition("Ready", "True");
  await environment.requestSize(4);
  await environment.waitForCondition("Ready", "True");
  const refused = /^rest_client_requests_total\{(?=.*method="GET")(?=.*code="422").*\} [1-9]/m;
  expect(await environment.scrape()).toMatch(refused);
  expect(environment.errors).toEqual([]);
});
