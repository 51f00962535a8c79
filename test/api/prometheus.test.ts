import { describe, expect, it } from "vitest";
import { boostFields, sizeFields } from "../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { expositionOf } from "../chart/exposition.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";
import { progressingTo, reportStatus, scaledTo } from "./statuses.ts";

const environment = setUpEnvironment("prometheus");
const { organizationId, serviceId, developer } = setUpTenant(environment);
const api = setUpApi(environment, { rateLimit: 1000 });
const { authorization } = developer;
const OF_ALL = `/v1/organizations/${organizationId}/prometheus`;
const OF_ONE = `/v1/organizations/${organizationId}/services/${serviceId}/prometheus`;

/** The values of a metric, by ID of the service. */
async function valuesOf(path: string, metric: string): Promise<Record<string, string>> {
  const { samples } = expositionOf((await api.send({ path, authorization })).text);
  const own = samples.filter(({ name }) => name === `pipe_scaling_service_${metric}`);
  return Object.fromEntries(own.map(({ labels, value }) => [labels.get("service_id"), value]));
}

describe("GET prometheus of an organization", () => {
  it("returns text for Prometheus, which follows the status of each service", async () => {
    const other = await environment.addService(organizationId);
    await environment.addScaling(other, {}, 2);
    await reportStatus(environment, serviceId, { ...progressingTo(4, 2), replicas: 3 });
    await reportStatus(environment, other, { ...scaledTo(2), replicas: 1 });
    await expect.poll(() => valuesOf(OF_ALL, "compute_units")).toEqual({ [serviceId]: "6", [other]: "1" });
    expect(await valuesOf(OF_ALL, "updated_pipes")).toEqual({ [serviceId]: "1", [other]: "3" });
    expect(await valuesOf(OF_ALL, "effective_cpu_cores")).toEqual({ [serviceId]: "2", [other]: "2" });
  });

  it("is about the size of a boost while it is in effect", async () => {
    const boosted = await environment.addService(organizationId);
    const untilMs = Date.now() + 3_600_000;
    const boost = boostFields({ size: sizeOfCores(16), untilMs });
    await environment.addScaling(boosted, { ...sizeFields(sizeOfCores(2)), boost }, 2);
    const status = { ...scaledTo(16), replicas: 3, boost: { ...boost, summary: "16 cpu / 64 Gi" } };
    await reportStatus(environment, boosted, status);
    const path = `/v1/organizations/${organizationId}/services/${boosted}/prometheus`;
    await expect.poll(() => valuesOf(path, "compute_units")).toEqual({ [boosted]: "24" });
    expect(await valuesOf(OF_ALL, "compute_units")).toMatchObject({ [boosted]: "24" });
    expect(await valuesOf(path, "desired_cpu_cores")).toEqual({ [boosted]: "16" });
    expect(await valuesOf(path, "updated_pipes")).toEqual({ [boosted]: "3" });
  });

  it("omits a service that has never had a pipe", async () => {
    const without = await environment.addService(organizationId);
    const path = `/v1/organizations/${organizationId}/services/${without}/prometheus`;
    await expect.poll(async () => (await api.send({ path, authorization })).status).toBe(200);
    expect(await valuesOf(path, "failed_pipes")).toEqual({});
    expect(Object.keys(await valuesOf(OF_ALL, "failed_pipes"))).not.toContain(without);
  });
});

describe("GET prometheus of a service", () => {
  it("returns only the metrics of the service", async () => {
    expect(Object.keys(await valuesOf(OF_ONE, "failed_pipes"))).toEqual([serviceId]);
  });

  it("has the headers of every response", async () => {
    const first = await api.send({ path: OF_ONE, authorization });
    expect(first).toMatchObject({
      status: 200,
      headers: {
        "content-type": "text/plain; version=0.0.4; charset=utf-8",
        "cache-control": "no-store",
        "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
        "x-content-type-options": "nosniff",
      },
    });
    const head = await api.send({ method: "HEAD", path: OF_ONE, authorization });
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(first.headers["content-length"]);
  });

  it("has errors in JSON, like every operation", async () => {
    expect(await api.send({ path: OF_ONE })).toMatchObject({
      status: 401,
      headers: { "content-type": "application/json" },
      body: { status: 401 },
    });
  });
});
