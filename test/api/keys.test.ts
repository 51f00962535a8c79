import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { apiKey } from "../../src/api/resources/keys/schema.ts";
import { recordLabels } from "../../src/records/labels.ts";
import { type KeyFields, type KeyRecord, keyRecord } from "../support/fixtures/records.ts";
import type { ApiResponse } from "./client.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";

const environment = setUpEnvironment("keys");
const api = setUpApi(environment);

const envelope = successEnvelope(z.array(apiKey));

function list(organization: string, authorization: string): Promise<ApiResponse> {
  return api.send({ path: `/v1/organizations/${organization}/keys`, authorization });
}

/** Waits until the API lists this number of keys, and returns them. */
async function keys(organization: string, authorization: string, count: number) {
  return await waitFor(
    async () => {
      const { status, body } = await list(organization, authorization);
      if (status !== 200) return undefined;
      const { result } = envelope.parse(body);
      return result.length === count && result;
    },
    { what: `the API to list ${count} keys` },
  );
}

async function addKey({ data = {}, ...fields }: KeyFields & { data?: object }): Promise<KeyRecord> {
  const key = keyRecord(fields);
  await environment.addRecord({ ...key.record, stringData: { ...key.record.stringData, ...data } });
  return key;
}

describe("GET keys", () => {
  it("returns every key of the organization with the fields of the contract, but never a secret", async () => {
    const organizationId = await environment.addOrganization();
    const developer = await addKey({
      organizationId,
      roles: ["developer"],
      data: { name: "reader", createdAt: "2026-03-01T01:00:00+01:00" },
    });
    const used = await addKey({
      organizationId,
      state: "disabled",
      roles: ["admin", "developer"],
      expireAt: new Date("2026-01-02T03:04:05Z"),
      ipAccessList: [{ description: "office", source: "10.0.0.0/8" }],
      data: { name: "old", createdAt: "2026-02-01T00:00:00Z" },
    });
    await environment.addRecord({
      kind: "ConfigMap",
      metadata: {
        name: `key-usage-${organizationId}`,
        labels: recordLabels("key-usage", organizationId),
      },
      data: { [used.id]: "2026-04-05T06:07:00Z", [developer.id]: "yesterday" },
    });
    // A separate key sends the requests, because each request updates the last use of its key.
    const { id, authorization } = await addKey({ organizationId });
    await api.waitForKey(authorization);

    const response = await waitFor(
      async () => {
        const seen = await list(organizationId, authorization);
        return seen.text.includes("usedAt") && seen;
      },
      { what: "the API to see the use of the key" },
    );

    expect(envelope.parse(response.body).result.filter((key) => key.id !== id)).toEqual([
      {
        id: used.id,
        name: "old",
        state: "disabled",
        roles: ["admin", "developer"],
        createdAt: "2026-02-01T00:00:00.000Z",
        expireAt: "2026-01-02T03:04:05.000Z",
        usedAt: "2026-04-05T06:07:00.000Z",
        keySuffix: used.keyId.slice(-4),
        ipAccessList: [{ description: "office", source: "10.0.0.0/8" }],
      },
      {
        id: developer.id,
        name: "reader",
        state: "enabled",
        roles: ["developer"],
        createdAt: "2026-03-01T00:00:00.000Z",
        keySuffix: developer.keyId.slice(-4),
        ipAccessList: [],
      },
    ]);
    for (const key of [used, developer]) {
      for (const secret of [key.keyId, key.keySecret, key.record.stringData.secretHash]) {
        expect(response.text).not.toContain(secret);
      }
    }
  });

  it("sorts keys by creation time, then by ID", async () => {
    const organizationId = await environment.addOrganization();
    const made: KeyRecord[] = [];
    for (let count = 0; count < 5; count += 1) made.push(await addKey({ organizationId }));
    const first = await addKey({ organizationId, data: { createdAt: "2025-12-31T23:59:59.999Z" } });

    const listed = await keys(organizationId, first.authorization, 6);

    expect(listed.map(({ id }) => id)).toEqual([first.id, ...made.map(({ id }) => id).sort()]);
  });

  it("omits malformed keys and the keys of other organizations", async () => {
    const organizationId = await environment.addOrganization();
    await addKey({ organizationId, data: { createdAt: "once upon a time" } });
    await addKey({ organizationId: await environment.addOrganization() });
    const own = await addKey({ organizationId });
    const listed = await keys(organizationId, own.authorization, 1);
    expect(listed.map(({ id }) => id)).toEqual([own.id]);
  });

  it("omits a key after it is deleted", async () => {
    const organizationId = await environment.addOrganization();
    const own = await addKey({ organizationId });
    const other = await addKey({ organizationId });
    await keys(organizationId, own.authorization, 2);
    await environment.admin.json({
      method: "DELETE",
      path: `/api/v1/namespaces/${environment.records}/secrets/${other.record.metadata.name}`,
    });
    await keys(organizationId, own.authorization, 1);
  });

  it("lists every key that can authenticate, even more than a hundred", async () => {
    const organizationId = await environment.addOrganization();
    const own = await addKey({ organizationId, data: { createdAt: "2025-01-01T00:00:00Z" } });
    for (let tens = 0; tens < 10; tens++)
      await Promise.all(Array.from({ length: 10 }, () => addKey({ organizationId })));
    const last = await addKey({ organizationId, data: { createdAt: "2027-01-01T00:00:00Z" } });
    // Keys arrive in order, so the API knows all of them when it knows the last one.
    await api.waitForKey(last.authorization);
    const listed = await keys(organizationId, own.authorization, 102);
    expect(listed[0]?.id).toBe(own.id);
    expect(listed.at(-1)?.id).toBe(last.id);
  });
});

describe("a request for keys", () => {
  it("gets the same response for an absent organization and for another tenant's", async () => {
    const others = await environment.addOrganization();
    const organizationId = await environment.addOrganization();
    const { authorization } = await addKey({ organizationId });
    await keys(organizationId, authorization, 1);

    const foreign = await list(others, authorization);
    const absent = await list(randomUUID(), authorization);

    expect(foreign).toMatchObject({ status: 404, body: { status: 404 } });
    expect(absent).toMatchObject({ status: 404, text: foreign.text });
    expect((await list("unknown", authorization)).status).toBe(400);
    expect((await list(organizationId.toUpperCase(), authorization)).status).toBe(200);
  });

  it("gets 404 if the key's own organization has no record", async () => {
    const organizationId = randomUUID();
    const { authorization } = await addKey({ organizationId });
    await api.waitForKey(authorization);
    expect((await list(organizationId, authorization)).status).toBe(404);
  });

  it("gets 403 with any role except admin and developer, before the path is checked", async () => {
    const organizationId = await environment.addOrganization();
    const { authorization } = await addKey({ organizationId, roles: ["billing"] });
    await api.waitForKey(authorization);
    for (const organization of [organizationId, randomUUID(), "%zz"]) {
      expect((await list(organization, authorization)).status).toBe(403);
    }
  });

  it("gets 405 for every method that could change keys", async () => {
    const organizationId = await environment.addOrganization();
    const { authorization } = await addKey({ organizationId });
    await api.waitForKey(authorization);
    for (const method of ["POST", "DELETE", "PATCH", "PUT"]) {
      const response = await api.send({
        method,
        path: `/v1/organizations/${organizationId}/keys`,
        authorization,
      });
      expect(response).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    }
  });
});
