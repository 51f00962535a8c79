import type { Cluster } from "@pipe-scaling/local-cluster";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { accountOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { COMPONENTS, ROLLING, strategyFlags } from "./strategies.ts";

describe("an upgrade of a release", () => {
  let cluster: Cluster;
  let release: Release;
  beforeAll(async () => {
    cluster = await sharedCluster();
    release = await prepareRelease(cluster);
  });
  afterAll(async () => {
    if (release) await remove(cluster, release);
  });

  async function strategies() {
    const names = COMPONENTS.map((component) => accountOf(release, component));
    const list = ["get", "deployments", ...names, "--namespace", release.namespace, "--output", "json"];
    const { items } = JSON.parse(await kubectl(cluster, list));
    return items.map(({ spec }: { spec: { strategy: unknown } }) => spec.strategy);
  }

  it("changes the update strategy to Recreate and back", async () => {
    const others = ["--set", "crds.enabled=false"];
    for (const [strategy, expected] of [
      ["{}", ROLLING],
      ["null", ROLLING],
      ['{"type":"Recreate"}', { type: "Recreate" }],
      ["{}", ROLLING],
      ["null", ROLLING],
    ] as const) {
      await install(cluster, release, ...others, ...strategyFlags(strategy));
      expect(await strategies()).toEqual([expected, expected]);
    }
  });
});
