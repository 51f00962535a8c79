import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApiSettings } from "../../src/settings/api.ts";
import { basic, type KeyRecord } from "../support/fixtures/records.ts";
import { type ApiResponse, exchangeRaw, parseRaw } from "./client.ts";
import type { RunningApi } from "./environment.ts";
import { setUpEnvironment } from "./fixtures.ts";

/** Longer than a test takes, so that no tokens are refilled meanwhile. */
const SLOW = { rateWindowMs: 55_000 };

const environment = setUpEnvironment("limits");
let organizationId: string;
/** One or more keys for each test. */
let keys: KeyRecord[];
let viewer: KeyRecord;
let elsewhere: KeyRecord;
const running: RunningApi[] = [];

beforeAll(async () => {
  organizationId = await environment.addOrganization();
  // The keys are created before the API starts, so that it knows them from the first request.
  keys = await Promise.all(Array.from({ length: 8 }, () => environment.addKey({ organizationId })));
  viewer = await environment.addKey({ organizationId, roles: ["viewer"] });
  elsewhere = await environment.addKey({
    organizationId,
    ipAccessList: [{ description: "", source: "192.0.2.1" }],
  });
});

afterAll(() => Promise.all(running.map((api) => api.stop())));

async function start(settings: Partial<ApiSettings>): Promise<RunningApi> {
  const api = await environment.startReadyApi(settings);
  running.push(api);
  return api;
}

function freshKey(): KeyRecord {
  const key = keys.pop();
  if (!key) throw new Error("no key is left");
  return key;
}

function list(api: RunningApi, authorization: string): Promise<ApiResponse> {
  return api.send({ path: "/v1/organizations", authorization });
}

describe("the default limits", () => {
  it("allow 10 requests and then one per second for a key, without affecting other keys", async () => {
    const api = await start({ rateLimit: 10, failedLogins: 10 });
    const [key, other] = [freshKey(), freshKey()];
    const before = performance.now();
    const responses = await Promise.all(Array.from({ length: 40 }, () => list(api, key.authorization)));
    const seconds = (performance.now() - before) / 1000;

    const admitted = responses.filter(({ status }) => status === 200);
    expect(admitted.length).toBeGreaterThanOrEqual(10);
    expect(admitted.length).toBeLessThanOrEqual(10 + seconds);
    const refused = responses.filter(({ status }) => status !== 200);
    for (const { status, body, headers } of refused) {
      expect({ status, body }).toEqual({
        status: 429,
        body: { error: "Too many requests with this key: try again in 1 s.", status: 429 },
      });
      expect(headers).toMatchObject({
        "retry-after": "1",
        "x-ratelimit-limit": "10",
        "x-ratelimit-remaining": "0",
        "x-ratelimit-reset": expect.stringMatching(/^(9|10)$/),
        "ratelimit-policy": '"key";q=10;w=10',
        ratelimit: '"key";r=0;t=1',
      });
    }
    expect(await list(api, other.authorization)).toMatchObject({
      status: 200,
      headers: { "x-ratelimit-remaining": "9", "x-ratelimit-reset": "1" },
    });
  });

  it("allow 10 failed authentications from an address, without affecting valid ones", async () => {
    const api = await start({ rateLimit: 10, failedLogins: 10 });
    const key = freshKey();
    const wrong = basic(key.keyId, "wrong");
    const before = performance.now();
    const responses = await Promise.all(Array.from({ length: 40 }, () => list(api, wrong)));
    const seconds = (performance.now() - before) / 1000;
    const failed = responses.filter(({ status }) => status === 401);
    expect(failed.length).toBeGreaterThanOrEqual(10);
    expect(failed.length).toBeLessThanOrEqual(10 + seconds);
    for (const { status, body, headers } of responses.filter((response) => response.status !== 401)) {
      expect({ status, body }).toMatchObject({ status: 429, body: { status: 429 } });
      expect(headers["retry-after"]).toBe("1");
    }
    expect(await list(api, key.authorization)).toMatchObject({
      status: 200,
      headers: { "x-ratelimit-remaining": "9" },
    });
  });
});

