import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import type { Server } from "node:http";
import { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import type { RequestHandler } from "express";
import { describe, expect, it, onTestFinished } from "vitest";
import { toKeyView } from "../../../src/api/cluster/views.ts";
import { apiError } from "../../../src/api/errors.ts";
import type { RequestContext } from "../../../src/api/middleware/request-context.ts";
import { sendResult } from "../../../src/api/middleware/respond.ts";
import { Connections, type DropReason } from "../../../src/http/connections.ts";
import { keyRecord } from "../../support/fixtures/records.ts";
import { type OpenSocket, open, startServer } from "../../support/servers/http-server.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LIMITS = { total: 3, perSource: 100 };
const PER_SOURCE = { total: 100, perSource: 2 };
const TRUSTED = { trustedProxies: ["127.0.0.1"] };

const respond: RequestHandler = (_request, response) => sendResult(response);

function anyKey(): NonNullable<RequestContext["key"]> {
  const { record } = keyRecord({ organizationId: randomUUID() });
  const data = Object.entries(record.stringData).map(([name, text]) => [name, btoa(String(text))]);
  const metadata = { ...record.metadata, uid: "u", resourceVersion: "1" };
  const view = toKeyView({ metadata, data: Object.fromEntries(data) });
  if (!view.parsed.ok) throw new Error(view.parsed.problem);
  return { apiKey: view.parsed.value, view };
}

/** Opens a connection and leaves it idle after one request. */
async function idle(port: number): Promise<OpenSocket> {
  const connection = await open(port);
  connection.socket.write(GET);
  await connection.until("200 OK");
  return connection;
}

describe("the connection limit", () => {
  it("closes the connection that has been idle longest to make room for a new one", async () => {
    const { port, drops } = await startServer([respond], { connectionLimits: LIMITS, ...TRUSTED });
    const [first, second, third] = [await idle(port), await idle(port), await idle(port)];
    first.socket.write(GET);
    await expect.poll(() => first.received().match(/200 OK/g)?.length).toBe(2);
    const fourth = await idle(port);
    await second.closed;
    expect(drops).toEqual(["evicted"]);
    for (const { socket } of [first, third, fourth]) expect(socket.destroyed).toBe(false);
  });

  it("counts a connection as idle while its first request is still arriving", async () => {
    const { port, drops, connections } = await startServer([respond], {
      connectionLimits: LIMITS,
      ...TRUSTED,
    });
    const slow = await open(port);
    slow.socket.write("GET / HTTP/1.1\r\nHost");
    await expect.poll(() => connections.size).toBe(1);
    await Promise.all([idle(port), idle(port)]);
    await idle(port);
    await slow.closed;
    expect(drops).toEqual(["evicted"]);
  });

  it.each([
    ["all others", "connection_limit", { connectionLimits: LIMITS, ...TRUSTED }],
    ["all others of its source", "source_limit", { connectionLimits: { total: 100, perSource: 3 } }],
  ])(
    "rejects a new connection while %s wait for responses to authenticated requests",
    async (_which, reason, options) => {
      let requests = 0;
      const authenticateAndWait: RequestHandler = (request) => {
        request.context.key = anyKey();
        requests += 1;
      };
      const { port, drops, connections } = await startServer([authenticateAndWait], options);
      for (const { socket } of [await open(port), await open(port), await open(port)]) socket.write(GET);
      await expect.poll(() => requests).toBe(3);
      const refused = await open(port);
      await refused.closed;
      expect(drops).toEqual([reason]);
      expect(connections.size).toBe(3);
    },
  );

  it("closes an unauthenticated connection even if its client does not read the response", async () => {
    const big = Buffer.alloc(32 * 1024 * 1024);
    let stuckRequests = 0;
    const authenticateSome: RequestHandler = (request, response) => {
      if (request.url !== "/with-key") {
        stuckRequests += 1;
        response.end(big);
        return;
      }
      request.context.key = anyKey();
      sendResult(response);
    };
    const { port, drops } = await startServer([authenticateSome], {
      connectionLimits: LIMITS,
      ...TRUSTED,
    });
    const stuck = await open(port);
    stuck.socket.pause();
    stuck.socket.write(GET);
    await expect.poll(() => stuckRequests).toBe(1);
    const withKey: OpenSocket[] = [];
    for (let count = 0; count < 3; count += 1) {
      const connection = await open(port);
      withKey.push(connection);
      connection.socket.write(GET.replace("/", "/with-key"));
      await connection.until("200 OK");
    }
    expect(drops).toEqual(["evicted"]);
    for (const { socket } of withKey) expect(socket.destroyed).toBe(false);
  });

  it("closes an authenticated connection whose client does not read the response if there is no other candidate", async () => {
    const big = Buffer.alloc(32 * 1024 * 1024);
    const sendBig: RequestHandler = (request, response) => {
      request.context.key = anyKey();
      response.end(big);
    };
    const { port, drops } = await startServer([sendBig], { connectionLimits: LIMITS, ...TRUSTED });
    for (const { socket } of [await open(port), await open(port), await open(port)]) {
      socket.write(GET);
      await once(socket, "data");
      socket.pause();
    }
    const { socket, until } = await open(port);
    socket.write(GET);
    await until("200 OK");
    expect(drops).toEqual(["evicted"]);
  });

  it("closes an authenticated connection that is receiving a rejected body if there is no other candidate", async () => {
    const refuse: RequestHandler = (request, _response, next) => {
      request.context.key = anyKey();
      next(apiError("KeyTooFast", "1"));
    };
    const { port, drops } = await startServer([refuse], { connectionLimits: LIMITS, ...TRUSTED });
    for (const { socket, until } of [await open(port), await open(port), await open(port)]) {
      socket.write("PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
      await until("429");
    }
    const { socket, until } = await open(port);
    socket.write(GET);
    await until("429");
    expect(drops).toEqual(["evicted"]);
  });

  it("keeps an authenticated connection while an earlier response is pending", async () => {
    let isRequested = false;
    const respondToSecond: RequestHandler = (request, response) => {
      request.context.key = anyKey();
      if (request.path === "/slow") isRequested = true;
      else sendResult(response);
    };
    const limits = { total: 1, perSource: 100 };
    const { port, drops } = await startServer([respondToSecond], { connectionLimits: limits, ...TRUSTED });
    const { socket } = await open(port);
    socket.write(GET.replace("/", "/slow") + GET);
    await expect.poll(() => isRequested).toBe(true);
    const refused = await open(port);
    await refused.closed;
    expect(drops).toEqual(["connection_limit"]);
  });

  it("keeps an authenticated connection while there is an unauthenticated one", async () => {
    const authenticateSome: RequestHandler = (request, response) => {
      if (request.url === "/with-key") request.context.key = anyKey();
      sendResult(response);
    };
    const { port, drops } = await startServer([authenticateSome], { connectionLimits: LIMITS, ...TRUSTED });
    const known = await open(port);
    known.socket.write(GET.replace("/", "/with-key"));
    await known.until("200 OK");
    for (let times = 0; times < 10; times += 1) await idle(port);
    expect(known.socket.destroyed).toBe(false);
    expect(drops).toEqual(Array(8).fill("evicted"));
  });

  it("closes the authenticated connection that has been idle longest if there is no other candidate", async () => {
    const authenticateAll: RequestHandler = (request, response) => {
      request.context.key = anyKey();
      sendResult(response);
    };
    const { port, drops } = await startServer([authenticateAll], { connectionLimits: LIMITS, ...TRUSTED });
    const clients = [await idle(port), await idle(port), await idle(port), await idle(port)];
    await clients[0]?.closed;
    expect(drops).toEqual(["evicted"]);
    expect(clients.map(({ socket }) => socket.destroyed)).toEqual([true, false, false, false]);
  });

  it("also applies per source address, so that one source cannot occupy all connections", async () => {
    const { port, drops } = await startServer([respond], { connectionLimits: PER_SOURCE });
    const first = await idle(port);
    await idle(port);
    await idle(port);
    await first.closed;
    expect(drops).toEqual(["evicted"]);
  });

  it("does not apply per source address to a trusted proxy", async () => {
    const { port, drops } = await startServer([respond], { connectionLimits: PER_SOURCE, ...TRUSTED });
    for (let times = 0; times < 3; times += 1) await idle(port);
    expect(drops).toEqual([]);
  });

  it("applies to TLS connections, even before their handshake", async () => {
    const { cert, key } = certificatePair("localhost");
    const tls = { cert: Buffer.from(cert), key: Buffer.from(key) };
    const { port, connections } = await startServer([respond], { connectionLimits: LIMITS, tls, ...TRUSTED });
    const silent = await open(port);
    await expect.poll(() => connections.size).toBe(1);
    const secure = await Promise.all(
      [1, 2, 3].map(async () => {
        const socket = connectTls({ port, host: "127.0.0.1", ca: cert });
        onTestFinished(() => {
          socket.destroy();
        });
        await once(socket, "secureConnect");
        return socket;
      }),
    );
    await silent.closed;
    expect(connections.size).toBe(3);
    for (const socket of secure) {
      socket.write(GET);
      expect(String(await once(socket, "data"))).toContain("200 OK");
    }
  });

  it("no longer counts connections that their clients close", async () => {
    const { port, connections } = await startServer([respond], { connectionLimits: LIMITS, ...TRUSTED });
    const clients = [await idle(port), await idle(port)];
    for (const { socket } of clients) socket.destroy();
    await expect.poll(() => connections.size).toBe(0);
  });
});

describe("connections that arrive faster than the server sees dropped ones close", () => {
  /** @param sources the last byte of the address of each connection; all arrive in one turn of the event loop */
  function receive(sources: readonly string[], limits = { total: 3, perSource: 2 }) {
    const drops: DropReason[] = [];
    const server = new EventEmitter() as Server;
    const connections = new Connections({
      server,
      limits,
      isTrustedProxy: () => false,
      isAuthenticated: () => false,
      onDrop: (reason) => drops.push(reason),
    });
    const sockets = sources.map((source, at) => {
      const socket = new Socket();
      const address = { remoteAddress: { value: `192.0.2.${source}` }, remotePort: { value: at } };
      Object.defineProperties(socket, address);
      server.emit("connection", socket);
      return socket;
    });
    return { connections, drops, destroyed: sockets.map(({ destroyed }) => destroyed) };
  }

  it("do not count dropped connections of their source", () => {
    const { connections, drops, destroyed } = receive(["1", "1", "2", "2", "3", "1"]);
    expect(drops).toEqual(["evicted", "evicted", "evicted"]);
    expect(destroyed).toEqual([true, true, true, false, false, false]);
    expect(connections.size).toBe(3);
  });

  it("replace one of their own source at its limit, although another source has an older one", () => {
    const { destroyed } = receive(["2", "1", "1", "1"], PER_SOURCE);
    expect(destroyed).toEqual([false, true, false, false]);
  });
});
