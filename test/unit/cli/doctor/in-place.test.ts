import { describe, expect, it } from "vitest";
import { checkInPlace } from "../../../../src/cli/doctor/in-place.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { clusterWith, versionOf } from "./fake-reads.ts";

const POD_LABELS = { [SERVICE_LABEL]: "service", [TYPE_LABEL]: DATABASE_TYPE };

interface Options {
  readonly minor?: string;
  readonly strategy?: string;
  readonly podLabels?: Readonly<Record<string, string>>;
  readonly fallbacks?: readonly object[];
}

async function results({
  minor = "36",
  strategy = "InPlaceOrRollout",
  podLabels = POD_LABELS,
  fallbacks = [],
}: Options = {}) {
  const pipe = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 1, podLabels });
  const scaling = {
    metadata: { name: "service", namespace: "pipes" },
    spec: { strategy },
    status: { pipes: { fallbacks } },
  };
  const cluster = clusterWith({
    "/version": versionOf(minor),
    "/apis/apps/v1/deployments": { metadata: {}, items: [pipe] },
    "/apis/pipes.clouddb.dev/v1beta1/pipescalings": { metadata: {}, items: [scaling] },
  });
  const checks = await checkInPlace(cluster);
  for (const { severity, remedy } of checks) if (severity !== "ok") expect(remedy).toMatch(/\S/);
  return checks.map(({ severity, message }) => `${severity}: ${message}`);
}

describe("the in-place check of doctor", () => {
  it("reports nothing if no service uses in-place resizes", async () => {
    expect(await results({ strategy: "Rollout", minor: "30" })).toEqual([]);
  });

  it("reports that all pipes can be resized in place", async () => {
    expect(await results()).toEqual(["ok: Where resizes in place are wanted, the pod templates allow them."]);
  });

  it("warns about an API server that is too old", async () => {
    expect(await results({ minor: "33" })).toEqual([
      expect.stringMatching(
        /^warning: The cluster runs Kubernetes v1\.33\.0, so no pipe is resized in place/,
      ),
    ]);
    expect(await results({ minor: "34" })).toEqual([
      "ok: Where resizes in place are wanted, the pod templates allow them.",
    ]);
  });

  it("warns about a pod template without the labels before a rescale", async () => {
    expect(await results({ podLabels: {} })).toEqual([
      expect.stringMatching(
        /^warning: The pipe pipes\/a cannot be resized in place: .* does not have the label/,
      ),
    ]);
  });

  it("checks pipes with the strategy InPlace, too", async () => {
    expect(await results({ strategy: "InPlace", podLabels: {} })).toEqual([
      expect.stringMatching(/^warning: The pipe pipes\/a cannot be resized in place/),
    ]);
  });

  it("adds a note with the reason for each pipe that was not resized in place", async () => {
    const fallbacks = [{ pipe: "a", reason: "Deferred", message: "the node has no room" }];
    expect(await results({ fallbacks })).toEqual([
      "note: The pipe pipes/a was not resized in place (Deferred): the node has no room.",
    ]);
  });
});
