import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { getPipeScalingHistory } from "../../src/api/resources/pipe-scaling/history.ts";
import type { HistoryEntry } from "../../src/crd/pipe-scaling.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";
import { reportStatus, scaledTo, sized } from "./statuses.ts";

const environment = setUpEnvironment("scaling-history");
const tenant = setUpTenant(environment);
const api = setUpApi(environment);

async function historyOf({ path, developer }: typeof tenant) {
  const response = await api.send({ path: `${path}/history`, authorization: developer.authorization });
  expect(response.status).toBe(200);
  return successEnvelope(getPipeScalingHistory.result).parse(response.body).result;
}

function report(history: readonly HistoryEntry[]): Promise<void> {
  return reportStatus(environment, tenant.serviceId, { ...scaledTo(2), history: [...history] });
}

describe("GET pipesCdcScaling/history", () => {
  it("is empty until the controller has reported a size", async () => {
    expect(await historyOf(tenant)).toEqual([]);
  });

  it("returns the reported sizes at once, newest first, each with its source, result and request", async () => {
    await report([
      { ...sized(8), source: "TierLimit", result: "Progressing", startedAt: "2026-02-03T12:00:00+01:00" },
      { ...sized(4), source: "Spec", result: "Failed", startedAt: "2026-02-02T12:00:00Z", requestId: "r-2" },
      { ...sized(3), source: "Spec", result: "Superseded", startedAt: "2026-02-01T12:00:00Z" },
      {
        ...sized(2),
        source: "TierDefault",
        result: "Scaled",
        startedAt: "2026-01-31T12:00:00Z",
        completedAt: "2026-01-31T12:04:00Z",
      },
    ]);
    const of = (cores: number) => ({ replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 });
    expect(await historyOf(tenant)).toEqual([
      { ...of(8), source: "TierLimit", result: "propagating", startedAt: "2026-02-03T11:00:00.000Z" },
      {
        ...of(4),
        source: "Spec",
        result: "failed",
        requestId: "r-2",
        startedAt: "2026-02-02T12:00:00.000Z",
      },
      { ...of(3), source: "Spec", result: "superseded", startedAt: "2026-02-01T12:00:00.000Z" },
      {
        ...of(2),
        source: "TierDefault",
        result: "scaled",
        startedAt: "2026-01-31T12:00:00.000Z",
        completedAt: "2026-01-31T12:04:00.000Z",
      },
    ]);
  });

  it("omits times that do not exist, although the CRD accepts them, and changes without a start", async () => {
    const never = "2026-02-01T12:00:00+99:99";
    await report([
      {
        ...sized(8),
        source: "Spec",
        result: "Scaled",
        startedAt: never,
        completedAt: "2026-02-01T12:04:00Z",
      },
      {
        ...sized(4),
        source: "Spec",
        result: "Scaled",
        startedAt: "2026-01-31T12:00:00Z",
        completedAt: never,
      },
    ]);
    expect(await historyOf(tenant)).toEqual([
      {
        replicaCpuMillicores: 4000,
        replicaMemoryGb: 16,
        source: "Spec",
        result: "scaled",
        startedAt: "2026-01-31T12:00:00.000Z",
      },
    ]);
  });

  it("has times with a year of four digits, although the CRD accepts others", async () => {
    const startedAt = "9999-12-31T23:59:59-12:00";
    await report([{ ...sized(8), source: "Spec", result: "Scaled", startedAt }]);
    expect(await historyOf(tenant)).toMatchObject([{ startedAt: "9999-12-31T23:59:59.999Z" }]);
  });

  it("gets 400 for a service without a pipe", async () => {
    const { organizationId, admin } = tenant;
    const service = await environment.addService(organizationId);
    const listed = {
      path: `/v1/organizations/${organizationId}/services`,
      authorization: admin.authorization,
    };
    await waitFor(async () => (await api.send(listed)).text.includes(service), {
      what: "the API to see the service",
    });
    const path = tenant.path.replace(tenant.serviceId, service);
    const response = await api.send({ path: `${path}/history`, authorization: admin.authorization });
    expect(response).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/No database pipe/) },
    });
  });
});
