import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { CHART } from "../../../deploy/chart/path.ts";
import { accountOf, install, prepareRelease, type Release, settings } from "../accounts.ts";
import type { ReleaseCluster } from "./cluster.ts";

const managed = z.object({
  metadata: z.object({
    managedFields: z.array(z.object({ manager: z.string(), operation: z.string() })),
  }),
});

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

    it.each([
      ["leaves", "helm-controller"],
      ["leaves", "helm4"],
      ["leaves", "terraform-provider-helm_v3.1.0_x5"],
      ["does not leave", "kubectl"],
    ])("%s the number of pods to the autoscaler if %s applies the chart", async (verb, manager) => {
      const output = ["--output", "json", "--show-managed-fields"];
      const { managedFields } = managed.parse(
        JSON.parse(await kubectl(cluster, ["get", ...deployment(), ...output])),
      ).metadata;
      const at = managedFields.findIndex(({ operation }) => operation === "Apply");
      const path = `/metadata/managedFields/${at}/manager`;
      const patch = JSON.stringify([{ op: "replace", path, value: manager }]);
      await kubectl(cluster, ["patch", ...deployment(), "--type", "json", "--patch", patch]);
      const only = ["--show-only", "templates/api-deployment.yaml", "--dry-run=server"];
      const where = [release.name, CHART, "--namespace", release.namespace];
      const args = ["template", ...where, ...settings(release), ...AUTOSCALED, ...only];
      expect((await helm(args, cluster)).includes("replicas:")).toBe(verb !== "leaves");
    });

    it("starts with at least the minimum when it is enabled", async () => {
      await install(cluster, release, "--set", "api.replicaCount=1", "--force-conflicts");
      await install(cluster, release, ...AUTOSCALED);
      expect(await replicas()).toBe(3);
    });
  });
}
