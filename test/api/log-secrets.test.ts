import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CONFIG_MAPS, collectionPath, EVENTS } from "../../src/kube/paths.ts";
import { certificatePair } from "../support/fixtures/certificate.ts";
import { mountedPair } from "../support/fixtures/mounted-pair.ts";
import { basic, type KeyRecord, keyRecord } from "../support/fixtures/records.ts";
import { type Ask, exchangeRaw } from "./client.ts";
import { addMembers } from "./members-world.ts";
import { clientOfText, createWorld, PIPE_SCALINGS, type RunningApi, type World } from "./world.ts";

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

/** What of a key must come out nowhere. */
function hiddenOf({ keyId, keySecret, authorization, record }: KeyRecord): string[] {
  const encoded = [authorization, basic(keySecret, keyId)].map((header) => header.slice("Basic ".length));
  return [keyId, keySecret, ...encoded, record.stringData.secretHash.slice("sha256:".length)];
}

function expectNone(text: string, hidden: readonly string[]): void {
  for (const each of hidden) expect(text).not.toContain(each);
}

/** Events, and what the API can write: its own annotations and statuses included. */
async function inCluster(): Promise<string> {
  const collections = [
    collectionPath(CONFIG_MAPS, world.records),
    collectionPath(EVENTS, world.records),
    collectionPath(EVENTS, world.pipes),
    collectionPath(PIPE_SCALINGS, world.pipes),
  ];
  const lists = await Promise.all(collections.map((path) => world.admin.json({ path })));
  return JSON.stringify(lists);
}

async function metricsOf({ opsUrl }: RunningApi): Promise<string> {
  return (await clientOfText(opsUrl)("/metrics")).text;
}

const JSON_TYPE = { "Content-Type": "application/json" };

test("credentials come out nowhere, wherever a client puts them", async () => {
  const organizationId = await world.addOrganization();
  const service = await world.addService(organizationId);
  const suspended = await world.addService(organizationId);
  const key = await world.addKey({ organizationId });
  const { keyId, keySecret, authorization } = key;
  const broken = await world.addKey({
    organizationId: await world.addOrganization({}, { createdAt: "once" }),
  });
  const elsewhere = await world.addKey({
    organizationId,
    ipAccessList: [{ description: "", source: "192.0.2.1" }],
  });
  await addMembers(world, organizationId, { ada: "admin", bob: "developer" });
  await world.addScaling(service, {}, 2);
  await world.addScaling(suspended, { suspend: true }, 2);
  // Caches that were filled when everything was there, and limits that are soon reached.
  const late = await world.startReadyApi({ trustedProxies: ["127.0.0.1"] });
  const strict = await world.startReadyApi({ rateLimit: 1, failedLogins: 1 });
  const root = `/v1/organizations/${organizationId}`;
  const path = `${root}/services/${service}/pipesCdcScaling`;
  const backup = `${root}/services/${service}/backupConfiguration`;
  const pair = `${keyId}:${keySecret}`;
  const patch = { method: "PATCH", authorization, headers: JSON_TYPE };

  const operations: Ask[] = [
    { path: "/v1/organizations" },
    { path: `${root}/keys` },
    { path },
    { path: backup },
    { ...patch, path, body: '{"replicaCpuMillicores":3000}' },
    { ...patch, path: backup, body: '{"backupPeriodInHours":12}' },
    { method: "DELETE", path: `${root}/members/bob` },
    { ...patch, path: path.replace(service, suspended), body: '{"replicaCpuMillicores":3000}' },
  ];
  const statuses: number[] = [];
  for (const ask of operations) statuses.push((await late.ask({ ...ask, authorization })).status);
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200, 200, 409]);

  const refused = [
    basic(keyId, `${keySecret}x`),
    basic(keySecret, keyId),
    basic(`${keyId}\0`, keySecret),
    `Bearer ${keySecret}`,
    `Basic ${pair}`,
    `${authorization} ${keySecret}`,
    broken.authorization,
    elsewhere.authorization,
  ];
  const asks: Ask[] = [
    ...operations.flatMap((ask) => refused.map((other) => ({ ...ask, authorization: other }))),
    { path: `/v1/organizations/${keySecret}/services/${keyId}/pipesCdcScaling`, authorization },
    { path: `${root}/services/${keyId}/backupConfiguration`, authorization },
    { path: `${root}/members/${keySecret}`, method: "DELETE", authorization },
    { path: `${root}/members/${keySecret}%zz`, method: "DELETE", authorization },
    { path: `/v1/${encodeURIComponent(pair)}`, authorization },
    { path: `/v1/${keySecret}` },
    { path: `/${authorization.replace(" ", "%20")}` },
    { path: `/openapi.json?${pair}` },
    { path: `${path}?key=${keyId}&secret=${keySecret}`, authorization },
    { path: `http://${pair}@localhost${path}` },
    { path: `${root}/keys`, method: "OPTIONS", authorization, headers: { Origin: `http://${keyId}` } },
    { ...patch, path, body: `{"replicaCpuMillicores":"${pair}"}` },
    { ...patch, path, body: `${authorization} is no JSON` },
    { ...patch, path, body: `"${keySecret}${" ".repeat(70_000)}"` },
    { ...patch, path: backup, body: `{"backupStartTime":"${keySecret}"}` },
    { ...patch, path, headers: { "Content-Type": `text/${keySecret}` }, body: pair },
    { ...patch, path, headers: { ...JSON_TYPE, "Content-Encoding": keySecret }, body: pair },
    ...["Cookie", "Proxy-Authorization", "User-Agent", "X-Api-Key", "X-Forwarded-For", "X-Request-Id"].map(
      (name) => ({ path, authorization, headers: { [name]: `${pair} ${authorization}` } }),
    ),
    // Written as an address, or beside one.
    ...[keySecret, `${keySecret}, 203.0.113.7`, `203.0.113.7, ${keyId}`, `fe80::1%${keySecret}`].map(
      (from) => ({
        ...{ path, authorization, headers: { "X-Forwarded-For": from } },
      }),
    ),
    { path, headers: { Authorization: [authorization, authorization] } },
    { path, authorization, headers: { Expect: pair } },
  ];
  const said: string[] = [];
  for (const ask of asks) {
    const { status, headers, text } = await late.ask(ask);
    expect(status).toBeGreaterThanOrEqual(200);
    said.push(JSON.stringify(headers), text);
  }
  const head = `Host: a\r\nAuthorization: ${authorization}\r\n`;
  for (const bytes of [
    `${keySecret} / HTTP/1.1\r\n${head}\r\n`,
    `GET / HTTP/1.1\r\n${head} ${pair}\r\n\r\n`,
    `GET / HTTP/1.1\r\n${head}X-Long: ${keySecret.repeat(1000)}\r\n\r\n`,
    `PATCH ${path} HTTP/1.1\r\n${head}Content-Length: 1\r\nTransfer-Encoding: ${keySecret}\r\n\r\n`,
    `GET /docs/${keySecret}?${keyId} HTTP/1.1\r\n${head}Connection: close\r\n\r\n`,
    `CONNECT ${pair}@a:1 HTTP/1.1\r\n${head}\r\n`,
  ]) {
    said.push(await exchangeRaw(late.url, bytes));
  }
  for (const credentials of [authorization, authorization, ...refused]) {
    said.push(JSON.stringify(await strict.ask({ path, authorization: credentials })));
  }
  // The name of a field comes back to who sent it, in the 400 that says that it is none.
  expect((await late.ask({ ...patch, path, body: `{"${keySecret}":1,"${keyId}":1}` })).status).toBe(400);

  const apis = [api, late, strict];
  const text = JSON.stringify(apis.map(({ log }) => log));
  expect(late.log.length).toBeGreaterThan(operations.length + asks.length);
  said.push(text, await inCluster(), ...(await Promise.all(apis.map(metricsOf))));
  await Promise.all([late.stop(), strict.stop()]);
  expectNone(said.join("\n"), [key, broken, elsewhere].flatMap(hiddenOf));
});

