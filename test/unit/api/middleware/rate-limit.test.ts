import type { Request, Response } from "express";
import { beforeEach, describe, expect, it } from "vitest";
import { KeyUsageBuffer } from "../../../../src/api/cluster/key-usage/buffer.ts";
import { toKeyView } from "../../../../src/api/cluster/views.ts";
import { authenticate } from "../../../../src/api/middleware/authenticate.ts";
import { allowClientIp } from "../../../../src/api/middleware/client-ip.ts";
import { RateLimits } from "../../../../src/api/middleware/rate-limit/limits.ts";
import { rateLimit } from "../../../../src/api/middleware/rate-limit.ts";
import { sendResult } from "../../../../src/api/middleware/respond.ts";
import type { RateLimitSettings } from "../../../../src/settings/api.ts";
import { type ApiResponse, type Client, clientOf } from "../../../api/client.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { basic, type KeyFields, keyRecord } from "../../../support/fixtures/records.ts";
import { appOf, DEFAULT_LIMITS, serve } from "../../../support/servers/express-app.ts";

const ORGANIZATION = "11111111-1111-4111-8111-111111111111";
const WRONG = basic("A".repeat(20), "wrong");

let keys: Map<string, ReturnType<typeof toKeyView>>;
let clock: FakeClock;
let keyUsageBuffer: KeyUsageBuffer;

beforeEach(() => {
  keys = new Map();
  clock = new FakeClock();
  keyUsageBuffer = new KeyUsageBuffer();
});

function addKey(fields: Partial<KeyFields> = {}) {
  const key = keyRecord({ organizationId: ORGANIZATION, ...fields });
  update(key);
  return key;
}

/** A Secret from a watch: a new object, even if its content is the same. */
function update({ record }: ReturnType<typeof keyRecord>): void {
  const { name } = record.metadata;
  const data = Object.entries(record.stringData).map(([field, text]) => [
    field,
    Buffer.from(String(text)).toString("base64"),
  ]);
  const metadata = { ...record.metadata, namespace: "records", uid: name, resourceVersion: "1" };
  keys.set(name, toKeyView({ ...record, metadata, data: Object.fromEntries(data) }));
}

/** A server with only authentication and rate limits. Every connection is from a trusted proxy. */
async function start(settings: Partial<RateLimitSettings> = {}): Promise<Client> {
  const limits = new RateLimits({ ...DEFAULT_LIMITS, ...settings });
  const cache = { key: (name: string) => keys.get(name), requireFreshRecords: () => undefined };
  const handlers = [
    authenticate({ cache, clock, limits }),
    allowClientIp,
    rateLimit({ limits, clock, keyUsage: keyUsageBuffer }),
    (_request: Request, response: Response) => sendResult(response),
  ];
  return clientOf(await serve(appOf(handlers, { clock, limits, trustedProxies: ["127.0.0.1"] })));
}

function send(client: Client, authorization?: string, from = "203.0.113.7"): Promise<ApiResponse> {
  return client({ path: "/v1", authorization, headers: { "X-Forwarded-For": from } });
}

async function statuses(times: number, one: () => Promise<ApiResponse>): Promise<number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i += 1) seen.push((await one()).status);
  return seen;
}

/** The six rate-limit headers. */
function fields({ headers }: ApiResponse): unknown[] {
  return ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
    .map((name): unknown => headers[name])
    .concat(["ratelimit-policy", "ratelimit", "retry-after"].map((name) => headers[name]));
}

const times = (count: number, status: number) => Array<number>(count).fill(status);

