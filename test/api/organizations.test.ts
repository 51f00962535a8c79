import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { organization } from "../../src/api/resources/organizations/schema.ts";
import { ORGANIZATION_LABEL } from "../../src/records/labels.ts";
import { organizationConfigMapName } from "../../src/records/organization.ts";
import { keyRecord } from "../support/fixtures/records.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";

const environment = setUpEnvironment("organizations");
const api = setUpApi(environment);

describe("GET /v1/organizations", () => {
  it("returns the key's organization in the envelope of the contract", async () => {
    const id = await environment.addOrganization(
      { name: "Acme", createdAt: new Date("2026-01-31T13:00:00+01:00") },
      {
        byocConfig: "- {accountName: main, id: '007'}",
        privateEndpoints: "- {description: 'to the office', id: vpce-1}",
      },
    );
    await environment.addOrganization({ name: "Another" });
    const { authorization } = await environment.addKey({ organizationId: id, roles: ["developer"] });
    await api.waitForOrganization(authorization);

    const { status, headers, body } = await api.send({ path: "/v1/organizations?x=%zz", authorization });

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

  it("responds to HEAD as to GET, but without a body", async () => {
    const { authorization } = await environment.addKey({
      organizationId: await environment.addOrganization(),
    });
    await api.waitForOrganization(authorization);

    const get = await api.send({ path: "/v1/organizations", authorization });
    const head = await api.send({ path: "/v1/organizations", authorization, method: "HEAD" });

    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(get.headers["content-length"]);
  });

  it("never returns 304", async () => {
    const { authorization } = await environment.addKey({
      organizationId: await environment.addOrganization(),
    });
    await api.waitForKey(authorization);

    const response = await api.send({
      path: "/v1/organizations",
      authorization,
      headers: { "If-None-Match": "*", "If-Modified-Since": new Date().toUTCString() },
    });

    expect(response.status).toBe(200);
  });

  it("returns an empty list if the key's organization has no record", async () => {
    const { authorization } = await environment.addKey({ organizationId: crypto.randomUUID() });
    await api.waitForKey(authorization);

    const { status, body } = await api.send({ path: "/v1/organizations", authorization });

    expect({ status, body }).toMatchObject({ status: 200, body: { result: [] } });
  });

  it("fails only for a malformed organization, whose record is logged once", async () => {
    const broken = await environment.addOrganization({}, { createdAt: "yesterday" });
    const { authorization } = await environment.addKey({ organizationId: broken });
    const sound = await environment.addKey({ organizationId: await environment.addOrganization() });
    await api.waitForKey(authorization);
    await api.waitForOrganization(sound.authorization);

    const response = await api.send({ path: "/v1/organizations", authorization });
    await api.send({ path: "/v1/organizations", authorization });

    expect(response.status).toBe(500);
    expect(response.text).not.toContain("yesterday");
    expect(response.text).not.toContain("createdAt");
    const name = organizationConfigMapName(broken);
    const logged = api.log.filter(
      ({ msg, record }) => msg === "malformed record" && String(record).endsWith(name),
    );
    expect(logged).toMatchObject([{ level: "warn", problem: expect.stringContaining("createdAt") }]);
    const failed = api.log.find(({ requestId }) => requestId === response.headers["x-request-id"]);
    expect(failed).toMatchObject({
      level: "error",
      status: 500,
      err: { message: expect.stringContaining("createdAt") },
    });
  });

  it("rejects a malformed key", async () => {
    const organizationId = await environment.addOrganization();
    const key = keyRecord({ organizationId });
    const labels = { ...key.record.metadata.labels, [ORGANIZATION_LABEL]: "not-an-id" };
    await environment.addRecord({ ...key.record, metadata: { ...key.record.metadata, labels } });
    await waitFor(() => api.log.some(({ record }) => String(record).endsWith(key.record.metadata.name)), {
      what: "the API to log the malformed key",
    });

    const response = await api.send({ path: "/v1/organizations", authorization: key.authorization });

    expect(response.status).toBe(401);
  });
});
