import { describe, expect, it } from "vitest";
import { checkMaximumSize } from "../../../../src/cli/doctor/maximum-size.ts";
import { sizeFields } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { clusterWith } from "./fake-reads.ts";

const LABELS = {
  "app.kubernetes.io/component": "api",
  "app.kubernetes.io/part-of": "pipe-scaling-operator",
};

/** The check for an API with this largest size, and a service for each number of cores. */
function check(maximumCores: string | undefined, ...cores: readonly (number | undefined)[]) {
  const env = [
    { name: "PIPE_SCALING_NAMESPACE", value: "records" },
    ...(maximumCores === undefined ? [] : [{ name: "PIPE_SCALING_MAXIMUM_CORES", value: maximumCores }]),
  ];
  const api = {
    metadata: { name: "api", namespace: "system", labels: LABELS },
    spec: { template: { metadata: { labels: LABELS }, spec: { containers: [{ name: "api", env }] } } },
  };
  const scalings = cores.map((count, index) => ({
    metadata: { name: `service-${index}`, namespace: "pipes" },
    spec: count === undefined ? {} : sizeFields(sizeOfCores(count)),
  }));
  return checkMaximumSize(
    clusterWith({
      "/apis/apps/v1/deployments": { metadata: {}, items: [api] },
      "/apis/pipes.clouddb.dev/v1beta1/pipescalings": { metadata: {}, items: scalings },
    }),
  );
}

describe("the check of the largest size", () => {
  it("reports nothing if no service has more, or the API has no such setting", async () => {
    expect(await check("16", 16, 1, undefined)).toEqual([]);
    expect(await check(undefined, 24)).toEqual([]);
  });

  it("names a service that keeps a larger size, and counts the others", async () => {
    const [result, ...others] = await check("16", 8, 24, 17);
    expect(others).toEqual([]);
    expect(result).toEqual({
      severity: "note",
      message:
        "The API accepts at most 16 cores, but a service has more: pipes/service-1 with 24 cpu / 96 Gi (and 1 more). It keeps this size until another one is requested. The API rejects this one.",
      remedy:
        "Request a smaller size (pipe-scaling scaling set <service> --cores 16), or raise sizes.maximumCores in the values of the chart.",
    });
    const [one] = await check("16", 24);
    expect(one?.message).toContain("24 cpu / 96 Gi. It keeps");
  });
});
