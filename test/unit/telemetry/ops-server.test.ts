import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, type Socket } from "node:net";
import { Counter, Registry } from "prom-client";
import { describe, expect, it, onTestFinished } from "vitest";
import { createLogger } from "../../../src/telemetry/log.ts";
import type { Access, AccessControl } from "../../../src/telemetry/metrics-access.ts";
import { listen, type Readiness, startOpsServer, urlOf } from "../../../src/telemetry/ops-server.ts";

const HOST = "127.0.0.1";

function collectingLog() {
  const lines: Record<string, unknown>[] = [];
  return { log: createLogger("info", "test", { write: (line) => lines.push(JSON.parse(line)) }), lines };
}

function closeAtTheEnd(server: Server): void {
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
}

async function start(
  readiness: Readiness = { ready: true },
  check?: AccessControl["check"],
): Promise<Server> {
  const metrics = new Registry();
  new Counter({ name: "things_total", help: "Things.", registers: [metrics] });
  const { log } = collectingLog();
  const options = {
    host: HOST,
    port: 0,
    metrics,
    readiness: () => readiness,
    access: check && { check },
    log,
  };
  const server = await startOpsServer(options);
  closeAtTheEnd(server);
  return server;
}

function portOf(server: Server): number {
  return Number(new URL(urlOf(server)).port);
}

describe("a listening server", () => {
  it("logs its errors and continues to respond", async () => {
    const { log, lines } = collectingLog();
    const server = await listen(
      createServer((_request, response) => response.end("still here")),
      HOST,
      0,
      log,
    );
    closeAtTheEnd(server);
    const error = Object.assign(new Error("accept EMFILE"), { code: "EMFILE" });
    server.emit("error", error);
    server.emit("error", error);
    expect(lines).toEqual(
      Array.from({ length: 2 }, () =>
        expect.objectContaining({
          level: "error",
          err: expect.objectContaining({ message: "accept EMFILE" }),
          msg: "server error",
        }),
      ),
    );
    expect(await (await fetch(urlOf(server))).text()).toBe("still here");
  });

  it("makes a second server on the same port fail with a clear message", async () => {
    const { log, lines } = collectingLog();
    const port = portOf(await start());
    await expect(listen(createServer(), HOST, port, log)).rejects.toThrow(
      `${HOST} port ${port} is in use by another program: stop it or choose another port`,
    );
    expect(lines).toEqual([]);
  });
});

describe("the operations server", () => {
  it.each([
    ["/healthz", 200, "ok\n"],
    ["/readyz?verbose", 200, "ok\n"],
    ["/other", 404, "not found: this port serves /healthz, /readyz and /metrics\n"],
  ])("responds to %s with %i", async (path, status, body) => {
    const response = await fetch(`${urlOf(await start())}${path}`);
    expect(response.status).toBe(status);
    expect(await response.text()).toBe(body);
  });

  it("responds to /readyz with 503 and the reason if the process is not ready", async () => {
    const response = await fetch(`${urlOf(await start({ ready: false, problem: "draining" }))}/readyz`);
    expect(response.status).toBe(503);
    expect(await response.text()).toBe("draining\n");
  });

  it("responds to /metrics in the text format of Prometheus", async () => {
    const response = await fetch(`${urlOf(await start())}/metrics`);
    expect(response.headers.get("content-type")).toContain("text/plain; version=0.0.4");
    expect(await response.text()).toContain("things_total 0");
  });

  it("passes the Authorization header to the access control of the metrics", async () => {
    const headers: unknown[] = [];
    const server = await start({ ready: true }, async (authorization) => {
      headers.push(authorization);
      return "allowed";
    });
    const response = await fetch(`${urlOf(server)}/metrics`, { headers: { authorization: "Bearer a" } });
    expect(await response.text()).toContain("things_total 0");
    expect((await fetch(`${urlOf(server)}/metrics?a=b`)).status).toBe(200);
    expect(headers).toEqual(["Bearer a", undefined]);
  });

  it.each<[Access, number, string]>([
    ["unauthenticated", 401, "unauthorized: send a valid bearer token"],
    ["forbidden", 403, "forbidden: the user of the token may not get the non-resource URL /metrics"],
    ["unknown", 503, "the API server cannot review the token: try again later"],
  ])("responds to /metrics without metrics if the access is %s", async (access, status, body) => {
    const server = await start({ ready: true }, () => Promise.resolve(access));
    const response = await fetch(`${urlOf(server)}/metrics`);
    expect(response.status).toBe(status);
    expect(response.headers.get("www-authenticate")).toBe(status === 401 ? "Bearer" : null);
    expect(await response.text()).toBe(`${body}\n`);
  });

  it("responds to /metrics with 500 if the access control fails", async () => {
    const server = await start({ ready: true }, () => Promise.reject(new Error("broken")));
    const response = await fetch(`${urlOf(server)}/metrics`);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("things_total");
  });

  it.each(["/healthz", "/readyz"])("responds to %s without access control", async (path) => {
    const server = await start({ ready: true }, () => Promise.resolve("unauthenticated"));
    expect((await fetch(`${urlOf(server)}${path}`)).status).toBe(200);
  });

  it("closes connections beyond its maximum and keeps the others", async () => {
    const server = await start();
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    const open = async () => {
      const socket = connect(portOf(server), HOST).on("error", () => undefined);
      sockets.push(socket);
      await once(socket, "connect");
      return socket;
    };
    const accepted = once(server, "connection");
    const first = await open();
    await accepted;
    while (sockets.length < server.maxConnections) await open();
    const extra = await open();
    await once(extra, "close");
    first.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const [response] = await once(first, "data");
    expect(String(response)).toContain("200 OK");
  });

  it("has timeouts for headers, requests, and idle connections, and a connection limit", async () => {
    const { headersTimeout, requestTimeout, keepAliveTimeout, timeout, maxConnections } = await start();
    expect({ headersTimeout, requestTimeout, keepAliveTimeout, timeout, maxConnections }).toEqual({
      headersTimeout: 10_000,
      requestTimeout: 10_000,
      keepAliveTimeout: 5000,
      timeout: 30_000,
      maxConnections: 100,
    });
  });
});
