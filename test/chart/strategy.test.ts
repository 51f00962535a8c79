import type { Cluster } from "@pipe-scaling/local-cluster";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { accountOf, type Component, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { rendered, valuesFile } from "./tools.ts";

const ROLLING = { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } };
const COMPONENTS: readonly Component[] = ["api", "controller"];

function values(strategy: string): string[] {
  return COMPONENTS.flatMap((component) => ["--set-json", `${component}.strategy=${strategy}`]);
}

describe("the update strategy of a Deployment of the chart", () => {
  it.each<[string, object]>([
    ["{}", ROLLING],
    ["null", ROLLING],
    ['{"type":"RollingUpdate"}', ROLLING],
    [
      '{"rollingUpdate":{"maxUnavailable":0}}',
      { ...ROLLING, rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } },
    ],
    [
      '{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}',
      { ...ROLLING, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    ],
    [
      '{"rollingUpdate":{"maxSurge":"50%"}}',
      { ...ROLLING, rollingUpdate: { maxSurge: "50%", maxUnavailable: "25%" } },
    ],
    ['{"type":"RollingUpdate","rollingUpdate":null}', ROLLING],
    ['{"type":"Recreate"}', { type: "Recreate" }],
  ])("with the values %s has all fields that the API server would set", async (strategy, expected) => {
    const deployments = (await rendered("--values", valuesFile("minimal"), ...values(strategy))).filter(
      ({ kind }) => kind === "Deployment",
    );
    expect(deployments).toHaveLength(2);
    for (const deployment of deployments) expect(Object(deployment).spec.strategy).toEqual(expected);
  });
});

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
      await install(cluster, release, ...others, ...values(strategy));
      expect(await strategies()).toEqual([expected, expected]);
    }
  });
});
