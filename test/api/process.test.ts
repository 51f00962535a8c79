import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import { exchangeRaw, openRaw, parseRaw } from "./client.ts";
import { clientOfText } from "./environment.ts";
import { setUpEnvironment } from "./fixtures.ts";

const environment = setUpEnvironment("process");

describe("the listener of the API", () => {
  it("accepts plain HTTP on a public address if TLS is terminated upstream", async () => {
    const api = await environment.startApi({ host: "0.0.0.0", plainHttp: true });
    await api.stop();
  });

  it.each([
    ["127.0.0.1", /^http:\/\/127\.0\.0\.1:\d+$/],
    ["127.0.0.2", /^http:\/\/127\.0\.0\.2:\d+$/],
    ["localhost", /^http:\/\/(127\.0\.0\.1|\[::1\]):\d+$/],
  ])("accepts plain HTTP on %s, and logs the bound address", async (host, url) => {
    const api = await environment.startApi({ host });
    expect(api.url).toMatch(url);
    expect((await api.send({ path: "/" })).status).toBe(404);
    await api.stop();
  });

  it("fails if the port is in use", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const address = other.address();
    const port = typeof address === "object" && address ? address.port : 0;
    await expect(environment.startApi({ port })).rejects.toThrow(`127.0.0.1 port ${port} is in use`);
    await expect(environment.startApi({ opsPort: port })).rejects.toThrow(`127.0.0.1 port ${port} is in use`);
    other.close();
  });
});

describe("TLS", () => {
  const files = () => ({
    tlsCert: join(environment.cluster.dir, "pki", "admin.crt"),
    tlsKey: join(environment.cluster.dir, "pki", "admin.key"),
  });

  it("works on any address with a certificate and its key", async () => {
    const api = await environment.startApi({ host: "0.0.0.0", ...files() });
    const { port } = new URL(api.url);
    expect(api.url).toMatch("https://");
    const call = request({ port, path: "/", rejectUnauthorized: false, agent: false }).end();
    const [response] = await once(call, "response");
    expect(response.statusCode).toBe(404);
    response.resume();
    await api.stop();
  });

  it("exposes the expiration time of the certificate as a metric", async () => {
    const { tlsCert, tlsKey } = files();
    const api = await environment.startApi({ tlsCert, tlsKey });
    const { text } = await clientOfText(api.opsUrl)("/metrics");
    const { validToDate } = new X509Certificate(readFileSync(tlsCert));
    const name = "pipe_scaling_certificate_expiration_timestamp_seconds";
    expect(text).toContain(`\n${name} ${validToDate.getTime() / 1000}\n`);
    await api.stop();
  });

  it("closes plain HTTP connections without a response, and continues to serve TLS connections", async () => {
    const api = await environment.startApi(files());
    const plain = api.url.replace("https:", "http:");
    expect(await exchangeRaw(plain, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")).not.toContain("HTTP/1.1");
    const socket = connectTls({ port: Number(new URL(api.url).port), rejectUnauthorized: false });
    await once(socket, "secureConnect");
    socket.write("hello\r\n\r\n");
    const [response] = await once(socket, "data");
    expect(parseRaw(String(response)).status).toBe(400);
    await api.stop();
  });

  it("requires a certificate and its matching key", async () => {
    const { tlsCert, tlsKey } = files();
    await expect(environment.startApi({ tlsCert, tlsKey: "/nowhere/tls.key" })).rejects.toThrow(
      "The TLS file /nowhere/tls.key cannot be read",
    );
    await expect(environment.startApi({ tlsCert: tlsKey, tlsKey: tlsCert })).rejects.toThrow(
      "The TLS certificate and key are unusable",
    );
  });
});

describe("the startup of the API", () => {
  it("requires a readable kubeconfig", async () => {
    await expect(environment.startApi({ kubeconfig: "/nowhere/kubeconfig" })).rejects.toThrow(
      "The kubeconfig /nowhere/kubeconfig does not exist",
    );
  });

  it("succeeds while the cluster is away, and requests get 503 until the cluster responds", async () => {
    // Nothing listens on port 1.
    const proxy = await TcpProxy.listen(1);
    onTestFinished(() => proxy.close());
    const kubeconfig = `${environment.kubeconfig}.proxied`;
    const direct = readFileSync(environment.kubeconfig, "utf8");
    const { server } = environment.cluster;
    writeFileSync(kubeconfig, direct.replace(server, `https://127.0.0.1:${proxy.port}`), { mode: 0o600 });
    const { admin } = await environment.addTenant();
    const api = await environment.startApi({ kubeconfig });
    onTestFinished(() => api.stop());
    const ops = clientOfText(api.opsUrl);
    expect(await ops("/healthz")).toEqual({ status: 200, text: "ok\n" });
    expect((await ops("/readyz")).status).toBe(503);
    const request = { path: "/v1/organizations", authorization: admin.authorization };
    expect((await api.send(request)).status).toBe(503);
    const warning = expect.objectContaining({
      level: "warn",
      msg: "the API server does not respond; trying again",
    });
    expect(api.log).toContainEqual(warning);

    proxy.target = Number(new URL(server).port);
    await waitFor(async () => (await ops("/readyz")).status === 200, { what: "the API to be ready" });
    expect((await api.send(request)).status).toBe(200);
  });
});

describe("the operations port", () => {
  it("serves liveness, readiness and metrics", async () => {
    const api = await environment.startReadyApi();
    const ops = clientOfText(api.opsUrl);
    expect(await ops("/healthz")).toEqual({ status: 200, text: "ok\n" });
    expect((await ops("/metrics")).text).toContain("process_cpu_seconds_total");
    expect((await api.send({ path: "/metrics" })).status).toBe(404);
    await api.stop();
  });
});

describe("a graceful shutdown", () => {
  it("completes a request in progress, and closes idle connections", async () => {
    const { serviceId, path, admin } = await environment.addTenant();
    const api = await environment.startReadyApi();
    const body = '{"replicaCpuMillicores":4000}';
    const idle = await openRaw(api.url);
    const busy = await openRaw(api.url);
    const head = `PATCH ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${admin.authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
    busy.write(head);
    // The server is processing the request when it sends 100 Continue.
    await busy.received("100 Continue");
    idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await idle.received("404");

    const stopped = api.stop();
    await idle.closed;
    await expect(api.send({ path: "/" })).rejects.toMatchObject({ code: "ECONNREFUSED" });
    expect(await clientOfText(api.opsUrl)("/readyz")).toEqual({ status: 503, text: "draining\n" });
    busy.write(body);
    await busy.closed;
    await stopped;

    const response = parseRaw(busy.text().replace("HTTP/1.1 100 Continue\r\n\r\n", ""));
    expect(response).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect((await environment.scaling(serviceId)).spec).toMatchObject({ replicaCpuMillicores: 4000 });
    await expect(fetch(api.opsUrl)).rejects.toThrow();
    expect(api.log.at(-1)).toMatchObject({ msg: "stopped" });
  });
});
