import { describe, expect, it } from "vitest";
import { checkInPlace, type InPlaceOptions } from "../../../../src/cli/doctor/in-place.ts";
import { Reader } from "../../../../src/cli/doctor/reader.ts";
import { Report } from "../../../../src/cli/doctor/result.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import type { PipeFallback } from "../../../../src/crd/pipe-scaling.ts";
import type { KubeClient } from "../../../../src/kube/client.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

const SERVICE = { id: "service", name: "orders", organizationId: "o", namespace: "pipes" };
const POD_LABELS = { [SERVICE_LABEL]: "service", [TYPE_LABEL]: DATABASE_TYPE };

function deployment(podLabels: Readonly<Record<string, string>> = POD_LABELS) {
  const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 1, podLabels });
  return { ...made, metadata: { ...made.metadata, uid: "u", resourceVersion: "1" } };
}

async function told(options: Partial<InPlaceOptions>, minor = "36"): Promise<string[]> {
  const report = new Report();
  const responses: Readonly<Record<string, object>> = {
    "/version": { major: "1", minor, gitVersion: `v1.${minor}.0` },
    "/api/v1": { resources: [{ name: "pods/resize" }] },
  };
  const client: Pick<KubeClient, "json"> = {
    json: async ({ path }) => JSON.parse(JSON.stringify(responses[path])),
  };
  await checkInPlace(new Reader(client, report, new AbortController().signal), {
    controller: undefined,
    services: new Map([["service", SERVICE]]),
    scalings: [scaling()],
    deployments: [deployment()],
    ...options,
  });
  for (const { severity, remedy } of report.all) if (severity !== "ok") expect(remedy).toMatch(/\S/);
  return report.all.map(({ severity, message }) => `${severity}: ${message}`);
}

function scaling(fallbacks: PipeFallback[] = []) {
  const spec = { strategy: "InPlaceOrRollout" } as const;
  return aScaling(4, { spec, status: { pipes: { total: 1, updated: 1, summary: "1/1", fallbacks } } });
}

describe("doctor, of resizes in place", () => {
  it("reports nothing if no service wants them", async () => {
    expect(await told({ scalings: [aScaling(4)] }, "30")).toEqual([]);
    expect(await told({ services: new Map() }, "30")).toEqual([]);
  });

  it("reports that they are possible", async () => {
    expect(await told({})).toEqual(["ok: Pipes can be resized in place; services that want it: 1."]);
  });

  it("warns of an API server that is too old", async () => {
    expect(await told({}, "34")).toEqual([
      expect.stringMatching(/^warning: The cluster runs Kubernetes v1\.34\.0, so pipes restart/),
    ]);
  });

  it("warns of a pod template without the labels, before a rescale", async () => {
    expect(await told({ deployments: [deployment({})] })).toEqual([
      expect.stringMatching(
        /^warning: The pipe pipes\/a cannot be resized in place: .* does not have the label/,
      ),
    ]);
  });

  it("reports each pipe that fell back, as a warning if someone must fix the reason", async () => {
    const fallbacks: PipeFallback[] = [
      { pipe: "a", reason: "Refused", message: "the quota is exceeded" },
      { pipe: "b", reason: "Deferred", message: "no room" },
    ];
    expect(await told({ scalings: [scaling(fallbacks)] })).toEqual([
      "warning: The pipe pipes/a was not resized in place (Refused): the quota is exceeded.",
      "note: The pipe pipes/b was not resized in place (Deferred): no room.",
    ]);
  });
});
