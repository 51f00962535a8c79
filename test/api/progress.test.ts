import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import {
  type PipeScalingProgressObject,
  pipeScalingProgress,
} from "../../src/api/resources/pipe-scaling/progress-schema.ts";
import type { PipeScalingSpec, PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { objectPath } from "../../src/kube/paths.ts";
import type { Answer, Ask } from "./client.ts";
import { fieldsOf, onTheWayTo, refusedAt, reportStatus, scaledTo } from "./statuses.ts";
import { createWorld, PIPE_SCALINGS, type RunningApi, type World } from "./world.ts";

const TEMPLATE = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling/progress";

let world: World;
let api: RunningApi;
let organizationId: string;
let admin: string;
let developer: string;
let stranger: string;

beforeAll(async () => {
  world = await createWorld("progress");
  api = await world.startReadyApi({ pathAliases: new Map([["clickpipesCdcScaling", "pipesCdcScaling"]]) });
  organizationId = await world.addOrganization();
  ({ authorization: admin } = await world.addKey({ organizationId }));
  ({ authorization: developer } = await world.addKey({ organizationId, roles: ["developer"] }));
  ({ authorization: stranger } = await world.addKey({ organizationId: await world.addOrganization() }));
  for (const key of [admin, developer, stranger]) await api.admits(key);
});

afterAll(async () => {
  await api?.stop();
  await world?.remove();
});

function pathOf(service: string, segment = "pipesCdcScaling"): string {
  return `/v1/organizations/${organizationId}/services/${service}/${segment}/progress`;
}

function ask(service: string, more: Partial<Ask> = {}): Promise<Answer> {
  return api.ask({ path: pathOf(service), authorization: admin, ...more });
}

async function patch(service: string, cores: number) {
  const answer = await api.ask({
    method: "PATCH",
    path: pathOf(service).replace("/progress", ""),
    authorization: admin,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fieldsOf(sizeOfCores(cores))),
  });
  expect(answer.status).toBe(200);
  return answer.headers["x-request-id"];
}

/** What is told once the API has seen what the test waits for. */
async function progressOnce(
  service: string,
  seen: (progress: PipeScalingProgressObject) => boolean,
): Promise<PipeScalingProgressObject> {
  return await waitFor(
    async () => {
      const { status, body } = await ask(service);
      const progress = status === 200 && successEnvelope(pipeScalingProgress).parse(body).result;
      return progress && seen(progress) && progress;
    },
    { what: "the progress to be told" },
  );
}

/** A service with a PipeScaling, known to the API. */
async function serviceWith(spec: PipeScalingSpec, status?: PipeScalingStatus): Promise<string> {
  const service = await world.addService(organizationId);
  await world.addScaling(service, spec);
  if (status) await reportStatus(world, service, status);
  await progressOnce(service, ({ reason }) => !status || reason !== "Pending");
  return service;
}