describe("a key", () => {
  it("gets the number of remaining requests in every response, and Retry-After from the eleventh response on", async () => {
    const { authorization } = addKey();
    const client = await start();
    const policy = '"key";q=10;w=10';
    expect(fields(await send(client, authorization))).toEqual([
      ...["10", "9", "1", policy],
      ...['"key";r=9;t=1', undefined],
    ]);
    await statuses(8, () => send(client, authorization));
    await clock.advance(400);
    expect(fields(await send(client, authorization))).toEqual([
      ...["10", "0", "10", policy],
      ...['"key";r=0;t=1', undefined],
    ]);
    const refused = await send(client, authorization);
    expect(refused).toMatchObject({
      status: 429,
      body: { error: "Too many requests with this key: try again in 1 s.", status: 429 },
    });
    expect(fields(refused)).toEqual([...["10", "0", "10", policy], ...['"key";r=0;t=1', "1"]]);
  });

  it("can send one request after Retry-After, and the full number after the reset", async () => {
    const { authorization } = addKey();
    const client = await start({ rateLimit: 4, rateWindowMs: 10_000 });
    expect(await statuses(5, () => send(client, authorization))).toEqual([...times(4, 200), 429]);
    const { headers } = await send(client, authorization);
    expect(headers).toMatchObject({ "retry-after": "3", "x-ratelimit-reset": "10" });
    await clock.advance(3000);
    expect(await statuses(2, () => send(client, authorization))).toEqual([200, 429]);
    const later = await send(client, authorization);
    await clock.advance(Number(later.headers["x-ratelimit-reset"]) * 1000);
    expect(await statuses(5, () => send(client, authorization))).toEqual([...times(4, 200), 429]);
  });

  it("keeps its own bucket when its Secret changes", async () => {
    const [key, other] = [addKey(), addKey()];
    const client = await start();
    expect(await statuses(11, () => send(client, key.authorization))).toEqual([...times(10, 200), 429]);
    update(key);
    expect((await send(client, key.authorization)).status).toBe(429);
    expect((await send(client, other.authorization)).headers["x-ratelimit-remaining"]).toBe("9");
  });

  it("has one bucket for all addresses and all spellings of its Authorization header", async () => {
    const { authorization } = addKey();
    const client = await start({ rateLimit: 2 });
    expect((await send(client, authorization, "203.0.113.8")).status).toBe(200);
    expect((await send(client, authorization.replace("Basic", "basic"))).status).toBe(200);
    expect((await send(client, authorization.replace(" ", "  "))).status).toBe(429);
  });

  it("is neither charged nor recorded as used for a request from an address that is not allowed", async () => {
    const { authorization } = addKey({ ipAccessList: [{ description: "", source: "203.0.113.7" }] });
    const client = await start({ rateLimit: 2 });
    expect((await send(client, authorization)).status).toBe(200);
    const denied = await send(client, authorization, "198.51.100.1");
    expect(denied).toMatchObject({ status: 403, headers: { "x-ratelimit-remaining": "2" } });
    expect(denied.headers).not.toHaveProperty("ratelimit");
    expect(await statuses(2, () => send(client, authorization))).toEqual([200, 429]);
    expect((await send(client, authorization, "198.51.100.1")).status).toBe(403);
  });

  it("is not limited if the limit is 0", async () => {
    const { authorization } = addKey();
    const client = await start({ rateLimit: 0 });
    expect(await statuses(30, () => send(client, authorization))).toEqual(times(30, 200));
    expect(fields(await send(client, authorization))).toEqual(times(6, 0).map(() => undefined));
  });

  it("never gets a reset time longer than the window of 55 s", async () => {
    const { authorization } = addKey();
    const client = await start({ rateLimit: 3, rateWindowMs: 55_000 });
    await statuses(5, () => send(client, authorization));
    expect((await send(client, authorization)).headers["x-ratelimit-reset"]).toBe("55");
  });
});

