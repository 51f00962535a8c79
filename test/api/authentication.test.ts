import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it } from "vitest";
import { objectPath, SECRETS } from "../../src/kube/paths.ts";
import { RESOURCE_LABEL } from "../../src/records/labels.ts";
import { basic, type KeyFields, type KeyRecord, keyRecord } from "../support/fixtures/records.ts";
import { type ApiResponse, exchangeRaw, parseRaw } from "./client.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("authentication");
const { organizationId, admin } = setUpTenant(environment);
const api = setUpApi(environment);

function addKey(fields: Partial<KeyFields>): Promise<KeyRecord> {
  return environment.addKey({ organizationId, ...fields });
}

/** Waits for a new key, because keys reach the API in the order of their creation. */
async function afterAllKeys(): Promise<void> {
  await api.waitForKey((await addKey({})).authorization);
}

function list(authorization?: string): Promise<ApiResponse> {
  return api.send({ path: "/v1/organizations", authorization });
}

/** Changes the Secret of a key as a user does with kubectl. */
async function edit(key: KeyRecord, stringData: Record<string, string | null>): Promise<void> {
  await environment.admin.json({
    method: "PATCH",
    path: objectPath(SECRETS, environment.records, key.record.metadata.name),
    patchType: "application/merge-patch+json",
    body: { stringData },
  });
}

async function until(what: string, status: number, authorization: string): Promise<void> {
  await waitFor(async () => (await list(authorization)).status === status, { what });
}

const DENIED = { error: "Authentication failed: send the key's ID and secret with HTTP Basic.", status: 401 };

describe("authentication with HTTP Basic", () => {
  it.each([
    ["no header", undefined],
    ["an empty header", ""],
    ["another scheme", "Bearer abc"],
    ["the scheme without credentials", "Basic"],
    ["something that is not base64", "Basic ***"],
    ["credentials without a colon", `Basic ${Buffer.from("abc").toString("base64")}`],
    ["an empty user name", basic("", "secret")],
    ["an unknown key", basic("A".repeat(20), "secret")],
    ["the name of a property of Object.prototype", basic("constructor", "secret")],
  ])("fails with 401 for %s", async (_what, authorization) => {
    const response = await list(authorization);
    expect(response).toMatchObject({ status: 401, body: DENIED });
    expect(response.headers["www-authenticate"]).toBe('Basic realm="pipe-scaling", charset="UTF-8"');
  });

  it.each([
    ["a wrong secret", basic(admin.keyId, "wrong")],
    ["no secret", basic(admin.keyId, "")],
    ["the resource ID in place of the key ID", basic(admin.id, admin.keySecret)],
    ["NUL in the user name", basic(`${admin.keyId}\0`, admin.keySecret)],
    ["a line break in the secret", basic(admin.keyId, `${admin.keySecret}\r\n`)],
    ["a tab as separator", admin.authorization.replace(" ", "\t")],
    ["text after the credentials", `${admin.authorization} x`],
  ])("fails with 401 for %s, even though the key exists", async (_what, authorization) => {
    expect(await list(authorization)).toMatchObject({ status: 401, body: DENIED });
  });

  it("fails with 401 for two Authorization headers, even if they are the same", async () => {
    const header = `Authorization: ${admin.authorization}\r\n`;
    const text = await exchangeRaw(
      api.url,
      `GET /v1/organizations HTTP/1.1\r\nHost: a\r\n${header}${header}Connection: close\r\n\r\n`,
    );
    expect(parseRaw(text)).toMatchObject({ status: 401, body: DENIED });
  });

  it.each([
    ["the scheme in any case", admin.authorization.replace("Basic", "bAsIc")],
    ["two spaces", admin.authorization.replace(" ", "  ")],
  ])("accepts %s", async (_what, authorization) => {
    expect((await list(authorization)).status).toBe(200);
  });

  it("accepts a secret with colons and non-ASCII letters", async () => {
    const { authorization } = await addKey({ keySecret: "a:b:ключ" });
    await until("the API to see the key", 200, authorization);
  });
});

