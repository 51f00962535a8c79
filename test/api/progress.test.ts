import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import {
  type PipeScalingProgressObject,
  pipeScalingProgress,
} from "../../src/api/resources/pipe-scaling/progress-schema.ts";
import type { PipeScalingSpec, PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { objectPath } from "../../src/kube/paths.ts";
import type { ApiRequest, ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";
import { fieldsOf, NEXT_RETRY, progressingTo, refusedAt, reportStatus, scaledTo } from "./statuses.ts";

const TEMPLATE = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling/progress";

const environment = setUpEnvironment("progress");
const { organizationId, admin, developer } = setUpTenant(environment);
const { admin: stranger } = setUpTenant(environment);
const api = setUpApi(environment, { pathAliases: new Map([["clickpipesCdcScaling", "pipesCdcScaling"]]) });

function pathOf(service: string, segment = "pipesCdcScaling"): string {
  return `/v1/organizations/${organizationId}/services/${service}/${segment}/progress`;
}

function send(service: string, more: Partial<ApiRequest> = {}): Promise<ApiResponse> {
  return api.send({ path: pathOf(service), authorization: admin.authorization, ...more });
}

async function patch(service: string, cores: number) {
  const response = await api.send({
    method: "PATCH",
    path: pathOf(service).replace("/progress", ""),
    authorization: admin.authorization,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fieldsOf(sizeOfCores(cores))),
  });
  expect(response.status).toBe(200);
  return response.headers["x-request-id"];
}

/** Waits for a progress that satisfies the condition, and returns it. */
async function progressOnce(
  service: string,
  seen: (progress: PipeScalingProgressObject) => boolean,
): Promise<PipeScalingProgressObject> {
  return await waitFor(
    async () => {
      const { status, body } = await send(service);
      const progress = status === 200 && successEnvelope(pipeScalingProgress).parse(body).result;
      return progress && seen(progress) && progress;
    },
    { what: "the API to see the progress" },
  );
}

/** Creates a service with a PipeScaling, and waits until the API sees it. */
async function serviceWith(spec: PipeScalingSpec, status?: PipeScalingStatus): Promise<string> {
  const service = await environment.addService(organizationId);
  await environment.addScaling(service, spec);
  if (status) await reportStatus(environment, service, status);
  await progressOnce(service, ({ reason }) => !status || reason !== "Pending");
  return service;
}

describe("GET pipesCdcScaling/progress", () => {
  it("returns the caller's request immediately, and then the state that the controller reports", async () => {
    const service = await serviceWith({}, scaledTo(1));
    const requestId = await patch(service, 4);

    const { body } = await send(service);
    expect(successEnvelope(pipeScalingProgress).parse(body).result).toEqual({
      state: "propagating",
      reason: "Pending",
      message: "The size has been accepted, but its progress is not known yet.",
      desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, source: "Spec" },
      effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      pipes: { total: 3, updated: 0 },
      failures: [],
      requestId,
    });

    await reportStatus(environment, service, progressingTo(4, 1, requestId));
    expect(await progressOnce(service, ({ reason }) => reason === "Progressing")).toMatchObject({
      state: "propagating",
      pipes: { total: 3, updated: 1 },
      requestId,
      startedAt: "2026-01-31T12:00:00.000Z",
    });

    await reportStatus(environment, service, scaledTo(4, requestId));
    expect(await progressOnce(service, ({ state }) => state === "scaled")).toMatchObject({
      effective: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 },
      pipes: { total: 3, updated: 3 },
      completedAt: "2026-01-31T12:00:00.000Z",
    });
  });

  it("returns a later request that replaced the caller's, and a later size that was set without a request", async () => {
    const service = await serviceWith({}, scaledTo(1));
    await patch(service, 2);
    const second = await patch(service, 4);
    expect((await send(service)).text).toContain(`"requestId":"${second}"`);
    await environment.admin.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, environment.pipes, service),
      patchType: "application/merge-patch+json",
      body: { spec: fieldsOf(sizeOfCores(8)) },
    });
    const edited = await progressOnce(service, ({ requestId }) => requestId !== second);
    expect(edited).toMatchObject({ state: "propagating", desired: { replicaCpuMillicores: 8000 } });
    expect(edited).not.toHaveProperty("requestId");
  });

  it("reports suspended while the service is suspended, and propagating after it is resumed", async () => {
    const service = await serviceWith({ suspend: true });
    expect(await progressOnce(service, () => true)).toMatchObject({
      state: "suspended",
      reason: "Suspended",
    });
    const path = objectPath(PIPE_SCALINGS, environment.pipes, service);
    const patchType = "application/merge-patch+json";
    await environment.admin.json({ method: "PATCH", path, patchType, body: { spec: { suspend: null } } });
    await progressOnce(service, ({ state }) => state === "propagating");
  });

  it("names the failed pipes and their next attempts, without the cluster's messages", async () => {
    const service = await serviceWith(fieldsOf(sizeOfCores(4)), refusedAt(4, 1));
    const { text, body } = await send(service, { authorization: developer.authorization });
    const { result } = successEnvelope(pipeScalingProgress).parse(body);
    expect(result).toMatchObject({
      state: "failed",
      reason: "Refused",
      failures: [
        {
          pipe: "orders",
          reason: "Refused",
          message: "This size is not allowed for the pipe.",
          nextRetryAt: new Date(NEXT_RETRY).toISOString(),
        },
      ],
    });
    expect(text).not.toMatch(/worker-7|tenant|quota/);
  });

  it("is available before any size is reached", async () => {
    const service = await serviceWith({});
    expect((await send(service)).body).toMatchObject({
      result: { state: "propagating", reason: "Pending", failures: [] },
    });
  });

  it("returns 400 for a service without pipes", async () => {
    const service = await environment.addService(organizationId);
    const response = await waitFor(
      async () => {
        const latest = await send(service);
        return latest.status === 400 && latest;
      },
      { what: "the API to see the service" },
    );
    expect(response.text).toContain("No database pipe has been provisioned");
  });

  it("responds at an alias of its path, and to HEAD as to GET but without a body", async () => {
    const service = await serviceWith({}, scaledTo(2));
    const direct = await send(service);
    const { requestId } = successEnvelope(pipeScalingProgress).parse(direct.body);
    const aliased = await send(service, { path: pathOf(service, "clickpipesCdcScaling") });
    const aliasedId = successEnvelope(pipeScalingProgress).parse(aliased.body).requestId;
    expect(aliased.text.replace(aliasedId, requestId)).toBe(direct.text);
    const head = await send(service, { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(direct.headers["content-length"]);
    const line = api.log.find(({ requestId: id }) => id === aliased.headers["x-request-id"]);
    expect(line).toMatchObject({ route: TEMPLATE });
  });

  it("returns the same response for another tenant's service as for an absent one, and allows no other method", async () => {
    const service = await serviceWith({}, scaledTo(2));
    const path = pathOf(service);
    const foreign = await api.send({ path, authorization: stranger.authorization });
    const absent = await api.send({
      path: pathOf("00000000-0000-0000-0000-000000000000"),
      authorization: stranger.authorization,
    });
    expect(foreign).toMatchObject({ status: 404, text: absent.text });
    expect((await api.send({ path })).status).toBe(401);
    const written = await send(service, { method: "PATCH" });
    expect(written).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    for (const none of [`${path}/`, path.replace("progress", "Progress")]) {
      expect((await send(service, { path: none })).status).toBe(404);
    }
  });
});