describe("failed authentications", () => {
  it("get 429 if too many have the same rate-limit key, and 401 again later", async () => {
    const client = await start({ failedLogins: 3, rateWindowMs: 9000 });
    const first = await send(client, WRONG);
    expect(first).toMatchObject({ status: 401, headers: { "www-authenticate": expect.any(String) } });
    const policy = '"failed-logins";q=3;w=9';
    expect(fields(first)).toEqual(["3", "2", "3", policy, '"failed-logins";r=2;t=3', undefined]);
    expect(await statuses(3, () => send(client, WRONG))).toEqual([401, 401, 429]);
    const refused = await send(client, WRONG);
    expect(refused.body).toEqual({
      error: "Too many failed authentications from this address: try again in 3 s.",
      status: 429,
    });
    expect(fields(refused)).toEqual(["3", "0", "9", policy, '"failed-logins";r=0;t=3', "3"]);
    await clock.advance(3000);
    expect(await statuses(2, () => send(client, WRONG))).toEqual([401, 429]);
  });

  it("never block valid credentials, and are not charged to the key that they name", async () => {
    const key = addKey();
    const client = await start({ failedLogins: 3, rateLimit: 5 });
    const guess = basic(key.keyId, "guess");
    expect(await statuses(6, () => send(client, guess))).toEqual([...times(3, 401), ...times(3, 429)]);
    expect(await statuses(6, () => send(client, key.authorization))).toEqual([...times(5, 200), 429]);
    expect((await send(client, guess)).headers["ratelimit"]).toMatch(/^"failed-logins";r=0/);
  });

  it("do not share a bucket with valid credentials", async () => {
    const { authorization } = addKey();
    const client = await start({ failedLogins: 3, rateLimit: 5 });
    await statuses(8, () => send(client, authorization));
    expect(await statuses(4, () => send(client, WRONG))).toEqual([...times(3, 401), 429]);
  });

  it.each([
    ["an unknown key", () => WRONG],
    ["a wrong secret", () => basic(addKey().keyId, "wrong")],
    ["a disabled key", () => addKey({ state: "disabled" }).authorization],
    ["an expired key", () => addKey({ expireAt: new Date(clock.now()) }).authorization],
    ["a malformed header", () => "Basic ***"],
    ["another scheme", () => "Bearer abc"],
    ["an empty header", () => ""],
  ])("are counted for %s", async (_what, given) => {
    const authorization = given();
    const client = await start({ failedLogins: 1 });
    expect(await statuses(2, () => send(client, authorization))).toEqual([401, 429]);
    expect((await send(client, WRONG)).status).toBe(429);
  });

  it("do not include requests without credentials, which always get 401", async () => {
    const client = await start({ failedLogins: 1 });
    expect(await statuses(5, () => send(client))).toEqual(times(5, 401));
    expect(await statuses(2, () => send(client, WRONG))).toEqual([401, 429]);
    const anonymous = await send(client);
    expect(anonymous).toMatchObject({ status: 401, headers: { "www-authenticate": expect.any(String) } });
    expect(fields(anonymous)).toEqual(["10", "10", "0", '"key";q=10;w=10', undefined, undefined]);
  });

  it.each([
    ["203.0.113.7", "203.0.113.8", false],
    ["203.0.113.7", "::ffff:203.0.113.7", true],
    ["::ffff:203.0.113.7", "::ffff:203.0.113.8", false],
    ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true],
    ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ])("from %s and %s share a bucket: %s", async (one, another, same) => {
    const client = await start({ failedLogins: 1 });
    await send(client, WRONG, one);
    expect((await send(client, WRONG, another)).status).toBe(same ? 429 : 401);
  });

  it("are not limited if the limit is 0", async () => {
    const client = await start({ failedLogins: 0 });
    expect(await statuses(30, () => send(client, WRONG))).toEqual(times(30, 401));
  });
});

describe("the use of a key", () => {
  /** The minute of each key's last use, by its resource ID. */
  function recorded() {
    return new Map(keyUsageBuffer.take().get(ORGANIZATION));
  }

  const minute = () => Math.floor(clock.now() / 60_000);

  it("is recorded once per key and minute", async () => {
    const [key, other] = [addKey(), addKey()];
    const client = await start();
    await statuses(2, () => send(client, key.authorization));
    await clock.advance(60_000);
    await statuses(2, () => send(client, key.authorization));
    await send(client, other.authorization);
    expect(recorded()).toEqual(
      new Map([
        [key.id, minute()],
        [other.id, minute()],
      ]),
    );
  });

  it("is recorded even if the response is 429", async () => {
    const key = addKey();
    const client = await start({ rateLimit: 1 });
    await send(client, key.authorization);
    keyUsageBuffer.take();
    expect((await send(client, key.authorization)).status).toBe(429);
    expect(recorded()).toEqual(new Map([[key.id, minute()]]));
  });

  it("is not recorded for a request from an address that is not allowed", async () => {
    const { authorization } = addKey({ ipAccessList: [{ description: "", source: "198.51.100.1" }] });
    expect((await send(await start(), authorization)).status).toBe(403);
    expect(recorded().size).toBe(0);
  });

  it.each([
    ["a wrong secret", () => basic(addKey().keyId, "wrong")],
    ["a disabled key", () => addKey({ state: "disabled" }).authorization],
    ["an expired key", () => addKey({ expireAt: new Date(clock.now()) }).authorization],
  ])("is not recorded with %s", async (_what, given) => {
    const authorization = given();
    expect((await send(await start(), authorization)).status).toBe(401);
    expect(recorded().size).toBe(0);
  });
});
