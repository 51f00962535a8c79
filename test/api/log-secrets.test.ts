import { afterAll, beforeAll, expect, test } from "vitest";
import { basic } from "../gen/records.ts";
import { type Ask, exchangeRaw } from "./client.ts";
import { createWorld, type RunningApi, type World } from "./world.ts";

let world: World;
let api: RunningApi;

beforeAll(async () => {
  world = await createWorld("log-secrets");
  api = await world.startReadyApi();
});

afterAll(async () => {
  await api?.stop();
  await world?.remove();
});

test("no log line shows credentials, wherever a client puts them", async () => {
  const organizationId = await world.addOrganization();
  const service = await world.addService(organizationId);
  const { keyId, keySecret, authorization } = await world.addKey({ organizationId });
  await world.addScaling(service, {}, 2);
  await api.admits(authorization);
  const path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`;
  const pair = `${keyId}:${keySecret}`;
  const json = { "Content-Type": "application/json" };
  const writes = [
    `{"replicaCpuMillicores":3000}`,
    `{"${keySecret}":1}`,
    `{"replicaCpuMillicores":"${pair}"}`,
    `${authorization} is no JSON`,
  ];
  const asks: Ask[] = [
    { path, authorization },
    { path, authorization: basic(keyId, `${keySecret}x`) },
    { path, authorization: basic(keySecret, keyId) },
    { path, authorization: `Bearer ${keySecret}` },
    { path: `/v1/organizations/${keySecret}/services/${keyId}/pipesCdcScaling`, authorization },
    { path: `/v1/${encodeURIComponent(pair)}`, authorization },
    { path: `/${authorization.replace(" ", "%20")}` },
    { path: `${path}?key=${keyId}&secret=${keySecret}`, authorization },
    { path: `http://${pair}@localhost${path}` },
    ...writes.map((body) => ({ method: "PATCH", path, authorization, headers: json, body })),
    { method: "PATCH", path, authorization, headers: { "Content-Type": `text/${keySecret}` }, body: pair },
    ...["Cookie", "Proxy-Authorization", "User-Agent", "X-Api-Key", "X-Forwarded-For", "X-Request-Id"].map(
      (name) => ({ path, authorization, headers: { [name]: `${pair} ${authorization}` } }),
    ),
    { path, headers: { Authorization: [authorization, authorization] } },
    { path, authorization, headers: { Expect: pair } },
  ];
  for (const ask of asks) expect((await api.ask(ask)).status).toBeGreaterThanOrEqual(200);
  const head = `Host: a\r\nAuthorization: ${authorization}\r\n`;
  for (const malformed of [
    `${keySecret} / HTTP/1.1\r\n${head}\r\n`,
    `GET / HTTP/1.1\r\n${head} ${pair}\r\n\r\n`,
    `GET / HTTP/1.1\r\n${head}X-Long: ${keySecret.repeat(1000)}\r\n\r\n`,
    `PATCH ${path} HTTP/1.1\r\n${head}Content-Length: 1\r\nTransfer-Encoding: ${keySecret}\r\n\r\n`,
    `CONNECT ${pair}@a:1 HTTP/1.1\r\n${head}\r\n`,
  ]) {
    await exchangeRaw(api.url, malformed);
  }

  const text = JSON.stringify(api.log);
  expect(api.log.length).toBeGreaterThan(asks.length);
  for (const hidden of [keyId, keySecret, authorization.slice("Basic ".length)]) {
    expect(text).not.toContain(hidden);
  }
});
