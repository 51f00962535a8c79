import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { promisify } from "node:util";
import { Counter, Gauge, Registry } from "prom-client";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createLogger } from "../../../src/telemetry/log.ts";
import type { Access, AccessControl } from "../../../src/telemetry/metrics-access.ts";
import {
  listen,
  type OpsServerOptions,
  type Readiness,
  startOpsServer,
  urlOf,
} from "../../../src/telemetry/ops-server.ts";

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
  metrics = new Registry(),
  { log = collectingLog().log, monotonic = () => performance.now() }: Partial<OpsServerOptions> = {},
): Promise<Server> {
  new Counter({ name: "things_total", help: "Things.", registers: [metrics] });
  const options = {
    host: HOST,
    port: 0,
    metrics,
    readiness: () => readiness,
    access: check && { check },
    monotonic,
    log,
  };
  const server = await startOpsServer(options);
  closeAtTheEnd(server);
  return server;
}

function portOf(server: Server): number {
  return Number(new URL(urlOf(server)).port);
}

function requestFor(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
}

/** Opens a connection from a loopback address, until the test ends. */
async function openFrom(server: Server, localAddress: string) {
  const socket = connect({ port: portOf(server), host: HOST, localAddress });
  onTestFinished(() => {
    socket.destroy();
  });
  // A reset is one way to close.
  socket.on("error", () => undefined);
  const closed = once(socket, "close");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await Promise.race([once(socket, "connect"), closed]);
  return { socket, closed, received: () => Buffer.concat(chunks).toString() };
}

function connectionsOf(server: Server): Promise<number> {
  return promisify<number>((callback) => server.getConnections(callback))();
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

  it("has timeouts for headers, requests, and connections without traffic", async () => {
    const { headersTimeout, requestTimeout, timeout } = await start();
    expect({ headersTimeout, requestTimeout, timeout }).toEqual({
      headersTimeout: 10_000,
      requestTimeout: 10_000,
      timeout: 30_000,
    });
  });

  it("closes each connection after one response, and does not serve requests that are pipelined behind it", async () => {
    let reviews = 0;
    const server = await start({ ready: true }, async () => {
      reviews += 1;
      return "allowed";
    });
    const pipelined = await openFrom(server, "127.0.0.1");
    pipelined.socket.write(requestFor("/metrics").repeat(100));
    await pipelined.closed;
    expect(pipelined.received().match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    expect(pipelined.received()).toMatch(/^connection: close\r$/im);
    expect(reviews).toBe(1);
  });
});

describe("scrapes of the operations server", () => {
  function countedRegistry() {
    const metrics = new Registry();
    let renderings = 0;
    new Gauge({
      name: "renderings",
      help: "Renderings.",
      registers: [metrics],
      collect() {
        renderings += 1;
        this.set(renderings);
      },
    });
    return metrics;
  }

  async function scrape(server: Server): Promise<string> {
    const text = await (await fetch(`${urlOf(server)}/metrics`)).text();
    return /^renderings .*$/m.exec(text)?.[0] ?? text;
  }

  it("share one rendering within half a second, also if they are concurrent", async () => {
    let now = 7000;
    const server = await start({ ready: true }, undefined, countedRegistry(), { monotonic: () => now });
    const concurrent = Array.from({ length: 20 }, () => scrape(server));
    expect(new Set(await Promise.all(concurrent))).toEqual(new Set(["renderings 1"]));
    now += 499;
    expect(await scrape(server)).toBe("renderings 1");
  });

  it("of a client that scrapes each second get new values each time, also while another client scrapes in a loop", async () => {
    let now = 7000;
    const server = await start({ ready: true }, undefined, countedRegistry(), { monotonic: () => now });
    const seen: string[] = [];
    for (let second = 0; second < 5; second += 1) {
      for (let step = 0; step < 20; step += 1) {
        now += 50;
        await scrape(server);
      }
      seen.push(await scrape(server));
    }
    expect(new Set(seen).size).toBe(5);
    // Two in each second.
    expect(seen.at(-1)).toBe("renderings 10");
  });

  it("fail only until the next rendering succeeds", async () => {
    let now = 7000;
    const metrics = new Registry();
    let isBroken = true;
    new Gauge({
      name: "things",
      help: "Things.",
      registers: [metrics],
      collect() {
        if (isBroken) throw new Error("broken");
      },
    });
    const server = await start({ ready: true }, undefined, metrics, { monotonic: () => now });
    expect((await fetch(`${urlOf(server)}/metrics`)).status).toBe(500);
    isBroken = false;
    now += 500;
    expect((await fetch(`${urlOf(server)}/metrics`)).status).toBe(200);
  });

  it("are each subject to the access control", async () => {
    const decisions: Access[] = ["allowed", "forbidden"];
    const check = async () => decisions.shift() ?? "unknown";
    const server = await start({ ready: true }, check, countedRegistry(), { monotonic: () => 7000 });
    expect((await fetch(`${urlOf(server)}/metrics`)).status).toBe(200);
    expect(await scrape(server)).toContain("forbidden");
  });

  it("are subject to it with their header and the address of their connection", async () => {
    const check = vi.fn(async () => "forbidden" as const);
    const server = await start({ ready: true }, check);
    const { socket, closed } = await openFrom(server, "127.0.0.7");
    socket.write(requestFor("/metrics").replace("\r\n\r\n", "\r\nAuthorization: Bearer a\r\n\r\n"));
    await closed;
    expect(check.mock.calls).toEqual([["Bearer a", "127.0.0.7"]]);
  });
});