describe("GET pipesCdcScaling/progress", () => {
  it("tells of the caller's own request at once, and then what the controller says of it", async () => {
    const service = await serviceWith({}, scaledTo(1));
    const requestId = await patch(service, 4);

    const { body } = await ask(service);
    expect(successEnvelope(pipeScalingProgress).parse(body).result).toEqual({
      state: "propagating",
      reason: "Pending",
      message: "The size has been accepted but not applied to any pipe yet.",
      desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, source: "Spec" },
      effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      pipes: { total: 3, updated: 0 },
      failures: [],
      requestId,
    });

    await reportStatus(world, service, onTheWayTo(4, 1, requestId));
    expect(await progressOnce(service, ({ reason }) => reason === "Progressing")).toMatchObject({
      state: "propagating",
      pipes: { total: 3, updated: 1 },
      requestId,
      startedAt: "2026-01-31T12:00:00.000Z",
    });

    await reportStatus(world, service, scaledTo(4, requestId));
    expect(await progressOnce(service, ({ state }) => state === "scaled")).toMatchObject({
      effective: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 },
      pipes: { total: 3, updated: 3 },
      completedAt: "2026-01-31T12:00:00.000Z",
    });
  });

  it("tells which request has taken the place of the caller's, and of a size that came by none", async () => {
    const service = await serviceWith({}, scaledTo(1));
    await patch(service, 2);
    const second = await patch(service, 4);
    expect((await ask(service)).text).toContain(`"requestId":"${second}"`);
    await world.admin.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, world.pipes, service),
      patchType: "application/merge-patch+json",
      body: { spec: fieldsOf(sizeOfCores(8)) },
    });
    const edited = await progressOnce(service, ({ requestId }) => requestId !== second);
    expect(edited).toMatchObject({ state: "propagating", desired: { replicaCpuMillicores: 8000 } });
    expect(edited).not.toHaveProperty("requestId");
  });

  it("is suspended, and goes on", async () => {
    const service = await serviceWith({ suspend: true });
    expect(await progressOnce(service, () => true)).toMatchObject({
      state: "suspended",
      reason: "Suspended",
    });
    const path = objectPath(PIPE_SCALINGS, world.pipes, service);
    const patchType = "application/merge-patch+json";
    await world.admin.json({ method: "PATCH", path, patchType, body: { spec: { suspend: null } } });
    await progressOnce(service, ({ state }) => state === "propagating");
  });

  it("names the pipes that failed, and none of the cluster's words about them", async () => {
    const service = await serviceWith(fieldsOf(sizeOfCores(4)), refusedAt(4, 1));
    const { text, body } = await ask(service, { authorization: developer });
    const { result } = successEnvelope(pipeScalingProgress).parse(body);
    expect(result).toMatchObject({
      state: "failed",
      reason: "Refused",
      failures: [{ pipe: "orders", reason: "Refused", message: "This size is not allowed for the pipe." }],
    });
    expect(text).not.toMatch(/worker-7|tenant|quota/);
  });

  it("is told where no size has been reached yet", async () => {
    const service = await serviceWith({});
    expect((await ask(service)).body).toMatchObject({
      result: { state: "propagating", reason: "Pending", failures: [] },
    });
  });

  it("answers 400 where no pipe was ever provisioned", async () => {
    const service = await world.addService(organizationId);
    const answer = await waitFor(
      async () => {
        const asked = await ask(service);
        return asked.status === 400 && asked;
      },
      { what: "the service to be known" },
    );
    expect(answer.text).toContain("No database pipe has been provisioned");
  });

  it("answers by an alias of its path, and HEAD as GET without a body", async () => {
    const service = await serviceWith({}, scaledTo(2));
    const direct = await ask(service);
    const { requestId } = successEnvelope(pipeScalingProgress).parse(direct.body);
    const aliased = await ask(service, { path: pathOf(service, "clickpipesCdcScaling") });
    const aliasedId = successEnvelope(pipeScalingProgress).parse(aliased.body).requestId;
    expect(aliased.text.replace(aliasedId, requestId)).toBe(direct.text);
    const head = await ask(service, { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(direct.headers["content-length"]);
    const line = api.log.find(({ requestId: id }) => id === aliased.headers["x-request-id"]);
    expect(line).toMatchObject({ route: TEMPLATE });
  });

  it("answers the same for another's service as for what is absent, and takes no other method", async () => {
    const service = await serviceWith({}, scaledTo(2));
    const path = pathOf(service);
    const foreign = await api.ask({ path, authorization: stranger });
    const absent = await api.ask({
      path: pathOf("00000000-0000-0000-0000-000000000000"),
      authorization: stranger,
    });
    expect(foreign).toMatchObject({ status: 404, text: absent.text });
    expect((await api.ask({ path })).status).toBe(401);
    const written = await ask(service, { method: "PATCH" });
    expect(written).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    for (const none of [`${path}/`, path.replace("progress", "Progress")]) {
      expect((await ask(service, { path: none })).status).toBe(404);
    }
  });
});
