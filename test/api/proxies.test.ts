import { beforeAll, describe, expect, it } from "vitest";
import { basic, type KeyRecord } from "../support/fixtures/records.ts";
import { type ApiRequest, type ApiResponse, exchangeRaw } from "./client.ts";
import type { RunningApi } from "./environment.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";

const SLOW = { rateWindowMs: 55_000, failedLogins: 2 };

const environment = setUpEnvironment("proxies");
let key: KeyRecord;

beforeAll(async () => {
  const organizationId = await environment.addOrganization();
  key = await environment.addKey({
    organizationId,
    ipAccessList: [
      { description: "office", source: "203.0.113.0/24" },
      { description: "laboratory", source: "2001:db8:1::/48" },
    ],
  });
});
const trusting = setUpApi(environment, { ...SLOW, trustedProxies: ["127.0.0.1", "10.0.0.0/8"] });
const direct = setUpApi(environment, SLOW);

type Forwarded = string | string[] | undefined;

function list(api: RunningApi, authorization: string, forwarded: Forwarded, more = {}): Promise<ApiResponse> {
  const headers = { ...(forwarded === undefined ? {} : { "X-Forwarded-For": forwarded }), ...more };
  return api.send({ path: "/v1/organizations", authorization, headers });
}

describe("behind a trusted proxy", () => {
  const given: readonly (readonly [Forwarded, number])[] = [
    ["203.0.113.7", 200],
    ["2001:db8:1::7", 200],
    ["::ffff:203.0.113.7", 200],
    ["203.0.113.7, 10.1.2.3", 200],
    [["198.51.100.1", "203.0.113.7", "10.1.2.3"], 200],
    ["198.51.100.1", 403],
    ["203.0.113.7, 198.51.100.1", 403],
    ["203.0.113.7, 198.51.100.1, 10.1.2.3", 403],
    [["203.0.113.7", "198.51.100.1"], 403],
    ["203.0.113.7, unknown", 403],
    ["203.0.113.7:443", 200],
    ["[2001:db8:1::7]:443", 200],
    ["198.51.100.1:443", 403],
    ["203.0.113.007", 403],
    ["", 403],
    [undefined, 403],
  ];
  it.each(given)("the access list is checked against X-Forwarded-For %j: %i", async (forwarded, status) => {
    const response = await list(trusting, key.authorization, forwarded);
    expect(response).toMatchObject({ status, body: { status } });
  });

  it("no other header determines the address", async () => {
    const more = {
      Forwarded: "for=203.0.113.7",
      "X-Real-IP": "203.0.113.7",
      "True-Client-IP": "203.0.113.7",
    };
    expect((await list(trusting, key.authorization, undefined, more)).status).toBe(403);
    const against = { Forwarded: "for=198.51.100.1", "X-Real-IP": "198.51.100.1" };
    expect((await list(trusting, key.authorization, "203.0.113.7", against)).status).toBe(200);
  });

  it("failed authentications are counted per client, not per proxy", async () => {
    const wrong = basic(key.keyId, "wrong");
    const from = async (forwarded: string) => (await list(trusting, wrong, forwarded)).status;
    expect([await from("203.0.113.7"), await from("203.0.113.7")]).toEqual([401, 401]);
    expect(await from("203.0.113.7")).toBe(429);
    expect(await from("192.0.2.99, 203.0.113.7")).toBe(429);
    expect(await from("::ffff:203.0.113.7, 10.1.2.3")).toBe(429);
    expect(await from("203.0.113.8")).toBe(401);
    expect([await from("2001:db8:1::1"), await from("2001:db8:1::2")]).toEqual([401, 401]);
    expect(await from("2001:db8:1:0:ffff::3")).toBe(429);
    expect(await from("2001:db8:1:1::1")).toBe(401);
    expect((await list(trusting, key.authorization, "203.0.113.7")).status).toBe(200);
  });
});

describe("a log line", () => {
  const lineOf = (api: RunningApi, requestId: unknown) =>
    api.log.find((line) => line["requestId"] === requestId && line["msg"] === "request");

  const requests: readonly (readonly [what: string, ApiRequest, status: number])[] = [
    ["an authorized request", { path: "/v1/organizations" }, 200],
    ["a wrong secret", { path: "/v1/organizations", authorization: basic("A".repeat(20), "wrong") }, 401],
    ["a request without credentials", { path: "/v1/organizations", authorization: undefined }, 401],
    ["a public page", { path: "/openapi.json" }, 200],
    ["an unknown path", { path: "/nothing" }, 404],
    ["an unknown expectation", { path: "/v1/organizations", headers: { Expect: "a miracle" } }, 417],
  ];
  it.each(requests)("has the client address for %s", async (_, send, status) => {
    const headers = { ...send.headers, "X-Forwarded-For": "198.51.100.1, 203.0.113.9" };
    const response = await trusting.send({ authorization: key.authorization, ...send, headers });
    const line = lineOf(trusting, response.headers["x-request-id"]);
    expect(line).toMatchObject({ client: "203.0.113.9", status });
  });

  it("has the address of the connection without a trusted proxy", async () => {
    const response = await list(direct, key.authorization, "203.0.113.9");
    const line = lineOf(direct, response.headers["x-request-id"]);
    expect(line).toMatchObject({ client: "127.0.0.1", apiKey: key.id, status: 403 });
  });

  it("has the address of the connection for malformed HTTP", async () => {
    const response = await exchangeRaw(trusting.url, "hello\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n");
    const [, requestId] = /^x-request-id: (.*)\r$/im.exec(response) ?? [];
    expect(lineOf(trusting, requestId)).toMatchObject({ client: "127.0.0.1", status: 400 });
  });
});

describe("without a trusted proxy", () => {
  it("X-Forwarded-For does not bypass the access list", async () => {
    expect((await list(direct, key.authorization, "203.0.113.7")).status).toBe(403);
  });

  it("X-Forwarded-For does not affect the limit of failed authentications", async () => {
    const wrong = basic(key.keyId, "wrong");
    const seen: number[] = [];
    for (const last of [1, 2, 3]) seen.push((await list(direct, wrong, `203.0.113.${last}`)).status);
    expect(seen).toEqual([401, 401, 429]);
  });
});

describe("an invalid trusted proxy", () => {
  it.each(["10.0.0.0/33", "proxy.example.org", "010.0.0.1"])(
    "prevents the API from starting: %s",
    async (proxy) => {
      await expect(environment.startApi({ trustedProxies: [proxy] })).rejects.toThrow(
        `The trusted proxy "${proxy}" must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1.`,
      );
    },
  );
});
