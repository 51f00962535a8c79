import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { beforeAll, describe, expect, it } from "vitest";
import { accountOf, install, prepareRelease, type Release } from "../accounts.ts";
import type { ReleaseCluster } from "./cluster.ts";

const AUTOSCALED = ["--set", "api.autoscaling.enabled=true,api.autoscaling.minReplicas=3"];

/** An autoscaler acts 15 s after its creation, so here only Helm and the tests change the number of pods. */
export function autoscalingSuite(chart: ReleaseCluster): void {
  describe("api.autoscaling", () => {
    let cluster: Cluster;
    let release: Release;
    beforeAll(async () => {
      cluster = chart.cluster;
      release = await prepareRelease(cluster);
    });

    /** Arguments that name the Deployment of the API. */
    const deployment = () => ["deployment", accountOf(release, "api"), "--namespace", release.namespace];

    async function replicas(): Promise<number> {
      return Number(
        await kubectl(cluster, ["get", ...deployment(), "--output", "jsonpath={.spec.replicas}"]),
      );
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
}
