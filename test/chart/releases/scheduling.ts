import type { Cluster } from "@pipe-scaling/local-cluster";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { install, prepareRelease, type Release } from "../accounts.ts";
import type { ReleaseCluster } from "./cluster.ts";

const pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ labels: z.record(z.string(), z.string()) }),
      spec: z.object({ nodeName: z.string() }),
    }),
  ),
});

/** The nodes have no zone, as in many clusters outside of clouds. */
export function schedulingSuite(chart: ReleaseCluster): void {
  describe("the pods of a release", () => {
    let cluster: Cluster;
    beforeAll(() => {
      cluster = chart.cluster;
    });

    /** Returns the names of the nodes of the pods of each process. */
    async function nodesOf({ namespace }: Release): Promise<readonly ReadonlySet<string>[]> {
      const { items } = pods.parse(
        JSON.parse(await kubectl(cluster, ["get", "pods", "-n", namespace, "-o", "json"])),
      );
      return ["api", "controller"].map((component) => {
        const own = items.filter(
          ({ metadata }) => metadata.labels["app.kubernetes.io/component"] === component,
        );
        return new Set(own.map(({ spec }) => spec.nodeName));
      });
    }

    it("run on different nodes if the nodes have no zone", async () => {
      for (const crds of [true, false]) {
        const release = await prepareRelease(cluster);
        await install(cluster, release, "--set", `crds.enabled=${crds}`, "--wait", "--timeout", "60s");
        expect((await nodesOf(release)).map(({ size }) => size)).toEqual([2, 2]);
      }
    });
  });
}
