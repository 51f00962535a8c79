import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, test } from "vitest";
import { CONFIG_MAPS, collectionPath, EVENTS } from "../../src/kube/paths.ts";
import { mountedPair } from "../support/fixtures/mounted-pair.ts";
import { basic, type KeyRecord, keyRecord } from "../support/fixtures/records.ts";
import { type ApiRequest, exchangeRaw } from "./client.ts";
import { clientOfText, PIPE_SCALINGS, type RunningApi } from "./environment.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";
import { addMembers } from "./member-records.ts";

const environment = setUpEnvironment("log-secrets");
const api = setUpApi(environment);

/** Returns the parts of a key that must not appear anywhere. */
function hiddenOf({ keyId, keySecret, authorization, record }: KeyRecord): string[] {
  const encoded = [authorization, basic(keySecret, keyId)].map((header) => header.slice("Basic ".length));
  return [keyId, keySecret, ...encoded, record.stringData.secretHash.slice("sha256:".length)];
}

function expectNone(text: string, hidden: readonly string[]): void {
  for (const each of hidden) expect(text).not.toContain(each);
}

/** Reads Events and all objects that the API can write. */
async function inCluster(): Promise<string> {
  const collections = [
    collectionPath(CONFIG_MAPS, environment.records),
    collectionPath(EVENTS, environment.records),
    collectionPath(EVENTS, environment.pipes),
    collectionPath(PIPE_SCALINGS, environment.pipes),
  ];
  const lists = await Promise.all(collections.map((path) => environment.admin.json({ path })));
  return JSON.stringify(lists);
}

async function metricsOf({ opsUrl }: RunningApi): Promise<string> {
  return (await clientOfText(opsUrl)("/metrics")).text;
}

const JSON_TYPE = { "Content-Type": "application/json" };

test("credentials never appear in logs, metrics, cluster objects or responses, regardless of where a client puts them", async () => {
  const organizationId = await environment.addOrganization();
  const service = await environment.addService(organizationId);
  const suspended = await environment.addService(organizationId);
  const key = await environment.addKey({ organizationId });
  const { keyId, keySecret, authorization } = key;
  const broken = await environment.addKey({
    organizationId: await environment.addOrganization({}, { createdAt: "once" }),
  });
  const elsewhere = await environment.addKey({
    organizationId,
    ipAccessList: [{ description: "", source: "192.0.2.1" }],
  });
  await addMembers(environment, organizationId, { ada: "admin", bob: "developer" });
  await environment.addScaling(service, {}, 2);
  await environment.addScaling(suspended, { suspend: true }, 2);
  // These processes start after the records exist. The second process has low limits.
  const late = await environment.startReadyApi({ trustedProxies: ["127.0.0.1"] });
  const strict = await environment.startReadyApi({ rateLimit: 1, failedLogins: 1 });
  const root = `/v1/organizations/${organizationId}`;
  const path = `${root}/services/${service}/pipesCdcScaling`;
  const backup = `${root}/services/${service}/backupConfiguration`;
  const pair = `${keyId}:${keySecret}`;
  const patch = { method: "PATCH", authorization, headers: JSON_TYPE };

  const operations: ApiRequest[] = [
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
  for (const send of operations) statuses.push((await late.send({ ...send, authorization })).status);
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
  const requests: ApiRequest[] = [
    ...operations.flatMap((send) => refused.map((other) => ({ ...send, authorization: other }))),
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
    // Instead of an address, or next to one.
    ...[keySecret, `${keySecret}, 203.0.113.7`, `203.0.113.7, ${keyId}`, `fe80::1%${keySecret}`].map(
      (from) => ({
        path,
        authorization,
        headers: { "X-Forwarded-For": from },
      }),
    ),
    { path, headers: { Authorization: [authorization, authorization] } },
    { path, authorization, headers: { Expect: pair } },
  ];
  const texts: string[] = [];
  for (const send of requests) {
    const { status, headers, text } = await late.send(send);
    expect(status).toBeGreaterThanOrEqual(200);
    texts.push(JSON.stringify(headers), text);
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
    texts.push(await exchangeRaw(late.url, bytes));
  }
  for (const credentials of [authorization, authorization, ...refused]) {
    texts.push(JSON.stringify(await strict.send({ path, authorization: credentials })));
  }
  // This response is not checked, because the 400 for an unknown field contains its name.
  expect((await late.send({ ...patch, path, body: `{"${keySecret}":1,"${keyId}":1}` })).status).toBe(400);

  const apis = [api, late, strict];
  const text = JSON.stringify(apis.map(({ log }) => log));
  expect(late.log.length).toBeGreaterThan(operations.length + requests.length);
  texts.push(text, await inCluster(), ...(await Promise.all(apis.map(metricsOf))));
  await Promise.all([late.stop(), strict.stop()]);
  expectNone(texts.join("\n"), [key, broken, elsewhere].flatMap(hiddenOf));
});

test("credentials sent in plain HTTP to a TLS port never appear in logs, metrics or the response", async () => {
  const key = await environment.addKey({ organizationId: await environment.addOrganization() });
  const mounted = mountedPair();
  mounted.mount(certificatePair("localhost"));
  const secure = await environment.startReadyApi({ tlsCert: mounted.cert, tlsKey: mounted.key });
  const sent = `GET /v1/${key.keySecret} HTTP/1.1\r\nHost: a\r\nAuthorization: ${key.authorization}\r\n\r\n`;
  const texts = await exchangeRaw(secure.url.replace("https:", "http:"), sent);
  const metrics = await metricsOf(secure);
  await secure.stop();
  expectNone(`${texts}\n${metrics}\n${JSON.stringify(secure.log)}`, hiddenOf(key));
});

test("the content of a malformed key Secret never appears in logs or responses, not even in the log line about it", async () => {
  const organizationId = await environment.addOrganization();
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
    await environment.addRecord({ ...key.record, stringData });
    keys.push(key);
  }
  const names = keys.map(({ record }) => `${environment.records}/${record.metadata.name}`);
  const logged = () => api.log.filter(({ record }) => names.includes(String(record)));
  await waitFor(() => logged().length === names.length, { what: "a log line for each malformed key" });
  const responses = await Promise.all(
    keys.map(({ authorization }) => api.send({ path: "/v1/organizations", authorization })),
  );
  expect(responses.map(({ status }) => status)).toEqual(
    keys.map((_, at) => (at < keys.length - 1 ? 401 : 403)),
  );
  expectNone(JSON.stringify([api.log, responses]), keys.flatMap(hiddenOf));
});
