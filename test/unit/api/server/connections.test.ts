import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import type { RequestHandler } from "express";
import createError from "http-errors";
import { describe, expect, it, onTestFinished } from "vitest";
import { type KeyView, toKeyView } from "../../../../src/api/cluster/views.ts";
import { sendResult } from "../../../../src/api/middleware/respond.ts";
import type { ApiKey } from "../../../../src/records/api-key.ts";
import { certificatePair } from "../../../gen/certificate.ts";
import { type OpenSocket, open, startServer } from "../../../support/http-server.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const LIMITS = { total: 3, perSource: 100 };
const TRUSTED = { trustedProxies: ["127.0.0.1"] };

const respond: RequestHandler = (_request, response) => sendResult(response);

const refuse: RequestHandler = (_request, _response, next) => next(createError(401, "Who are you?"));

/** Treats requests with an Authorization header as authenticated with a key. */
function authenticateAs(view: KeyView): RequestHandler {
  return ({ headers, context }, _response, next) => {
    const apiKey: ApiKey = {
      id: "key",
      organizationId: "organization",
      name: "key",
      keySuffix: "key",
      state: "enabled",
      roles: [],
      createdAt: new Date(0),
      expireAt: undefined,
      ipAccessList: [],
      secretHashes: [],
    };
    if (headers.authorization !== undefined) context.key = { apiKey, view };
    next();
  };
}

/** A connection that waits for its next request. */
async function idle(port: number): Promise<OpenSocket> {
  const connection = await open(port);
  connection.socket.write(GET);
  await connection.until("200 OK");
  return connection;
}

describe("the limit of connections", () => {
  it("closes the connection that was unused for longest to make room for a new one", async () => {
    const { port, drops } = await startServer([respond], { connectionLimits: LIMITS, ...TRUSTED });
    const [first, second, third] = [await idle(port), await idle(port), await idle(port)];
    first.socket.write(GET);
    await expect.poll(() => first.received().match(/200 OK/g)?.length).toBe(2);
    const fourth = await idle(port);
    await second.closed;
    expect(drops).toEqual(["idle_evicted"]);
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
    expect(drops).toEqual(["idle_evicted"]);
  });

  it("refuses a new connection while a response is owed on every other", async () => {
    let requests = 0;
    const count: RequestHandler = () => {
      requests += 1;
    };
    const { port, drops, connections } = await startServer([count], { connectionLimits: LIMITS, ...TRUSTED });
    for (const { socket } of [await open(port), await open(port), await open(port)]) socket.write(GET);
    await expect.poll(() => requests).toBe(3);
    const refused = await open(port);
    await refused.closed;
    expect(drops).toEqual(["connection_limit"]);
    expect(connections.size).toBe(3);
  });

  it("closes a connection whose client does not read its response to make room for a new one", async () => {
    const body = Buffer.alloc(32 * 1024 * 1024);
    const sendMuch: RequestHandler = (_request, response) => void response.end(body);
    const { port, drops } = await startServer([sendMuch], { connectionLimits: LIMITS, ...TRUSTED });
    const clients = [await open(port), await open(port), await open(port)];
    for (const { socket } of clients) {
      socket.write(GET);
      await once(socket, "data");
      socket.pause();
    }
    const { socket, until } = await open(port);
    socket.write(GET);
    await until("200 OK");
    expect(drops).toEqual(["idle_evicted"]);
  });

  it("closes a connection on which a refused body is still arriving to make room for a new one", async () => {
    const { port, drops } = await startServer([refuse], { connectionLimits: LIMITS, ...TRUSTED });
    const refused = [await open(port), await open(port), await open(port)];
    for (const { socket, until } of refused) {
      socket.write("PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
      await until("401");
    }
    const { socket, until } = await open(port);
    socket.write(GET);
    await until("401");
    expect(drops).toEqual(["idle_evicted"]);
  });

  it("keeps a connection with an authenticated request, as long as there are others", async () => {
    const key = toKeyView({ metadata: { name: "key", uid: "uid", resourceVersion: "1" } });
    const { port, drops } = await startServer([authenticateAs(key), respond], {
      connectionLimits: LIMITS,
      ...TRUSTED,
    });
    const known = await open(port);
    known.socket.write(GET.replace("\r\n\r\n", "\r\nAuthorization: known\r\n\r\n"));
    await known.until("200 OK");
    for (let times = 0; times < 10; times += 1) await idle(port);
    expect(known.socket.destroyed).toBe(false);
    expect(drops).toEqual(Array(8).fill("idle_evicted"));
  });

  it("closes the authenticated connection that was unused for longest when there is no other", async () => {
    const key = toKeyView({ metadata: { name: "key", uid: "uid", resourceVersion: "1" } });
    const { port, drops } = await startServer([authenticateAs(key), respond], {
      connectionLimits: LIMITS,
      ...TRUSTED,
    });
    const request = GET.replace("\r\n\r\n", "\r\nAuthorization: known\r\n\r\n");
    const clients: OpenSocket[] = [];
    for (let times = 0; times < 4; times += 1) {
      const client = await open(port);
      client.socket.write(request);
      await client.until("200 OK");
      clients.push(client);
    }
    await clients[0]?.closed;
    expect(drops).toEqual(["idle_evicted"]);
    expect(clients.map(({ socket }) => socket.destroyed)).toEqual([true, false, false, false]);
  });

  it("holds for each source address, so that one source cannot occupy all", async () => {
    const limits = { total: 100, perSource: 2 };
    const { port, drops } = await startServer([respond], { connectionLimits: limits });
    const first = await idle(port);
    await idle(port);
    await idle(port);
    await first.closed;
    expect(drops).toEqual(["idle_evicted"]);
  });

  it("holds for connections under TLS, also before their handshake", async () => {
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

  it("forgets connections that their clients close", async () => {
    const { port, connections } = await startServer([respond], { connectionLimits: LIMITS, ...TRUSTED });
    const clients = [await idle(port), await idle(port)];
    for (const { socket } of clients) socket.destroy();
    await expect.poll(() => connections.size).toBe(0);
  });
});
