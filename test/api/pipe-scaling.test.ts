import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { effectivePipeScaling, pipeScaling } from "../../src/api/resources/pipe-scaling/schema.ts";
import { API_FIELD_MANAGER } from "../../src/crd/names.ts";
import { REQUEST_ANNOTATION, scalingRequestFor } from "../../src/crd/scaling-request.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { Tiers } from "../../src/domain/tier.ts";
import { objectPath } from "../../src/kube/paths.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import type { ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";
import { reportStatus } from "./statuses.ts";

const TIERS: Tiers = new Map([
  ["scale", { name: "scale", defaultSize: sizeOfCores(2), maximumSize: sizeOfCores(8) }],
]);

const environment = setUpEnvironment("pipe-scaling");
const { organizationId, admin, developer } = setUpTenant(environment);
const { organizationId: strangers, admin: stranger } = setUpTenant(environment);
const api = setUpApi(environment, { tiers: TIERS });
const small = setUpApi(environment, { tiers: TIERS, maximumCores: 4 });
const large = setUpApi(environment, {
  tiers: new Map([["scale", { name: "scale", defaultSize: sizeOfCores(2), maximumSize: sizeOfCores(64) }]]),
  maximumCores: 64,
});

function pathOf(service: string, organization = organizationId): string {
  return `/v1/organizations/${organization}/services/${service}/pipesCdcScaling`;
}

function get(service: string, { authorization } = admin): Promise<ApiResponse> {
  return api.send({ path: pathOf(service), authorization });
}

