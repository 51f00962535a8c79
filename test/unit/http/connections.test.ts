import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { IncomingMessage, type Server, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import type { RequestHandler } from "express";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { toKeyView } from "../../../src/api/cluster/views.ts";
import { apiError } from "../../../src/api/errors.ts";
import type { RequestContext } from "../../../src/api/middleware/request-context.ts";
import { sendResult } from "../../../src/api/middleware/respond.ts";
import { type ConnectionLimits, Connections, type DropReason } from "../../../src/http/connections.ts";
import type { TlsFiles } from "../../../src/settings/tls-files.ts";
import { keyRecord } from "../../support/fixtures/records.ts";
import { type OpenSocket, open, openTls, startServer } from "../../support/servers/http-server.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LIMITS = { total: 3, perSource: 100 };
const PER_SOURCE = { total: 100, perSource: 2 };
const TRUSTED = { trustedProxies: ["127.0.0.1"] };

const respond: RequestHandler = (_request, response) => sendResult(response);

function tlsFiles(): TlsFiles {
  const { cert, key } = certificatePair("localhost");
  return { cert: Buffer.from(cert), key: Buffer.from(key) };
}

function anyKey(): NonNullable<RequestContext["key"]> {
  const { record } = keyRecord({ organizationId: randomUUID() });
  const data = Object.entries(record.stringData).map(([name, text]) => [name, btoa(String(text))]);
  const metadata = { ...record.metadata, uid: "u", resourceVersion: "1" };
  const view = toKeyView({ metadata, data: Object.fromEntries(data) });
  if (!view.parsed.ok) throw new Error(view.parsed.problem);
  return { apiKey: view.parsed.value, view };
}

/** Opens a connection and leaves it idle after one request. */
async function idle(port: number, connect = open): Promise<OpenSocket> {
  const connection = await connect(port);
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

  it("keeps an authenticated connection while at least a quarter of the limit is not authenticated", async () => {
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

  it.each([
    ["all connections", "plain HTTP", { total: 40, perSource: 100 }],
    ["all connections of a source", "plain HTTP", { total: 100, perSource: 40 }],
    ["all connections", "TLS", { total: 40, perSource: 100 }],
  ])(
    "serves each of many connections that arrive at once while %s are authenticated and idle, over %s",
    async (_which, protocol, connectionLimits) => {
      const authenticateAll: RequestHandler = (request, response) => {
        request.context.key = anyKey();
        sendResult(response);
      };
      const isTls = protocol === "TLS";
      const connect = isTls ? openTls : open;
      const options = { connectionLimits, ...(isTls ? { tls: tlsFiles() } : {}) };
      const { port, drops } = await startServer([authenticateAll], options);
      await Promise.all(Array.from({ length: 40 }, () => idle(port, connect)));
      const arrived = await Promise.all(Array.from({ length: 10 }, () => connect(port)));
      await expect.poll(() => drops).toHaveLength(10);
      for (const { socket, until, closed, received } of arrived) {
        socket.write(GET);
        await Promise.race([until("200 OK"), closed]);
        expect(received()).toContain("200 OK");
      }
      expect(drops).toEqual(Array(10).fill("evicted"));
    },
  );

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
    const tls = tlsFiles();
    const { port, connections } = await startServer([respond], { connectionLimits: LIMITS, tls, ...TRUSTED });
    const silent = await open(port);
    await expect.poll(() => connections.size).toBe(1);
    const secure = await Promise.all(
      [1, 2, 3].map(async () => {
        const socket = connectTls({ port, host: "127.0.0.1", ca: tls.cert });
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

/**
 * The use of a connection: none, a request without a key, or one with a key that has its response, or a part of it, or
 * waits for it.
 */
const USES = ["nothing", "no key", "idle", "sending", "waiting"] as const;
type Use = (typeof USES)[number];

/** Connections of no network, which arrive in one turn of the event loop. */
class Arrivals {
  readonly drops: DropReason[] = [];
  readonly connections: Connections;
  readonly #server = new EventEmitter() as Server;
  #port = 0;

  constructor(limits: ConnectionLimits) {
    this.connections = new Connections({
      server: this.#server,
      limits,
      isTrustedProxy: () => false,
      isAuthenticated: ({ headers }) => headers.authorization !== undefined,
      onDrop: (reason) => this.drops.push(reason),
    });
  }

  /** @param source the last byte of the address */
  connect(source: string, use: Use = "nothing"): Socket {
    const socket = new Socket();
    this.#port += 1;
    const address = { remoteAddress: { value: `192.0.2.${source}` }, remotePort: { value: this.#port } };
    Object.defineProperties(socket, address);
    this.#server.emit("connection", socket);
    if (use !== "nothing" && !socket.destroyed) this.request(socket, use);
    return socket;
  }

  request(socket: Socket, use: Exclude<Use, "nothing">): void {
    const request = new IncomingMessage(socket);
    if (use !== "no key") request.headers.authorization = "Basic a2V5";
    const response = new ServerResponse(request);
    this.connections.begin({ request, response });
    if (use === "waiting") return;
    response.assignSocket(socket);
    response.writeHead(200);
    // A socket of no network sends nothing, so the response would never be finished.
    if (use === "idle") Object.defineProperty(response, "writableFinished", { value: true });
  }
}

describe("connections that arrive faster than the server sees dropped ones close", () => {
  /** @param sources the last byte of the address of each connection */
  function receive(sources: readonly string[], limits = { total: 3, perSource: 2 }) {
    const arrivals = new Arrivals(limits);
    const sockets = sources.map((source) => arrivals.connect(source));
    const { connections, drops } = arrivals;
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

describe("at a limit, whatever its connections are used for,", () => {
  /** Any number of connections of each use, in any order. */
  const anyUses = fc
    .tuple(...USES.map((use) => fc.array(fc.constant(use), { maxLength: 12 })))
    .map((counts) => counts.flat())
    .chain((uses) => fc.shuffledSubarray(uses, { minLength: uses.length }));
  /** The connections of one source, as many as the limit for all or for one. */
  const full = fc
    .tuple(
      fc.boolean(),
      anyUses.filter((uses) => uses.length > 0),
    )
    .map(([isPerSource, uses]) => {
      const limit = uses.length;
      const limits = isPerSource ? { total: 1000, perSource: limit } : { total: limit, perSource: 1000 };
      return { uses, limit, limits };
    });

  function fill({ limits, uses }: { readonly limits: ConnectionLimits; readonly uses: readonly Use[] }) {
    const arrivals = new Arrivals(limits);
    const held = uses.map((use) => ({ use, socket: arrivals.connect("1", use) }));
    return {
      arrivals,
      open: (kept: Use) => held.filter(({ use, socket }) => use === kept && !socket.destroyed),
    };
  }

  it("a quarter of the limit can arrive at once, and each of them can send its first request", () => {
    fc.assert(
      fc.property(full, ({ limit, ...rest }) => {
        const { arrivals } = fill(rest);
        const replaceable = rest.uses.filter((use) => use !== "waiting").length;
        const length = Math.min(Math.ceil(limit / 4), replaceable);
        const arrived = Array.from({ length }, () => arrivals.connect("1"));
        expect(arrived.some(({ destroyed }) => destroyed)).toBe(false);
      }),
    );
  });

  it("any number without a key replaces no authenticated connection that waits, and idle ones only beyond three quarters", () => {
    const flood = fc.array(fc.constantFrom<Use>("nothing", "no key"), { maxLength: 100 });
    fc.assert(
      fc.property(full, flood, ({ limit, ...rest }, uses) => {
        const { arrivals, open } = fill(rest);
        const replaceable = () => open("idle").length + open("sending").length;
        const [waiting, before] = [open("waiting").length, replaceable()];
        for (const use of uses) arrivals.connect("1", use);
        expect(open("waiting")).toHaveLength(waiting);
        const share = Math.floor((limit * 3) / 4) - waiting;
        expect(replaceable()).toBeGreaterThanOrEqual(Math.min(before, share));
      }),
    );
  });

  it("no response to a client with a key is cut off while another one has its response", () => {
    fc.assert(
      fc.property(full, (rest) => {
        const { arrivals, open } = fill(rest);
        fc.pre(open("idle").length > 0);
        const sending = open("sending").length;
        arrivals.connect("1");
        expect(open("sending")).toHaveLength(sending);
      }),
    );
  });

  it("a client with a key and two addresses, which holds all connections, cannot keep another one out", () => {
    const arrivals = new Arrivals({ total: 40, perSource: 20 });
    for (let times = 0; times < 20; times += 1) {
      arrivals.connect("1", "idle");
      arrivals.connect("2", "idle");
    }
    for (let round = 0; round < 20; round += 1) {
      const socket = arrivals.connect("3");
      for (let times = 0; times < 4; times += 1) {
        arrivals.connect("1");
        arrivals.connect("2");
      }
      expect(socket.destroyed).toBe(false);
      arrivals.request(socket, "idle");
    }
  });
});