describe("a key", () => {
  it("gets 401 while it is disabled, and 200 when it is enabled", async () => {
    const key = await addKey({ state: "disabled" });
    await afterAllKeys();
    expect(await list(key.authorization)).toMatchObject({ status: 401, body: DENIED });
    await edit(key, { state: "enabled" });
    await until("the key to be enabled", 200, key.authorization);
  });

  it("gets 401 after it expires, and 200 before", async () => {
    const expired = await addKey({ expireAt: new Date(Date.now() - 1000) });
    const valid = await addKey({ expireAt: new Date(Date.now() + 3_600_000) });
    await until("the API to see the later key", 200, valid.authorization);
    expect(await list(expired.authorization)).toMatchObject({ status: 401, body: DENIED });
  });

  it.each([
    ["disabled", { state: "disabled" }],
    ["expired", { expireAt: "2026-01-01T00:00:00Z" }],
    ["made malformed", { createdAt: "yesterday" }],
    ["changed to another secret", { secretHash: `sha256:${"0".repeat(64)}` }],
  ])("gets 401 if it is %s after it was used", async (what, data) => {
    const key = await addKey({});
    await until("the API to see the key", 200, key.authorization);
    await edit(key, data);
    await until(`the key to be ${what}`, 401, key.authorization);
  });

  it("gets 401 if it is deleted after it was used", async () => {
    const key = await addKey({});
    await until("the API to see the key", 200, key.authorization);
    const path = objectPath(SECRETS, environment.records, key.record.metadata.name);
    await environment.admin.json({ method: "DELETE", path });
    await until("the key to be deleted", 401, key.authorization);
  });

  it("gets 401 and is not listed as soon as it is deleted, even if a finalizer keeps its Secret", async () => {
    const key = await addKey({});
    await until("the API to see the key", 200, key.authorization);
    const path = objectPath(SECRETS, environment.records, key.record.metadata.name);
    const finalize = (finalizers: readonly string[]) =>
      environment.admin.json({
        method: "PATCH",
        path,
        patchType: "application/merge-patch+json",
        body: { metadata: { finalizers } },
      });
    await finalize(["example.com/backup"]);
    await environment.admin.json({ method: "DELETE", path });
    try {
      await until("the key to be rejected", 401, key.authorization);
      expect(await environment.admin.json({ path })).toHaveProperty("metadata.deletionTimestamp");
      const listPath = `/v1/organizations/${organizationId}/keys`;
      const { body } = await api.send({ path: listPath, authorization: admin.authorization });
      expect(JSON.stringify(body)).toContain(admin.id);
      expect(JSON.stringify(body)).not.toContain(key.id);
    } finally {
      await finalize([]);
    }
  });

  it.each([
    ["lacks the label of records", null],
    ["has the label of another kind of record", "members"],
  ])(
    "gets 401 while its Secret %s, because no command would find it, and 200 again with its label",
    async (_, value) => {
      const key = await addKey({});
      await until("the API to see the key", 200, key.authorization);
      const label = (kind: string | null) =>
        environment.admin.json({
          method: "PATCH",
          path: objectPath(SECRETS, environment.records, key.record.metadata.name),
          patchType: "application/merge-patch+json",
          body: { metadata: { labels: { [RESOURCE_LABEL]: kind } } },
        });
      await label(value);
      await until("the key to be ignored", 401, key.authorization);
      await label("api-key");
      await until("the key to be back", 200, key.authorization);
    },
  );

  it("can use both secrets during a rotation", async () => {
    const key = await addKey({});
    await until("the API to see the key", 200, key.authorization);
    const next = keyRecord({ organizationId, keyId: key.keyId });
    const hashes = [key, next].map(({ record }) => record.stringData.secretHash);

    await edit(key, { secretHash: hashes.join("\n") });
    await until("the API to see the new secret", 200, next.authorization);
    expect((await list(key.authorization)).status).toBe(200);

    await edit(key, { secretHash: hashes[1] ?? "" });
    await until("the old secret to be removed", 401, key.authorization);
    expect((await list(next.authorization)).status).toBe(200);
  });

  it("gets 401 if its Secret has the right name but another type", async () => {
    const key = keyRecord({ organizationId });
    await environment.addRecord({ ...key.record, type: "Opaque" });
    await afterAllKeys();
    expect((await list(key.authorization)).status).toBe(401);
  });
});

describe("the IP access list", () => {
  const entries = (...sources: string[]) => sources.map((source) => ({ description: "", source }));

  it.each([
    ["127.0.0.1", 200],
    ["127.0.0.0/8", 200],
    ["::ffff:127.0.0.1", 200],
    ["::ffff:127.0.0.0/104", 200],
    ["10.0.0.0/8", 403],
    ["127.0.0.1/", 403],
    ["127.000.0.1", 403],
    ["anywhere", 403],
  ])("with the entry %s results in %i for the address of this machine", async (source, status) => {
    const key = await addKey({ ipAccessList: entries("192.0.2.1", source) });
    await afterAllKeys();
    expect(await list(key.authorization)).toMatchObject({ status, body: { status } });
  });

  it("denies all requests if one entry is malformed, even if another entry matches", async () => {
    const key = await addKey({ ipAccessList: entries("127.0.0.1", "127.0.0.1/33") });
    await afterAllKeys();
    expect((await list(key.authorization)).status).toBe(403);
    const logged = api.log.filter(({ record }) => String(record).endsWith(key.record.metadata.name));
    expect(logged).toMatchObject([{ level: "warn", problem: expect.stringContaining("ipAccessList") }]);
  });

  it("is checked after the secret and before the path", async () => {
    const key = await addKey({ ipAccessList: entries("192.0.2.1") });
    await afterAllKeys();
    expect((await list(basic(key.keyId, "wrong"))).status).toBe(401);
    expect((await api.send({ path: "/v1/none", authorization: key.authorization })).status).toBe(403);
  });

  it("is checked against the address of the connection, not against headers", async () => {
    const key = await addKey({ ipAccessList: entries("192.0.2.1") });
    await afterAllKeys();
    const response = await api.send({
      path: "/v1/organizations",
      authorization: key.authorization,
      headers: { "X-Forwarded-For": "192.0.2.1", Forwarded: "for=192.0.2.1", "X-Real-IP": "192.0.2.1" },
    });
    expect(response.status).toBe(403);
  });
});