function patch(service: string, body: unknown, { authorization } = admin): Promise<ApiResponse> {
  return api.send({
    method: "PATCH",
    path: pathOf(service),
    authorization,
    headers: { "Content-Type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  });
}

async function until(what: string, send: () => Promise<ApiResponse>, status: number): Promise<ApiResponse> {
  return await waitFor(
    async () => {
      const response = await send();
      return response.status === status && response;
    },
    { what },
  );
}

/** Creates a service whose pipes all have this size, and waits until the API sees it. */
async function serviceOf(cores: number): Promise<string> {
  const service = await environment.addService(organizationId);
  await environment.addScaling(service, {}, cores);
  await until("the API to see the size", () => get(service), 200);
  return service;
}

const FOUR_CORES = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };

describe("GET pipesCdcScaling", () => {
  it("returns the size that all pipes run, not the requested one", async () => {
    const service = await serviceOf(2);
    expect((await patch(service, FOUR_CORES)).status).toBe(200);

    const before = await get(service, developer);
    await environment.report(service, 4);
    const after = await waitFor(
      async () => {
        const { text, body } = await get(service);
        return text.includes("4000") && body;
      },
      { what: "the API to see the new size" },
    );

    expect(successEnvelope(effectivePipeScaling).parse(before.body).result).toEqual({
      replicaCpuMillicores: 2000,
      replicaMemoryGb: 8,
    });
    expect(successEnvelope(effectivePipeScaling).parse(after).result).toEqual(FOUR_CORES);
  });

  it("returns a size that cannot be requested, such as that of pipes that ran before, as it is", async () => {
    const service = await environment.addService(organizationId);
    await environment.addScaling(service, {});
    const size = { replicaCpuMillicores: 500, replicaMemoryGb: 2 };
    await reportStatus(environment, service, { effective: { ...size, summary: "0.5 cpu / 2 Gi" } });
    const { body } = await until("the API to see the size", () => get(service), 200);
    expect(successEnvelope(effectivePipeScaling).parse(body).result).toEqual(size);
  });

  it("returns 400 for a service without pipes", async () => {
    const service = await environment.addService(organizationId);
    const response = await until("the API to see the service", () => get(service), 400);
    expect(response.body).toMatchObject({
      error: expect.stringContaining("No database pipe has been provisioned"),
    });
  });

  it("returns 503 with Retry-After until a size is reported", async () => {
    const service = await environment.addService(organizationId);
    await environment.addScaling(service, {});
    const response = await until("the API to see the PipeScaling", () => get(service), 503);
    expect(response.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
  });

  it("ignores a PipeScaling with the same name in another namespace", async () => {
    const service = await environment.addService(organizationId);
    const elsewhere = { ...PIPE_SCALINGS, namespace: environment.records };
    await environment.admin.json({
      method: "POST",
      path: objectPath(PIPE_SCALINGS, elsewhere.namespace, "").slice(0, -1),
      body: { apiVersion: "pipes.clouddb.dev/v1beta1", kind: "PipeScaling", metadata: { name: service } },
    });
    // A later object in the right namespace shows that the API has seen the earlier one.
    await serviceOf(2);
    expect((await get(service)).status).toBe(400);
  });
});

describe("PATCH pipesCdcScaling", () => {
  it("returns the accepted size, and applies it with the request under its own field manager", async () => {
    const service = await serviceOf(2);
    const created = await environment.scaling(service);

    const response = await patch(service, FOUR_CORES);

    const envelope = successEnvelope(pipeScaling).parse(response.body);
    expect(envelope.result).toEqual(FOUR_CORES);
    const written = await environment.scaling(service);
    expect(written.spec).toEqual(FOUR_CORES);
    expect(written.metadata.uid).toBe(created.metadata.uid);
    const request = scalingRequestFor(sizeOfCores(4), written.metadata.annotations?.[REQUEST_ANNOTATION]);
    expect(request).toMatchObject({ requestId: envelope.requestId, apiKey: admin.id });
    expect(Date.parse(request?.requestedAt ?? "")).toBeGreaterThan(
      Date.parse(created.metadata.creationTimestamp ?? ""),
    );
    const own = written.metadata.managedFields?.find(({ manager }) => manager === API_FIELD_MANAGER);
    expect(own?.fieldsV1).toEqual({
      "f:metadata": { "f:annotations": { [`f:${REQUEST_ANNOTATION}`]: {} } },
      "f:spec": { "f:replicaCpuMillicores": {}, "f:replicaMemoryGb": {} },
    });
  });

  it("takes over the fields from other field managers", async () => {
    const service = await environment.addService(organizationId);
    await environment.addScaling(service, { replicaCpuMillicores: 1000, replicaMemoryGb: 4 }, 1);
    await until("the API to see the size", () => get(service), 200);

    expect((await patch(service, FOUR_CORES)).status).toBe(200);
    expect((await environment.scaling(service)).spec).toEqual(FOUR_CORES);
  });

  it.each([
    ["only the CPU", { replicaCpuMillicores: 8000 }],
    ["only the memory", { replicaMemoryGb: 32 }],
  ])("derives the other field from %s", async (_what, body) => {
    const service = await serviceOf(2);
    const response = await patch(service, body);
    expect(response).toMatchObject({
      status: 200,
      body: { result: { replicaCpuMillicores: 8000, replicaMemoryGb: 32 } },
    });
    expect((await environment.scaling(service)).spec).toEqual({
      replicaCpuMillicores: 8000,
      replicaMemoryGb: 32,
    });
  });

  it("accepts IDs in uppercase, and logs them in lowercase", async () => {
    const service = await serviceOf(2);
    const path = pathOf(service.toUpperCase(), organizationId.toUpperCase());
    const response = await api.send({
      method: "PATCH",
      path,
      authorization: admin.authorization,
      headers: { "Content-Type": "application/merge-patch+json" },
      body: JSON.stringify(FOUR_CORES),
    });
    expect(response.status).toBe(200);
    const audit = api.log.find(
      (line) => line["audit"] && line["requestId"] === response.headers["x-request-id"],
    );
    expect(audit).toMatchObject({
      organization: organizationId,
      service,
      apiKey: admin.id,
      to: "4 cpu / 16 Gi",
    });
  });

  it("accepts sizes up to the platform's maximum, which can be above 24 cores", async () => {
    const service = await serviceOf(1);
    const send = (replicaCpuMillicores: number) =>
      large.send({
        method: "PATCH",
        path: pathOf(service),
        authorization: admin.authorization,
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ replicaCpuMillicores }),
      });
    expect(await send(64_000)).toMatchObject({
      status: 200,
      body: { result: { replicaCpuMillicores: 64_000, replicaMemoryGb: 256 } },
    });
    expect((await environment.scaling(service)).spec).toMatchObject({ replicaCpuMillicores: 64_000 });
    expect(await send(65_000)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("must be an integer from 1000 to 64000, a multiple of 1000") },
    });
  });

  it("returns a size above the platform's maximum if the service has it, but does not accept it again", async () => {
    const service = await serviceOf(8);
    const request = { path: pathOf(service), authorization: admin.authorization };
    const inUse = { replicaCpuMillicores: 8000, replicaMemoryGb: 32 };
    // Each API has its own caches.
    const isSeen = async () => (await small.send(request)).status === 200;
    await waitFor(isSeen, { what: "the other API to see the size" });
    expect(await small.send(request)).toMatchObject({ status: 200, body: { result: inUse } });
    const again = await small.send({
      ...request,
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(inUse),
    });
    expect(again).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("must be an integer from 1000 to 4000") },
    });
    const { body } = await small.send({ path: "/openapi.json" });
    expect(body).toMatchObject({
      components: {
        schemas: { PipeScalingPatch: { properties: { replicaCpuMillicores: { maximum: 4000 } } } },
      },
    });
  });

  it("returns 400 for a size above the tier's maximum, and changes nothing", async () => {
    const service = await serviceOf(2);
    const before = await environment.scaling(service);
    const response = await patch(service, { replicaCpuMillicores: 9000 });
    expect(response).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/tier.*replicaCpuMillicores at most 8000/) },
    });
    expect((await environment.scaling(service)).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
  });

  it("returns 409 while scaling is suspended, and changes nothing", async () => {
    const service = await environment.addService(organizationId);
    const before = await environment.addScaling(service, { suspend: true }, 2);
    await until("the API to see the PipeScaling", () => get(service), 200);
    expect((await patch(service, FOUR_CORES)).status).toBe(409);
    expect((await environment.scaling(service)).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
  });

  it("returns 400 for a service without pipes, and creates nothing", async () => {
    const service = await environment.addService(organizationId);
    const response = await until("the API to see the service", () => patch(service, FOUR_CORES), 400);
    expect(response.body).toMatchObject({
      error: expect.stringContaining("No database pipe has been provisioned"),
    });
    await expect(environment.scaling(service)).rejects.toMatchObject({ code: 404 });
  });

  it("returns 503 for a PipeScaling that is being deleted", async () => {
    const service = await serviceOf(2);
    const path = objectPath(PIPE_SCALINGS, environment.pipes, service);
    const finalizers = (names: readonly string[]) =>
      environment.admin.json({
        method: "PATCH",
        path,
        patchType: "application/merge-patch+json",
        body: { metadata: { finalizers: names } },
      });
    await finalizers(["test.pipes.clouddb.dev/hold"]);
    await environment.admin.json({ method: "DELETE", path });

    const response = await until("the API to see the deletion", () => patch(service, FOUR_CORES), 503);

    await finalizers([]);
    expect(response.headers["retry-after"]).toBeDefined();
  });

  it("applies to an object that was deleted and recreated", async () => {
    const service = await serviceOf(2);
    // Ten rounds, so that at least one is faster than the watch. In each, the response must be for the new object.
    for (let round = 0; round < 10; round += 1) {
      await environment.admin.json({
        method: "DELETE",
        path: objectPath(PIPE_SCALINGS, environment.pipes, service),
      });
      const { metadata } = await environment.addScaling(service, {});
      // The API returns 400 while it has seen the deletion but not the creation.
      await until("the API to accept the size", () => patch(service, FOUR_CORES), 200);
      expect(await environment.scaling(service)).toMatchObject({
        metadata: { uid: metadata.uid },
        spec: FOUR_CORES,
      });
    }
  });

  it("changes nothing if the client disconnects in the middle of its body", async () => {
    const service = await serviceOf(2);
    const before = api.log.length;
    const socket = connect(Number(new URL(api.url).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write(
      `PATCH ${pathOf(service)} HTTP/1.1\r\nHost: a\r\nAuthorization: ${admin.authorization}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
    );
    socket.destroy();
    await waitFor(
      () => api.log.slice(before).some(({ method, status }) => method === "PATCH" && status === 400),
      {
        what: "the request to be aborted",
      },
    );
    expect((await get(service)).status).toBe(200);
    expect((await environment.scaling(service)).spec).toEqual({});
  });
});

describe("a request for a service", () => {
  it("gets the same response for an absent service and for another tenant's", async () => {
    const service = await serviceOf(2);
    const absent = randomUUID();
    const paths = [
      // In paths with the owner's organization and with an absent organization.
      pathOf(service),
      pathOf(absent),
      pathOf(service, randomUUID()),
    ];
    const responses: ApiResponse[] = [];
    for (const path of paths) {
      for (const method of ["GET", "PATCH"]) {
        const headers = { "Content-Type": "application/json" };
        responses.push(
          await api.send({ method, path, authorization: stranger.authorization, headers, body: "{}" }),
        );
      }
    }
    const [first] = responses;
    expect(first?.status).toBe(404);
    for (const { status, text, headers } of responses) {
      const { "x-request-id": _id, date: _date, ...others } = headers;
      expect({ status, text, others }).toMatchObject({ status: 404, text: first?.text });
      expect(Object.keys(headers)).toEqual(Object.keys(first?.headers ?? {}));
    }
  });

  it("gets the same response within its own organization for an absent service and for another tenant's", async () => {
    const service = await serviceOf(2);
    const { authorization } = stranger;
    const others = await api.send({ path: pathOf(service, strangers), authorization });
    const absent = await api.send({ path: pathOf(randomUUID(), strangers), authorization });
    expect(others).toMatchObject({ status: 404, text: absent.text });
    expect((await environment.scaling(service)).spec).toEqual({});
  });

  it("gets 404 for its own service under another organization", async () => {
    const service = await serviceOf(2);
    const path = pathOf(service, randomUUID());
    expect((await api.send({ path, authorization: admin.authorization })).status).toBe(404);
  });

  it("gets the same 403 for a developer's PATCH in its own organization and in another", async () => {
    const service = await serviceOf(2);
    const own = await patch(service, FOUR_CORES, developer);
    const foreign = await api.send({
      method: "PATCH",
      path: pathOf(service, randomUUID()),
      authorization: developer.authorization,
    });
    const nonsense = await api.send({
      method: "PATCH",
      path: pathOf("%zz"),
      authorization: developer.authorization,
    });
    expect([own.status, foreign.status, nonsense.status]).toEqual([403, 403, 403]);
    expect(foreign.text).toBe(own.text);
  });

  it("gets 404 after the service moves to another organization", async () => {
    const service = await serviceOf(2);
    const moved = serviceRecord({ id: service, organizationId: randomUUID(), namespace: environment.pipes });
    await environment.admin.json({
      method: "PUT",
      path: objectPath({ apiVersion: "v1", plural: "configmaps" }, environment.records, moved.metadata.name),
      body: moved,
    });
    await until("the API to see the move", () => get(service), 404);
  });

  it("gets 500 for a malformed service only in its own organization", async () => {
    const record = serviceRecord({ organizationId, namespace: "Not a namespace" });
    await environment.addRecord(record);
    const service = record.metadata.name.slice("service-".length);
    await until("the API to see the service", () => get(service), 500);
    expect((await api.send({ path: pathOf(service), authorization: stranger.authorization })).status).toBe(
      404,
    );
  });
});

describe("an ID in the path", () => {
  it.each([
    ["00000000-0000-0000-0000-000000000000", 404],
    ["01890a5d-ac96-c74b-bcce-b302099a8057", 404],
    ["{01890a5d-ac96-774b-bcce-b302099a8057}", 400],
    ["01890a5d-ac96-774b-bcce-b302099a805", 400],
    ["01890a5dac96774bbcceb302099a8057", 400],
    ["%00", 400],
    ["%zz", 400],
    ["%c0%af", 400],
    ["constructor", 400],
    ["__proto__", 400],
  ])("with the value %s results in %i, as organization ID and as service ID", async (id, status) => {
    for (const path of [pathOf(id), pathOf(randomUUID(), id)]) {
      expect(await api.send({ path, authorization: admin.authorization })).toMatchObject({
        status,
        body: { status },
      });
    }
  });
});
