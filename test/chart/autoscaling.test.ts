import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { accountOf, install, prepareRelease, type Release } from "./accounts.ts";

const AUTOSCALED = ["--set", "api.autoscaling.enabled=true,api.autoscaling.minReplicas=3"];

describe("api.autoscaling", () => {
  let cluster: Cluster;
  let release: Release;
  beforeAll(async () => {
    // Without the controller manager, only Helm and this test change the number of pods.
    cluster = await startCluster({ controllerManager: false, nodes: 0 });
    release = await prepareRelease(cluster);
  });
  afterAll(() => cluster?.stop());

  /** Arguments that name the Deployment of the API. */
  const deployment = () => ["deployment", accountOf(release, "api"), "--namespace", release.namespace];

  async function replicas(): Promise<number> {
    return Number(await kubectl(cluster, ["get", ...deployment(), "--output", "jsonpath={.spec.replicas}"]));
  }

  it("keeps the current number of pods when it is enabled", async () => {
    await install(cluster, release, "--set", "api.replicaCount=6");
    await install(cluster, release, ...AUTOSCALED);
    expect(await replicas()).toBe(6);
  });

  it("keeps the number of pods that the autoscaler has set on upgrades and rollbacks", async () => {
    for (const count of [5, 4]) {
      await kubectl(cluster, ["scale", ...deployment(), `--replicas=${count}`]);
      await install(cluster, release, ...AUTOSCALED, "--set", `api.podLabels.upgrade=at-${count}`);
      expect(await replicas()).toBe(count);
    }
    await helm(["rollback", release.name, "--namespace", release.namespace], cluster);
    expect(await replicas()).toBe(4);
  });

  it("starts with at least the minimum when it is enabled", async () => {
    await install(cluster, release, "--set", "api.replicaCount=1", "--force-conflicts");
    await install(cluster, release, ...AUTOSCALED);
    expect(await replicas()).toBe(3);
  });
});