describe("every response", () => {
  it("to a key has the number of remaining requests, regardless of the status", async () => {
    const api = await start({ ...SLOW, rateLimit: 6 });
    const { authorization } = freshKey();
    const service = `/v1/organizations/${organizationId}/services/none/pipesCdcScaling`;
    const headers = { "Content-Type": "text/plain" };
    const requests = [
      [200, { path: "/v1/organizations" }],
      [200, { path: `/v1/organizations/${organizationId}/prometheus` }],
      [404, { path: "/v1/none" }],
      [405, { path: "/v1/organizations", method: "DELETE" }],
      [400, { path: service }],
      [400, { path: service, method: "PATCH", headers, body: "{}" }],
    ] as const;
    for (const [at, [status, send]] of requests.entries()) {
      const response = await api.send({ ...send, authorization });
      const remaining = String(5 - at);
      expect(response.status).toBe(status);
      expect(response.headers).toMatchObject({
        "x-ratelimit-limit": "6",
        "x-ratelimit-remaining": remaining,
        "x-ratelimit-reset": expect.stringMatching(/^\d+$/),
        "ratelimit-policy": '"key";q=6;w=55',
        ratelimit: expect.stringMatching(new RegExp(`^"key";r=${remaining};t=1?\\d$`)),
      });
    }
    expect(await list(api, viewer.authorization)).toMatchObject({
      status: 403,
      headers: { "x-ratelimit-remaining": "5" },
    });
  });

  it("to a request that does not count against a key has the full limit", async () => {
    const api = await start({ ...SLOW, rateLimit: 20 });
    const responses = [
      [401, await api.send({ path: "/v1/organizations" })],
      [403, await list(api, elsewhere.authorization)],
      [403, await list(api, elsewhere.authorization)],
      [404, await api.send({ path: "/none" })],
      [400, parseRaw(await exchangeRaw(api.url, "garbage\r\n\r\n"))],
    ] as const;
    for (const [status, response] of responses) {
      expect(response.status).toBe(status);
      expect(response.headers).toMatchObject({
        "x-ratelimit-limit": "20",
        "x-ratelimit-remaining": "20",
        "x-ratelimit-reset": "0",
        "ratelimit-policy": '"key";q=20;w=55',
      });
      expect(response.headers).not.toHaveProperty("ratelimit");
    }
  });

  it("has no rate-limit headers if the limits are disabled", async () => {
    const api = await start({ rateLimit: 0, failedLogins: 0 });
    const { authorization } = freshKey();
    const responses = await Promise.all([
      ...Array.from({ length: 30 }, () => list(api, authorization)),
      ...Array.from({ length: 30 }, () => list(api, basic("A".repeat(20), "wrong"))),
    ]);
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200, 401]));
    for (const { headers } of responses) expect(Object.keys(headers).join()).not.toContain("ratelimit");
  });
});

describe("a key without remaining requests", () => {
  it("gets 429 before its path, method and role are checked", async () => {
    const api = await start({ ...SLOW, rateLimit: 1 });
    const { authorization } = freshKey();
    expect((await list(api, authorization)).status).toBe(200);
    const service = `/v1/organizations/${organizationId}/services/none/pipesCdcScaling`;
    for (const send of [{ path: "/v1/none" }, { path: "/v1", method: "POST" }, { path: service }]) {
      expect(await api.send({ ...send, authorization })).toMatchObject({
        status: 429,
        body: { status: 429 },
      });
    }
    expect((await list(api, viewer.authorization)).status).toBe(403);
    expect((await list(api, viewer.authorization)).status).toBe(429);
  });

  it("still gets 401 for a wrong secret", async () => {
    const api = await start({ ...SLOW, rateLimit: 1 });
    const key = freshKey();
    await list(api, key.authorization);
    expect((await list(api, key.authorization)).status).toBe(429);
    expect((await list(api, basic(key.keyId, "wrong"))).status).toBe(401);
  });
});
