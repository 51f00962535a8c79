import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { organization } from "../../src/api/resources/organizations/schema.ts";
import { ORGANIZATION_LABEL } from "../../src/records/labels.ts";
import { organizationConfigMapName } from "../../src/records/organization.ts";
import { keyRecord } from "../support/fixtures/records.ts";
import { createWorld, type RunningApi, type World } from "./world.ts";

let world: World;
let api: RunningApi;

beforeAll(async () => {
  world = await createWorld("organizations");
  api = await world.startReadyApi();
});

afterAll(async () => {
  await api?.stop();
  await world?.remove();
});

async function seesOrganization(authorization: string): Promise<unknown> {
  return await waitFor(
    async () => {
      const { status, body } = await api.ask({ path: "/v1/organizations", authorization });
      return status === 200 && z.object({ result: z.array(z.unknown()).length(1) }).parse(body).result[0];
    },
    { what: "the organization to be known" },
  );
}

describe("GET /v1/organizations", () => {
  it("answers the key's own organization in the envelope of the contract", async () => {
    const id = await world.addOrganization(
      { name: "Acme", createdAt: new Date("2026-01-31T13:00:00+01:00") },
      {
        byocConfig: "- {accountName: main, id: '007'}",
        privateEndpoints: "- {description: 'to the office', id: vpce-1}",
      },
    );
    await world.addOrganization({ name: "Another" });
    const { authorization } = await world.addKey({ organizationId: id, roles: ["developer"] });
    await api.admits(authorization);
    await seesOrganization(authorization);

    const { status, headers, body } = await api.ask({ path: "/v1/organizations?x=%zz", authorization });

    expect(status).toBe(200);
    const envelope = successEnvelope(z.array(organization)).parse(body);
    expect(envelope.result).toEqual([
      {
        id,
        name: "Acme",
        createdAt: "2026-01-31T12:00:00.000Z",
        byocConfig: [{ accountName: "main", id: "007" }],
        privateEndpoints: [{ description: "to the office", id: "vpce-1" }],
      },
    ]);
    expect(headers["x-request-id"]).toBe(envelope.requestId);
    expect(headers["content-type"]).toBe("application/json");
  });

  it("answers HEAD as GET, without the body", async () => {
    const { authorization } = await world.addKey({ organizationId: await world.addOrganization() });
    await api.admits(authorization);
    await seesOrganization(authorization);

    const get = await api.ask({ path: "/v1/organizations", authorization });
    const head = await api.ask({ path: "/v1/organizations", authorization, method: "HEAD" });

    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
  });

  it("never answers 304", async () => {
    const { authorization } = await world.addKey({ organizationId: await world.addOrganization() });
    await api.admits(authorization);

    const answer = await api.ask({
      path: "/v1/organizations",
      authorization,
      headers: { "If-None-Match": "*", "If-Modified-Since": new Date().toUTCString() },
    });

    expect(answer.status).toBe(200);
  });

  it("answers nothing, rather than another's, to a key whose organization has no record", async () => {
    const { authorization } = await world.addKey({ organizationId: crypto.randomUUID() });
    await api.admits(authorization);

    const { status, body } = await api.ask({ path: "/v1/organizations", authorization });

    expect({ status, body }).toMatchObject({ status: 200, body: { result: [] } });
  });

  it("fails a malformed organization alone, and logs each of its versions once", async () => {
    const broken = await world.addOrganization({}, { createdAt: "yesterday" });
    const { authorization } = await world.addKey({ organizationId: broken });
    const sound = await world.addKey({ organizationId: await world.addOrganization() });
    await api.admits(authorization);
    await api.admits(sound.authorization);
    await seesOrganization(sound.authorization);

    const answer = await api.ask({ path: "/v1/organizations", authorization });
    await api.ask({ path: "/v1/organizations", authorization });

    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain("yesterday");
    expect(answer.text).not.toContain("createdAt");
    const name = organizationConfigMapName(broken);
    const told = api.log.filter(
      ({ msg, record }) => msg === "malformed record" && String(record).endsWith(name),
    );
    expect(told).toMatchObject([{ level: "warn", problem: expect.stringContaining("createdAt") }]);
    const failed = api.log.find(({ requestId }) => requestId === answer.headers["x-request-id"]);
    expect(failed).toMatchObject({
      level: "error",
      status: 500,
      err: { message: expect.stringContaining("createdAt") },
    });
  });

  it("denies a malformed key", async () => {
    const organizationId = await world.addOrganization();
    const key = keyRecord({ organizationId });
    const labels = { ...key.record.metadata.labels, [ORGANIZATION_LABEL]: "not-an-id" };
    await world.addRecord({ ...key.record, ...{ metadata: { ...key.record.metadata, labels } } });
    await waitFor(() => api.log.some(({ record }) => String(record).endsWith(key.record.metadata.name)), {
      what: "the malformed key to be logged",
    });

    const answer = await api.ask({ path: "/v1/organizations", authorization: key.authorization });

    expect(answer.status).toBe(401);
  });
});
