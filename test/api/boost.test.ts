import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { boost } from "../../src/api/resources/pipe-scaling/boost-schema.ts";
import { pipeScalingProgress } from "../../src/api/resources/pipe-scaling/progress-schema.ts";
import { API_FIELD_MANAGER, API_VERSION, KIND } from "../../src/crd/names.ts";
import {
  BOOST_REQUEST_ANNOTATION,
  boostRequestFor,
  REQUEST_ANNOTATION,
} from "../../src/crd/scaling-request.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { objectPath } from "../../src/kube/paths.ts";
import type { ApiRequest, ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("boost");
const { organizationId, admin, developer } = setUpTenant(environment);
const api = setUpApi(environment, { maxBoostMs: 2 * 3_600_000, rateLimit: 1000 });

const SIXTEEN = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64 };
const FOUR = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };

function pathOf(service: string, below = "/boost"): string {
  return `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling${below}`;
}

function call(method: string, path: string, body?: object, { authorization } = admin): Promise<ApiResponse> {
  const request: ApiRequest = { method, path, authorization };
  if (!body) return api.send(request);
  return api.send({
    ...request,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

function inMs(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

/** A service that the API sees. */
async function aService(spec = {}): Promise<string> {
  const service = await environment.addService(organizationId);
  await environment.addScaling(service, spec, 2);
  const isSeen = async () => (await call("GET", pathOf(service, ""))).status === 200;
  await waitFor(isSeen, { what: "the API to see the service" });
  return service;
}

function fieldsOf(object: Awaited<ReturnType<typeof environment.scaling>>): readonly object[] {
  const own = object.metadata.managedFields?.filter(({ manager }) => manager === API_FIELD_MANAGER) ?? [];
  return own.map(({ fieldsV1 = {} }) => fieldsV1);
}

describe("PUT pipesCdcScaling/boost", () => {
  it("returns the boost in UTC, and writes it and its request, but no size", async () => {
    const service = await aService();
    const until = new Date(Math.floor(Date.now() / 1000) * 1000 + 3_600_000);
    const offset = new Date(until.getTime() + 2 * 3_600_000).toISOString().replace(".000Z", "+02:00");
    const response = await call("PUT", pathOf(service), { replicaCpuMillicores: 16_000, until: offset });
    const { requestId, result } = successEnvelope(boost).parse(response.body);
    expect(result).toEqual({ ...SIXTEEN, until: until.toISOString() });
    const written = await environment.scaling(service);
    expect(written.spec).toEqual({ boost: result });
    const annotation = written.metadata.annotations?.[BOOST_REQUEST_ANNOTATION];
    expect(boostRequestFor({ size: sizeOfCores(16), untilMs: until.getTime() }, annotation)).toMatchObject({
      requestId,
      apiKey: admin.id,
    });
    expect(fieldsOf(written)).toEqual([
      {
        "f:metadata": { "f:annotations": { ".": {}, [`f:${BOOST_REQUEST_ANNOTATION}`]: {} } },
        "f:spec": { "f:boost": {} },
      },
    ]);
    expect(api.log).toContainEqual(
      expect.objectContaining({
        audit: "boost",
        requestId,
        to: `16 cpu / 64 Gi until ${until.toISOString()}`,
      }),
    );
  });

  it("leaves a size to its owner, who can apply it during the boost without a conflict", async () => {
    const service = await aService();
    const apply = (spec: object) =>
      environment.admin.json<object>({
        method: "PATCH",
        path: objectPath(PIPE_SCALINGS, environment.pipes, service),
        query: { fieldManager: "argocd-controller", force: false },
        patchType: "application/apply-patch+yaml",
        body: { apiVersion: API_VERSION, kind: KIND, metadata: { name: service }, spec },
      });
    await apply(FOUR);
    const boosted = { ...SIXTEEN, until: inMs(3_600_000) };
    expect((await call("PUT", pathOf(service), boosted)).status).toBe(200);
    await apply({ replicaCpuMillicores: 8000, replicaMemoryGb: 32 });
    const { spec } = await environment.scaling(service);
    expect(spec).toEqual({ replicaCpuMillicores: 8000, replicaMemoryGb: 32, boost: boosted });
  });

  it("replaces an earlier boost, also one of another writer", async () => {
    const service = await aService({ boost: { ...FOUR, until: inMs(1_800_000) } });
    const later = { ...SIXTEEN, until: inMs(3_600_000) };
    expect((await call("PUT", pathOf(service), later)).status).toBe(200);
    expect((await environment.scaling(service)).spec).toEqual({ boost: later });
  });

  it.each([
    ["the past", -1000, /^until must be in the future: it is now \d{4}-.+Z\.$/],
    ["three hours", 3 * 3_600_000, /^until must be at most 120 minutes ahead, so not after \d{4}-.+Z\.$/],
  ])("rejects an end in %s with 400", async (_, ms, sentence) => {
    const service = await aService();
    const response = await call("PUT", pathOf(service), { ...SIXTEEN, until: inMs(ms) });
    expect(response).toMatchObject({ status: 400, body: { error: expect.stringMatching(sentence) } });
    expect((await environment.scaling(service)).spec).toEqual({});
  });

  it("is rejected with 409 while the service is suspended, like its end", async () => {
    const service = await aService({ suspend: true, boost: { ...SIXTEEN, until: inMs(3_600_000) } });
    expect((await call("PUT", pathOf(service), { ...FOUR, until: inMs(60_000) })).status).toBe(409);
    expect((await call("DELETE", pathOf(service))).status).toBe(409);
  });

  it("gets 403 with the role developer, which may read the boost", async () => {
    const service = await aService({ boost: { ...SIXTEEN, until: inMs(3_600_000) } });
    expect((await call("PUT", pathOf(service), { ...FOUR, until: inMs(60_000) }, developer)).status).toBe(
      403,
    );
    expect((await call("DELETE", pathOf(service), undefined, developer)).status).toBe(403);
    expect((await call("GET", pathOf(service), undefined, developer)).status).toBe(200);
  });
});

describe("the progress and the size during a boost", () => {
  it("show the boost with the time left, and a PATCH changes only the size after it", async () => {
    const service = await aService();
    const put = await call("PUT", pathOf(service), { ...SIXTEEN, until: inMs(3_600_000) });
    const { requestId } = successEnvelope(boost).parse(put.body);
    expect((await call("PATCH", pathOf(service, ""), FOUR)).status).toBe(200);
    const response = await call("GET", pathOf(service, "/progress"));
    const { result } = successEnvelope(pipeScalingProgress).parse(response.body);
    expect(result).toMatchObject({
      state: "propagating",
      reason: "Pending",
      requestId,
      desired: { ...SIXTEEN, source: "Boost" },
      boost: SIXTEEN,
    });
    expect(result.boost?.remainingSeconds).toBeGreaterThan(3500);
    expect(result.boost?.remainingSeconds).toBeLessThanOrEqual(3600);
    const { spec, metadata } = await environment.scaling(service);
    expect(spec).toMatchObject({ ...FOUR, boost: SIXTEEN });
    expect(Object.keys(metadata.annotations ?? {}).toSorted()).toEqual([
      BOOST_REQUEST_ANNOTATION,
      REQUEST_ANNOTATION,
    ]);
  });
});

describe("DELETE pipesCdcScaling/boost", () => {
  it("returns 200 without a result, removes the boost and its request, and keeps the size", async () => {
    const service = await aService();
    expect((await call("PATCH", pathOf(service, ""), FOUR)).status).toBe(200);
    expect((await call("PUT", pathOf(service), { ...SIXTEEN, until: inMs(3_600_000) })).status).toBe(200);
    const response = await call("DELETE", pathOf(service));
    expect(response).toMatchObject({ status: 200, body: { status: 200 } });
    expect(response.body).not.toHaveProperty("result");
    const { spec, metadata } = await environment.scaling(service);
    expect(spec).toEqual(FOUR);
    expect(Object.keys(metadata.annotations ?? {})).toEqual([REQUEST_ANNOTATION]);
    const again = await call("DELETE", pathOf(service));
    expect(again).toMatchObject({ status: 404, body: { error: expect.stringContaining("has no boost") } });
    expect((await call("GET", pathOf(service))).status).toBe(404);
  });

  it("also ends a boost of another writer", async () => {
    const service = await aService({ ...FOUR, boost: { ...SIXTEEN, until: inMs(3_600_000) } });
    expect((await call("DELETE", pathOf(service))).status).toBe(200);
    expect((await environment.scaling(service)).spec).toEqual(FOUR);
  });
});

describe("GET pipesCdcScaling/boost", () => {
  it("returns 404 once the boost has ended, as DELETE does, although the spec still has it", async () => {
    const service = await aService();
    expect((await call("PUT", pathOf(service), { ...SIXTEEN, until: inMs(10_000) })).status).toBe(200);
    expect((await call("GET", pathOf(service))).status).toBe(200);
    const isOver = async () => (await call("GET", pathOf(service))).status === 404;
    await waitFor(isOver, { what: "the boost to end", intervalMs: 500 });
    expect((await call("DELETE", pathOf(service))).status).toBe(404);
    expect((await environment.scaling(service)).spec).toMatchObject({ boost: SIXTEEN });
  });
});

describe("a service without pipes", () => {
  it("gets 400 for a boost, as for a size", async () => {
    const service = await environment.addService(organizationId);
    const isSeen = async () => (await call("GET", pathOf(service, ""))).status === 400;
    await waitFor(isSeen, { what: "the API to see the service" });
    for (const method of ["GET", "DELETE"]) expect((await call(method, pathOf(service))).status).toBe(400);
    expect((await call("PUT", pathOf(service), { ...SIXTEEN, until: inMs(60_000) })).status).toBe(400);
  });
});