describe("a request", () => {
  it.each(["/v1/", "/v1/none", "/v1/organizations/", "/v1//organizations", "/v1/Organizations", "/v1/%zz"])(
    "gets 401 for %s without a key, and 404 with one",
    async (path) => {
      expect(await api.send({ path })).toMatchObject({ status: 401, body: DENIED });
      expect(await api.send({ path, authorization: admin.authorization })).toMatchObject({
        status: 404,
        body: { status: 404 },
      });
    },
  );

  it.each(["/", "/V1/organizations", "//v1/organizations", "/v1organizations", "/%76%31/organizations"])(
    "gets 404 for %s, which is not under /v1",
    async (path) => {
      expect(await api.send({ path })).toMatchObject({ status: 404, body: { status: 404 } });
    },
  );

  it.each(["OPTIONS", "TRACE", "POST", "PUT", "DELETE", "PATCH"])(
    "gets 401 for the method %s without a key, and 405 with one",
    async (method) => {
      const path = "/v1/organizations";
      expect(await api.send({ method, path })).toMatchObject({ status: 401, body: DENIED });
      const response = await api.send({ method, path, authorization: admin.authorization });
      expect(response).toMatchObject({ status: 405, body: { status: 405 }, headers: { allow: "GET, HEAD" } });
    },
  );

  it("gets every allowed method of the path in the Allow header of a 405", async () => {
    const path = "/v1/organizations/a/services/b/pipesCdcScaling";
    const response = await api.send({ method: "DELETE", path, authorization: admin.authorization });
    expect(response).toMatchObject({ status: 405, headers: { allow: "GET, HEAD, PATCH" } });
  });

  it.each([
    [["admin"], 200],
    [["developer"], 200],
    [["viewer", "developer"], 200],
    [["viewer"], 403],
    [["Admin"], 403],
    [[], 403],
  ])("to read with the roles %j gets %i", async (roles, status) => {
    const key = await addKey({ roles });
    await afterAllKeys();
    expect(await list(key.authorization)).toMatchObject({ status, body: { status } });
  });
});

describe("every response", () => {
  it("has the security headers, and a request ID that the server generated", async () => {
    const headers = { "X-Request-Id": "11111111-1111-4111-8111-111111111111" };
    const responses = [
      await api.send({ path: "/v1/organizations", authorization: admin.authorization, headers }),
      await api.send({ path: "/v1/organizations", headers }),
      await api.send({ path: "/", headers }),
    ];
    for (const response of responses) {
      expect(response.headers).toMatchObject({
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "strict-transport-security": expect.stringContaining("max-age="),
        "content-security-policy": expect.stringContaining("default-src 'none'"),
        "x-request-id": expect.stringMatching(
          /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
        ),
      });
      expect(response.headers["x-request-id"]).not.toBe(headers["X-Request-Id"]);
      expect(response.headers).not.toHaveProperty("x-powered-by");
      expect(response.headers).not.toHaveProperty("etag");
    }
  });

  it("is logged in one line without secrets", async () => {
    const before = api.log.length;
    const response = await list(admin.authorization);
    await list(basic(admin.keyId, "wrong"));
    const lines = api.log.slice(before);
    expect(lines).toMatchObject([
      {
        requestId: response.headers["x-request-id"],
        apiKey: admin.id,
        organization: organizationId,
        method: "GET",
        route: "/v1/organizations",
        status: 200,
        durationMs: expect.any(Number),
      },
      { method: "GET", status: 401 },
    ]);
    const everything = JSON.stringify(api.log);
    for (const secret of [admin.keyId, admin.keySecret, admin.authorization.slice(6), "wrong"]) {
      expect(everything).not.toContain(secret);
    }
  });
});
