import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { delimiter, join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { type CertificatePair, certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { environment as env } from "@pipe-scaling/local-cluster/environment";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import { type Client, clientOf } from "../api/client.ts";
import { ApiEnvironment, newTenant, type RunningApi } from "../api/environment.ts";
import { caddy } from "../chart/checkers/python-packages.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { mountedPair } from "../support/fixtures/mounted-pair.ts";
import { runCommands } from "../support/page-commands.ts";
import { freePort, page, stepsOf } from "./tutorial.ts";

const PAGE = page("how-to/many-clusters.md");
const [, CADDYFILE = ""] = /```caddyfile\n(.*?)```/s.exec(PAGE) ?? [];
const [COPY = "", DISABLE = ""] = stepsOf(PAGE).map(({ commands }) => commands);

let clusters: readonly Cluster[] = [];
beforeAll(async () => {
  clusters = await Promise.all([0, 1].map(() => startCluster({ progress: silentProgress })));
});
afterAll(() => Promise.all(clusters.map((cluster) => cluster.stop())));

/** An installation with the names of the page. */
function installation(cluster: Cluster | undefined): Promise<ApiEnvironment> {
  return new ApiEnvironment({ records: "pipe-scaling-records", pipes: "acme-pipes" }).create(cluster);
}

function startApi(environment: ApiEnvironment, { cert, key }: CertificatePair): Promise<RunningApi> {
  const pair = mountedPair();
  pair.mount({ cert, key });
  return environment.startReadyApi({
    tlsCert: pair.cert,
    tlsKey: pair.key,
    trustedProxies: ["127.0.0.1"],
  });
}

/** Starts Caddy with the configuration of the page, for these addresses. */
async function startProxy(text: string, ca: string): Promise<Client> {
  const dir = temporaryFolder();
  const port = await freePort();
  writeFileSync(join(dir, "ca.crt"), ca);
  const global = "{\n\tadmin off\n}\n";
  writeFileSync(
    join(dir, "Caddyfile"),
    global + text.replace("pipes.example.com", `http://127.0.0.1:${port}`),
  );
  const child = spawn(await caddy(), ["run", "--config", "Caddyfile"], {
    cwd: dir,
    env: { HOME: dir },
    stdio: "ignore",
  });
  onTestFinished(async () => {
    child.kill();
    await once(child, "close");
  });
  const send = clientOf(`http://127.0.0.1:${port}`);
  await waitFor(() => send({ path: "/" }).then(() => true), { what: "Caddy to listen" });
  return send;
}

/** A kubeconfig with the contexts eu and us. */
function kubeconfigOf(dir: string): string {
  const [eu, us] = clusters.map(({ kubeconfig }) => parse(readFileSync(kubeconfig, "utf8")));
  const named = [
    { name: "eu", of: eu },
    { name: "us", of: us },
  ];
  const path = join(dir, "contexts");
  const text = stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: named.map(({ name, of }) => ({ name, cluster: of.clusters[0].cluster })),
    users: named.map(({ name, of }) => ({ name, user: of.users[0].user })),
    contexts: named.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
  });
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

it("docs/how-to/many-clusters.md serves the services of two clusters at one host name, also while one is away", {
  timeout: 300_000,
}, async () => {
  const [first, second] = clusters;
  const [eu, us] = await Promise.all([installation(first), installation(second)]);
  const tenant = await eu.addTenant();
  const { organizationId, admin, path } = tenant;
  const away = { ...newTenant(), organizationId };
  const dir = temporaryFolder();
  const pipeScaling = join(dir, "pipe-scaling");
  writeFileSync(pipeScaling, `#!/bin/sh\nexec ${process.execPath} ${inject("program")} "$@"\n`);
  chmodSync(pipeScaling, 0o700);
  const variables = {
    PATH: [dir, first?.binaries.dir, env["PATH"]].join(delimiter),
    KUBECONFIG: kubeconfigOf(dir),
    key: admin.id,
  };
  const type = (commands: string) => runCommands(eu.cluster, [commands], { cwd: dir, variables });
  await type(COPY);
  await us.addService(organizationId, away.serviceId);
  await us.addScaling(away.serviceId, {}, 2);
  const certificate = certificatePair("api");
  const [euApi, usApi] = await Promise.all([startApi(eu, certificate), startApi(us, certificate)]);
  const addresses = CADDYFILE.replace("65bb3d4d-ab73-4fc2-bd46-5d1ed0b1a80c", away.serviceId)
    .replace("us.pipes.example.com:443", new URL(usApi.url).host)
    .replace("eu.pipes.example.com:443", new URL(euApi.url).host);
  let proxy = await startProxy(addresses, certificate.cert);
  const { authorization } = admin;
  const pathAway = path.replace(tenant.serviceId, away.serviceId);
  const resize = (of: string, cores: number) =>
    proxy({
      method: "PATCH",
      path: of,
      authorization,
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 }),
    });

  for (const each of [path, pathAway])
    await waitFor(async () => (await proxy({ path: each, authorization })).status === 200, {
      what: "the records to reach both APIs",
    });
  expect([(await resize(path, 4)).status, (await resize(pathAway, 8)).status]).toEqual([200, 200]);
  expect((await eu.scaling(tenant.serviceId)).spec).toMatchObject({ replicaCpuMillicores: 4000 });
  expect((await us.scaling(away.serviceId)).spec).toMatchObject({ replicaCpuMillicores: 8000 });
  for (const each of [path, pathAway]) {
    const uppercase = each.replace(/[^/]+(?=\/pipesCdcScaling)/, (id) => id.toUpperCase());
    expect((await proxy({ path: uppercase, authorization })).status).toBe(200);
  }
  const { text: list } = await proxy({ path: `/v1/organizations/${organizationId}/services`, authorization });
  expect([list.includes(tenant.serviceId), list.includes(away.serviceId)]).toEqual([true, false]);
  const metrics = { path: pathAway.replace("pipesCdcScaling", "prometheus"), authorization };
  expect((await proxy(metrics)).text).toContain(away.serviceId);
  const unknown = path.replace(tenant.serviceId, randomUUID());
  expect((await proxy({ path: unknown, authorization })).status).toBe(404);

  await usApi.stop();
  const unreachable = await resize(pathAway, 2);
  expect([unreachable.status, unreachable.headers["content-type"]]).toEqual([503, "application/json"]);
  expect(JSON.parse(unreachable.text)).toEqual({
    error: "SERVICE_UNAVAILABLE: The cluster of this service cannot be reached. Try again later.",
    status: 503,
  });
  expect((await resize(path, 2)).status).toBe(200);

  // A proxy for the new address of the API.
  const usAgain = await startApi(us, certificate);
  const again = addresses.replace(new URL(usApi.url).host, new URL(usAgain.url).host);
  proxy = await startProxy(again, certificate.cert);
  expect((await resize(pathAway, 2)).status).toBe(200);
  await type(DISABLE);
  for (const api of [euApi, usAgain])
    await waitFor(async () => (await api.send({ path: "/v1/organizations", authorization })).status === 401, {
      what: "the key to be rejected",
    });
  await euApi.stop();
  expect((await proxy({ path: "/v1/organizations", authorization })).status).toBe(503);
  // The API of the second cluster still responds, and rejects the disabled key.
  expect((await proxy({ path: pathAway, authorization })).status).toBe(401);
  await usAgain.stop();
});

it.each([
  ["accepts connections", () => createServer()],
  ["completes the handshake of TLS", (pair: CertificatePair) => createTlsServer(pair)],
])("docs/how-to/many-clusters.md responds 503 for a cluster that only %s", async (_, silentServer) => {
  const certificate = certificatePair("api");
  const port = await freePort();
  const silent = silentServer(certificate).listen(Number(port), "127.0.0.1");
  onTestFinished(() => void silent.close());
  await once(silent, "listening");
  const proxy = await startProxy(
    CADDYFILE.replace("us.pipes.example.com:443", `127.0.0.1:${port}`).replace(" 35s", " 1s"),
    certificate.cert,
  );
  const path = `/v1/organizations/${randomUUID()}/services/65bb3d4d-ab73-4fc2-bd46-5d1ed0b1a80c`;
  expect((await proxy({ path })).status).toBe(503);
});
