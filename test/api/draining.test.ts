import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from "vitest";
import { clientOf, openRaw, parseRaw } from "./client.ts";
import { clientOfText, createTestEnvironment, type TestEnvironment } from "./environment.ts";

const MAIN = inject("program");

let environment: TestEnvironment;

beforeAll(async () => {
  environment = await createTestEnvironment("draining");
});

afterAll(async () => {
  await environment?.remove();
});

/** A service that can be scaled, and a key for it. */
async function scalable(): Promise<{ path: string; authorization: string; service: string }> {
  const organizationId = await environment.addOrganization();
  const service = await environment.addService(organizationId);
  const { authorization } = await environment.addKey({ organizationId });
  await environment.addScaling(service, {}, 2);
  const path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`;
  return { path, authorization, service };
}

function portOf(server: Server): number {
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

/** The released API in a separate process. */
async function startProcess(flags: readonly string[] = [], kubeconfig = environment.kubeconfig) {
  const args = ["api", "--kubeconfig", kubeconfig, "--namespace", environment.records];
  const child = spawn(process.execPath, [MAIN, ...args, "--port", "0", "--ops-port", "0", ...flags], {
    env: {},
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const lines = (): Record<string, unknown>[] =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const listening = await waitFor(() => lines().find(({ msg }) => msg === "listening"), {
    what: "the process to start listening",
  });
  const [url, opsUrl] = [String(listening["url"]), String(listening["opsUrl"])];
  return { child, lines, url, send: clientOf(url), ops: clientOfText(opsUrl) };
}

test("SIGTERM completes the request in progress, closes all other connections, and ends the process with exit code 0", async () => {
  const { path, authorization, service } = await scalable();
  const { child, lines, url, send, ops } = await startProcess();
  await waitFor(async () => (await send({ path, authorization })).status === 200, {
    what: "the API to see the service",
  });
  const unused = await openRaw(url);
  const idle = await openRaw(url);
  idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await idle.received("404");
  const busy = await openRaw(url);
  const body = '{"replicaCpuMillicores":4000}';
  busy.write(
    `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await busy.received("100 Continue");
  busy.write(body.slice(0, 5));

  child.kill("SIGTERM");
  await Promise.all([idle.closed, unused.closed]);
  expect(await ops("/readyz")).toEqual({ status: 503, text: "draining\n" });
  await expect(send({ path: "/" })).rejects.toMatchObject({ code: "ECONNREFUSED" });
  busy.write(body.slice(5));
  await busy.closed;
  await once(child, "close");

  const response = parseRaw(busy.text().replace("HTTP/1.1 100 Continue\r\n\r\n", ""));
  expect(response).toMatchObject({ status: 200, headers: { connection: "close" } });
  expect((await environment.scaling(service)).spec).toMatchObject({ replicaCpuMillicores: 4000 });
  expect(child.exitCode).toBe(0);
  expect(lines().map(({ msg }) => msg)).toEqual(expect.arrayContaining(["stopping", "draining"]));
  expect(lines().at(-1)).toMatchObject({ msg: "stopped" });
});

test("SIGTERM ends the process within the 30 s grace period of a Pod, even if calls hang", async () => {
  const { path, authorization } = await scalable();
  const cluster = await TcpProxy.listen(Number(new URL(environment.cluster.server).port));
  const collector = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    cluster.close();
    collector.close();
  });
  await once(collector, "listening");
  const exported = once(collector, "connection");
  const kubeconfig = `${environment.kubeconfig}.proxied`;
  const direct = readFileSync(environment.kubeconfig, "utf8");
  writeFileSync(kubeconfig, direct.replace(environment.cluster.server, `https://127.0.0.1:${cluster.port}`), {
    mode: 0o600,
  });
  // The same flags as in the chart.
  const flags = ["--otlp-endpoint", `http://127.0.0.1:${portOf(collector)}`, "--drain-delay", "5s"];
  const { child, lines, url, send } = await startProcess(flags, kubeconfig);
  await waitFor(async () => (await send({ path, authorization })).status === 200, {
    what: "the API to see the service",
  });

  // The collector receives the span of this request but does not respond.
  const headers = { "Content-Type": "application/json" };
  const body = '{"replicaCpuMillicores":3000}';
  expect((await send({ method: "PATCH", path, authorization, headers, body })).status).toBe(200);
  await exported;
  // The rest of this body never arrives.
  const { hostname, port } = new URL(url);
  const endless = connect(Number(port), hostname);
  endless.on("error", () => undefined);
  endless.write(
    `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n`,
  );
  expect(String(await once(endless, "data"))).toContain("100 Continue");
  // The last key-usage write gets no response.
  cluster.freeze();

  child.kill("SIGTERM");
  await waitFor(() => child.exitCode !== null, { what: "the process to end", timeoutMs: 28_500 });
  expect(child.exitCode).toBe(0);
  expect(lines()).toContainEqual(
    expect.objectContaining({ level: "warn", msg: "key usage could not be recorded" }),
  );
  expect(lines().at(-1)).toMatchObject({ msg: "stopped" });
});

test("during the drain delay, the process accepts connections and reports that it is not ready", async () => {
  const { path, authorization } = await scalable();
  const api = await environment.startReadyApi({ drainDelayMs: 3000 });
  await waitFor(async () => (await api.send({ path, authorization })).status === 200, {
    what: "the API to see the service",
  });

  const stopped = api.stop();
  expect((await clientOfText(api.opsUrl)("/readyz")).status).toBe(503);
  const keepAlive = { Connection: "keep-alive" };
  const response = await api.send({ path, authorization, headers: keepAlive });
  expect(response).toMatchObject({ status: 200, headers: { connection: "close" } });
  await stopped;
  await expect(api.send({ path })).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