describe("the probes of the operations server", () => {
  const SOURCES = Array.from({ length: 20 }, (_, at) => `127.0.0.${at + 1}`);

  /** Holds connections on which the client sends these bytes and reads nothing. */
  async function hold(server: Server, count: number, sources: number, bytes: string): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      const { socket } = await openFrom(server, SOURCES[at % sources] ?? "");
      socket.pause();
      if (bytes !== "") socket.write(bytes);
    }
  }

  async function probe(server: Server, path: string): Promise<string> {
    const { socket, received, closed } = await openFrom(server, "127.0.0.1");
    socket.write(requestFor(path));
    await closed;
    return received();
  }

  // More than the server accepts, of one source and of all.
  const attacks = [
    { what: "are idle", bytes: "" },
    { what: "are kept alive after a response", bytes: requestFor("/healthz") },
    { what: "send half of their headers", bytes: requestFor("/healthz").slice(0, -8) },
  ].flatMap((attack) => [
    { ...attack, count: 300, sources: 1, from: "one source" },
    { ...attack, count: 300, sources: 20, from: "20 sources" },
  ]);

  it.each([
    ...attacks,
    {
      what: "do not read their responses",
      bytes: requestFor("/metrics"),
      count: 50,
      sources: 1,
      from: "one source",
    },
  ])("get their responses while $count connections from $from $what", async (attack) => {
    const metrics = new Registry();
    // More than the kernel buffers for a connection.
    new Gauge({ name: "things", help: "x".repeat(5 * 1024 * 1024), registers: [metrics] });
    const server = await start({ ready: true }, undefined, metrics);
    await hold(server, attack.count, attack.sources, attack.bytes);
    for (let times = 0; times < 20; times += 1) {
      expect(await probe(server, "/healthz")).toContain("200 OK");
      expect(await probe(server, "/readyz")).toContain("200 OK");
    }
  });

  it("have room, because a source replaces its own connections, and the log says so once in 10 s", async () => {
    const collected = collectingLog();
    const { lines } = collected;
    const server = await start({ ready: true }, undefined, new Registry(), collected);
    await hold(server, 300, 1, "");
    const other = await openFrom(server, "127.0.0.2");
    await expect.poll(() => connectionsOf(server)).toBe(41);
    expect(other.socket.destroyed).toBe(false);
    expect(lines).toEqual([
      expect.objectContaining({
        level: "warn",
        listener: "operations",
        reason: "evicted",
        source: "127.0.0.1",
        dropped: 1,
        msg: "connections dropped at their limit",
      }),
    ]);
  });
});