test("credentials sent in plain HTTP to a port that speaks TLS come out nowhere", async () => {
  const key = await world.addKey({ organizationId: await world.addOrganization() });
  const mounted = mountedPair();
  mounted.mount(certificatePair("localhost"));
  const secure = await world.startReadyApi({ tlsCert: mounted.cert, tlsKey: mounted.key });
  const sent = `GET /v1/${key.keySecret} HTTP/1.1\r\nHost: a\r\nAuthorization: ${key.authorization}\r\n\r\n`;
  const said = await exchangeRaw(secure.url, sent);
  const metrics = await metricsOf(secure);
  await secure.stop();
  expectNone(`${said}\n${metrics}\n${JSON.stringify(secure.log)}`, hiddenOf(key));
});

test("what a key's own Secret says comes out nowhere, when it is malformed and that is told", async () => {
  const organizationId = await world.addOrganization();
  const yaml = (text: string) => [
    `|${text}`,
    `!${text}!a b`,
    `"\\q${text}"`,
    `*${text}`,
    `[${text}`,
    `{a: ${text}}`,
  ];
  const { keySecret } = keyRecord({ organizationId });
  const flat = ["id", "keySuffix", "secretHash", "state", "createdAt", "expireAt"];
  const malformed: [string, string][] = [
    ...flat.map((field): [string, string] => [field, keySecret]),
    ["secretHash", `sha256:${keySecret}`],
    ...["roles", "ipAccessList"].flatMap((field) =>
      yaml(keySecret).map((text): [string, string] => [field, text]),
    ),
    ["ipAccessList", `- source: ${keySecret}`],
  ];
  const keys: KeyRecord[] = [];
  for (const [field, value] of malformed) {
    const key = keyRecord({ organizationId, keySecret });
    const stringData = { ...key.record.stringData, [field]: value };
    await world.addRecord({ ...key.record, ...{ stringData } });
    keys.push(key);
  }
  const names = keys.map(({ record }) => `${world.records}/${record.metadata.name}`);
  const told = () => api.log.filter(({ record }) => names.includes(String(record)));
  await waitFor(() => told().length === names.length, { what: "each malformed key to be told" });
  const answers = await Promise.all(
    keys.map(({ authorization }) => api.ask({ path: "/v1/organizations", authorization })),
  );
  expect(answers.map(({ status }) => status)).toEqual(
    keys.map((_, at) => (at < keys.length - 1 ? 401 : 403)),
  );
  expectNone(JSON.stringify([api.log, answers]), keys.flatMap(hiddenOf));
});
