import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { KubectlError, kubectl, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_VERSION, KIND } from "../../src/crd/names.ts";
import { boostIn } from "../../src/crd/size-fields.ts";
import { formatTime } from "../../src/kube/time.ts";

const FILE = "crds/pipes.clouddb.dev_pipescalings.yaml";

const SIXTEEN = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64 };
const UNTIL = "2026-01-31T20:00:00Z";
/** In UTC, its year would have five digits. */
const LAST_UNTIL = "9999-12-31T23:59:59-12:00";

describe("the CRD of PipeScaling", () => {
  const namespace = `crd-${randomUUID().slice(0, 8)}`;
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await sharedCluster();
    await kubectl(cluster, ["apply", "--server-side", "-f", FILE]);
    await untilEstablished(cluster, ["pipescalings.pipes.clouddb.dev"]);
    await kubectl(cluster, ["create", "namespace", namespace]);
  });
  afterAll(async () => {
    await kubectl(cluster, ["delete", "namespace", namespace, "--wait=false"]);
  });

  const manifest = (spec: object, name = randomUUID()) =>
    JSON.stringify({ apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace }, spec });
  const kubectlApply = (input: string) => kubectl(cluster, ["apply", "-f", "-"], { input });
  const refusalOf = async (input: string) => {
    const error = await kubectlApply(input).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return error instanceof KubectlError ? error.stderr : "it was accepted";
  };

  it("is accepted by the API server without a warning", async () => {
    const crd = JSON.parse(
      await kubectl(cluster, ["get", "crd", "pipescalings.pipes.clouddb.dev", "-o", "json"]),
    );
    const failing = crd.status.conditions.filter(
      (each: { type: string; status: string }) =>
        each.type === "NonStructuralSchema" || (each.type === "NamesAccepted" && each.status !== "True"),
    );
    expect(failing).toEqual([]);
  });

  it.each([
    ["nothing", {}],
    ["the least", { replicaCpuMillicores: 1000, replicaMemoryGb: 4 }],
    ["the most", { replicaCpuMillicores: 128_000, replicaMemoryGb: 512 }],
    ["a pause", { suspend: true }],
    ["a boost", { boost: { ...SIXTEEN, until: "2026-01-31T20:00:00Z" } }],
    ["a boost until the last time of its time zone", { boost: { ...SIXTEEN, until: LAST_UNTIL } }],
    ["a boost with the largest offset", { boost: { ...SIXTEEN, until: "2026-01-31T20:00:00+23:59" } }],
    ["a boost with an offset", { boost: { ...SIXTEEN, until: "2026-01-31T20:00:00.5+02:00" } }],
  ])("accepts %s", async (_, spec) => {
    expect(await kubectlApply(manifest(spec))).toContain("created");
  });

  it.each([
    [
      "too little",
      { replicaCpuMillicores: 0, replicaMemoryGb: 0 },
      "should be greater than or equal to 1000",
    ],
    [
      "too much",
      { replicaCpuMillicores: 129_000, replicaMemoryGb: 516 },
      "should be less than or equal to 128000",
    ],
    ["half a core", { replicaCpuMillicores: 1500, replicaMemoryGb: 6 }, "should be a multiple of 1000"],
    ["one field alone", { replicaCpuMillicores: 4000 }, "set both, or neither for the default of the tier"],
    ["another ratio", { replicaCpuMillicores: 4000, replicaMemoryGb: 8 }, "must be exactly 4 for each core"],
    ["text", { replicaCpuMillicores: "4000", replicaMemoryGb: 16 }, "must be of type integer"],
    ["an unknown field", { replicaCpu: 4000 }, 'unknown field "spec.replicaCpu"'],
    ["a boost without an end", { boost: SIXTEEN }, "spec.boost.until: Required value"],
    [
      "a boost without a size",
      { boost: { until: UNTIL } },
      "spec.boost.replicaCpuMillicores: Required value",
    ],
    [
      "a boost with another ratio",
      { boost: { ...SIXTEEN, replicaMemoryGb: 16, until: UNTIL } },
      "must be exactly 4 for each core",
    ],
    [
      "a boost that is too large",
      { boost: { replicaCpuMillicores: 129_000, replicaMemoryGb: 516, until: UNTIL } },
      "should be less than or equal to 128000",
    ],
    ...[
      "tomorrow",
      "2026-01-31",
      "2026-01-31T20:00:00",
      "2026-01-31t20:00:00z",
      "2026-13-31T20:00:00Z",
      "2030-01-01T00:00:00+99:99",
      "2030-01-01T00:00:00-24:00",
    ].map((until): [string, object, string] => [
      `the end ${until} of a boost`,
      { boost: { ...SIXTEEN, until } },
      "spec.boost.until: Invalid value",
    ]),
  ])("refuses %s with a message", async (_, spec, sentence) => {
    expect(await refusalOf(manifest(spec))).toContain(sentence);
  });

  it("rejects an invalid change, and leaves the resource unchanged", async () => {
    const name = randomUUID();
    await kubectlApply(manifest({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 }, name));
    expect(await refusalOf(manifest({ replicaCpuMillicores: 2000, replicaMemoryGb: 16 }, name))).toContain(
      "exactly 4 for each core",
    );
    const spec = await kubectl(cluster, ["get", "psc", name, "-n", namespace, "-o", "jsonpath={.spec}"]);
    expect(JSON.parse(spec)).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
  });

  it("makes a resource not ready (kstatus) before a controller has observed it", async () => {
    const name = randomUUID();
    await kubectlApply(manifest({}, name));
    const status = await kubectl(cluster, ["get", "psc", name, "-n", namespace, "-o", "jsonpath={.status}"]);
    expect(JSON.parse(status)).toEqual({ observedGeneration: -1 });
  });

  it("accepts a status with the end of every boost, in UTC", async () => {
    const name = randomUUID();
    const spec = { boost: { ...SIXTEEN, until: LAST_UNTIL } };
    await kubectlApply(manifest(spec, name));
    const report = (until: string) => {
      const patch = JSON.stringify({ status: { boost: { ...SIXTEEN, summary: "16 cpu / 64 Gi", until } } });
      const args = ["--subresource=status", "--type=merge", "--patch", patch];
      return kubectl(cluster, ["patch", "psc", name, "-n", namespace, ...args]);
    };
    await expect(report(new Date(LAST_UNTIL).toISOString())).rejects.toThrow(KubectlError);
    await report(formatTime(boostIn(spec)?.untilMs ?? Number.NaN));
  });

  it("has readable columns, and more of them with -o wide", async () => {
    const name = randomUUID();
    await kubectlApply(manifest({ replicaCpuMillicores: 4000, replicaMemoryGb: 16 }, name));
    const status = {
      desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, summary: "4 cpu / 16 Gi", source: "Spec" },
      effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, summary: "1 cpu / 4 Gi" },
      boost: {
        replicaCpuMillicores: 4000,
        replicaMemoryGb: 16,
        summary: "4 cpu / 16 Gi",
        until: "2030-01-01T20:00:00Z",
      },
      pipes: { total: 5, updated: 2, summary: "2/5" },
      computeUnits: 7.5,
      tier: "scale",
      conditions: [
        {
          type: "Ready",
          status: "False",
          reason: "Progressing",
          message: "2 of 5.",
          lastTransitionTime: "2026-01-01T00:00:00Z",
        },
      ],
    };
    const patch = JSON.stringify({ status });
    await kubectl(cluster, [
      "patch",
      "psc",
      name,
      "-n",
      namespace,
      "--subresource=status",
      "--type=merge",
      "-p",
      patch,
    ]);
    const narrow = await kubectl(cluster, ["get", "psc", name, "-n", namespace]);
    expect(narrow).toMatch(/^NAME +DESIRED +EFFECTIVE +PIPES +READY +REASON +AGE\n/);
    expect(narrow).toMatch(/4 cpu \/ 16 Gi +1 cpu \/ 4 Gi +2\/5 +False +Progressing/);
    const wide = await kubectl(cluster, ["get", "pipes", "-n", namespace, "-o", "wide"]);
    expect(wide).toMatch(/AGE +BOOST UNTIL +UNITS +IN PLACE +TIER +MESSAGE\n/);
    expect(wide).toMatch(/2030-01-01T20:00:00Z +7.5 +scale +2 of 5\./);
  });

  it("has descriptions for kubectl explain", async () => {
    const explain = async (path: string) =>
      (await kubectl(cluster, ["explain", path])).replaceAll(/\s+/g, " ");
    expect(await explain("psc.spec.replicaCpuMillicores")).toContain("1000 to 128000 in steps of 1000");
    expect(await explain("psc.spec.boost")).toContain("takes the place of the requested one until a time");
    expect(await explain("psc.spec.boost.until")).toContain("End of the boost");
    expect(await explain("psc")).toContain("the size of all database pipes of one service");
    expect(await explain("psc.status.effective")).toContain("Last size that every pipe ran at the same time");
  });
});
