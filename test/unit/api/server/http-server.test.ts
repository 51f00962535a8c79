import { once } from "node:events";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate, setTimeout } from "node:timers/promises";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import type { Request, RequestHandler, Response } from "express";
import { describe, expect, it } from "vitest";
import { httpSyntax } from "../../../../src/api/middleware/http-syntax.ts";
import { discardBody } from "../../../../src/api/middleware/json-body.ts";
import { sendResult } from "../../../../src/api/middleware/respond.ts";
import { TIMEOUTS } from "../../../../src/api/server/http-server.ts";
import { exchangeRaw, parseRaw } from "../../../api/client.ts";
import {
  type OpenSocket,
  open,
  openTls,
  PATIENT,
  QUICK,
  startServer,
} from "../../../support/servers/http-server.ts";

const CERTIFICATE = certificatePair("localhost");

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

const sendUrl: RequestHandler = (request, response) => sendResult(response, request.url);
const neverRespond: RequestHandler = () => undefined;

describe("the API's server", () => {
  it("has the timeouts of the contract", () => {
    expect(TIMEOUTS).toMatchObject({ headersMs: 10_000, requestMs: 30_000 });
  });

  it("tells clients how long a connection may be idle", async () => {
    const { port } = await startServer([sendUrl], { timeouts: { ...PATIENT, keepAliveMs: 620_000 } });
    const { socket, received, until } = await open(port);
    socket.write(REQUEST);
    await until('"result":"/"');
    expect(parseRaw(received()).headers).toMatchObject({ "keep-alive": "timeout=620" });
  });

  it.each([
    ["", ""],
    [", also after CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"],
  ])("closes the connection of a client that does not read its response%s", async (_what, next) => {
    const body = Buffer.alloc(32 * 1024 * 1024);
    const { server, port } = await startServer([(_request, response) => void response.end(body)], {
      timeouts: { ...PATIENT, stalledMs: 100 },
    });
    const arrived = once(server, "connection");
    const { socket } = await open(port);
    socket.pause();
    const [theirs]: Socket[] = await arrived;
    socket.write(REQUEST + next);
    await new Promise((resolve) => theirs?.once("close", resolve));
  });

  it("responds to dozens of pipelined requests in order", async () => {
    const { port } = await startServer([sendUrl]);
    const { socket, received, until } = await open(port);
    const paths = Array.from({ length: 50 }, (_, at) => `/${at}`);
    socket.write(paths.map((path) => REQUEST.replace("/", path)).join(""));
    await until('"result":"/49"');
    expect([...received().matchAll(/"result":"(.*?)"/g)].map(([, result]) => result)).toEqual(paths);
  });

  it.each([
    ["requests", REQUEST],
    ["requests with an expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n"],
  ])("closes a connection on which hundreds of %s wait for a response", async (_what, request) => {
    const { port, lines } = await startServer([neverRespond]);
    const { socket, received, closed } = await open(port);
    socket.write(`${REQUEST}${request.repeat(500)}`);
    await closed;
    expect(received()).toBe("");
    expect(lines.length).toBeLessThan(100);
  });

  it.each([
    ["thousands of parts", 1, "1\r\na\r\n".repeat(2000)],
    ["many bytes", 20, `c000\r\n${"a".repeat(0xc000)}\r\n`],
  ])(
    "closes a connection on which bodies of %s wait, because they take memory",
    async (_what, count, parts) => {
      const { port, lines } = await startServer([neverRespond]);
      const { socket, closed } = await open(port);
      const head = "PATCH / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
      socket.write(REQUEST + `${head}${parts}0\r\n\r\n`.repeat(count));
      await closed;
      expect(lines.length).toBeLessThan(2);
    },
  );

  it("closes a connection on which a body of thousands of parts arrives before it is read", async () => {
    const { port } = await startServer([neverRespond]);
    const { socket, received, closed } = await open(port);
    const head = "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write(head + "1\r\na\r\n".repeat(2000));
    await closed;
    expect(received()).toBe("");
  });

  it.each([
    ["dozens of parts if it is read late", 60, 50],
    ["a thousand parts if it is read at once", 1000, 0],
  ])("reads a body of %s, on one connection again and again", async (_what, parts, delayMs) => {
    const read: RequestHandler = async (request, response) => {
      if (delayMs > 0) await setTimeout(delayMs);
      sendResult(response, (await text(request)).length);
    };
    const { port } = await startServer([read]);
    const { socket, received } = await open(port);
    const head = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (let count = 1; count <= 3; count += 1) {
      socket.write(`${head}${"1\r\na\r\n".repeat(parts)}0\r\n\r\n`);
      await expect.poll(() => received().split(`"result":${parts}`)).toHaveLength(count + 1);
    }
  });

  it("reads the bodies of pipelined requests when their turn comes, also if a part arrives only then", async () => {
    const begun = Promise.withResolvers<void>();
    const read: RequestHandler = async (request, response) => {
      if (request.method === "GET") await begun.promise;
      sendResult(response, request.method === "PUT" ? await text(request) : "");
    };
    const { port } = await startServer([read]);
    const { socket, until } = await open(port);
    const head = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    socket.write(`${REQUEST}${head}1\r\na\r\n0\r\n\r\n${head}1\r\nb\r\n`);
    begun.resolve();
    await until('"result":"a"');
    socket.write(`${"1\r\nc\r\n".repeat(200)}0\r\n\r\n`);
    await until(`"result":"b${"c".repeat(200)}"`);
  });

  it("closes a connection with a waiting request while 1,024 others wait, until their connections end", async () => {
    let served = 0;
    const { port, connections } = await startServer([
      (request, response) => {
        served += 1;
        if (request.url === "/free") sendResult(response);
      },
    ]);
    const held: OpenSocket[] = [];
    for (let count = 1; count <= 16; count += 1) {
      const connection = await open(port);
      connection.socket.write(REQUEST.repeat(1 + 64));
      held.push(connection);
      await expect.poll(() => served).toBe(count);
    }
    const refused = await open(port);
    refused.socket.write(REQUEST.repeat(2));
    await refused.closed;
    const { socket, until } = await open(port);
    socket.write(REQUEST.replace("/", "/free"));
    await until("200 OK");
    expect(held.map((each) => each.socket.destroyed)).toEqual(Array(16).fill(false));

    for (const each of held) each.socket.destroy();
    await expect.poll(() => connections.size).toBe(1);
    served = 0;
    const accepted = await open(port);
    accepted.socket.write(REQUEST.repeat(1 + 64));
    await expect.poll(() => served).toBe(1);
    expect(accepted.socket.destroyed).toBe(false);
  });

  it("does not serve a request after a response that closes the connection", async () => {
    const paths: string[] = [];
    const refuseFirst: RequestHandler = (request, response) => {
      paths.push(request.path);
      request.context.closeConnection = request.path === "/first";
      sendResult(response);
    };
    const { port } = await startServer([refuseFirst]);
    const { socket, received, closed } = await open(port);
    socket.write(
      ["/zeroth", "/first", "/second", "/third"].map((path) => REQUEST.replace("/", path)).join(""),
    );
    await closed;
    expect(paths).toEqual(["/zeroth", "/first"]);
    expect(received().match(/HTTP\/1\.1 \d+/g)).toHaveLength(2);
  });

  it("responds with 408 to headers that arrive too slowly", async () => {
    const { url } = await startServer([neverRespond], { timeouts: { ...QUICK, requestMs: 60_000 } });
    const response = parseRaw(await exchangeRaw(url, "GET / HTTP/1.1\r\nHost: a\r\n"));
    expect(response).toMatchObject({ status: 408, body: { status: 408 } });
  });

  it("closes a connection without data after a timeout, without a response or a log line", async () => {
    const { port, lines } = await startServer([neverRespond], { timeouts: { ...QUICK, requestMs: 60_000 } });
    const { received, closed } = await open(port);
    await closed;
    expect(received()).toBe("");
    expect(lines).toEqual([]);
  });

  it("responds with 408 to a body that arrives too slowly, with the ID of the request, and logs it once", async () => {
    let requestId: string | undefined;
    const late = (request: Request, response: Response) => {
      requestId = request.context.requestId;
      request.once("error", () => sendResult(response, "too late"));
    };
    const { url, lines } = await startServer([late], { timeouts: { ...QUICK, headersMs: 150 } });

    const response = parseRaw(
      await exchangeRaw(url, "PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"),
    );

    expect(response).toMatchObject({ status: 408, headers: { "x-request-id": requestId } });
    expect(lines).toMatchObject([{ requestId, status: 408, method: "PATCH" }]);
  });

  it.each([
    ["body", "PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{", "}"],
    ["headers", "PATCH / HTTP/1.1\r\nHost: a\r\n", "Content-Length: 2\r\n\r\n{}"],
  ])(
    "changes nothing if it responds with 408 and then finds the end of the %s, which arrived while it was busy",
    async (_what, beginning, end) => {
      let changes = 0;
      const change: RequestHandler = async (request, response) => {
        await discardBody(request, response);
        changes += 1;
        sendResult(response);
      };
      // Long enough for a busy machine to come from the handshake to the last line before the wait.
      const timeouts = { ...QUICK, headersMs: 1000, requestMs: 1000 };
      const tls = { cert: Buffer.from(CERTIFICATE.cert), key: Buffer.from(CERTIFICATE.key) };
      const { server, port } = await startServer([change], { tls, timeouts });
      const connected = once(server, "secureConnection");
      const { socket, received, closed } = await openTls(port);
      const [theirs]: Socket[] = await connected;
      socket.write(beginning);
      await expect.poll(() => theirs?.bytesRead).toBeGreaterThan(0);
      // From here on, the timers come before the bytes.
      await setImmediate();
      socket.write(end);
      const busyUntil = performance.now() + 1200;
      while (performance.now() < busyUntil);
      await closed;
      expect(parseRaw(received()).status).toBe(408);
      expect(changes).toBe(0);
    },
  );

  it.each([
    ["a long value", 0, (length: number) => `GET / HTTP/1.1\r\na: ${"a".repeat(length)}\r\n`],
    ["a long name", 0, (length: number) => `GET / HTTP/1.1\r\n${"a".repeat(length)}: a\r\n`],
    ["a long target", 0, (length: number) => `GET /a${"a".repeat(length)} HTTP/1.1\r\n`],
    ["120 headers", 120, (length: number) => `GET / HTTP/1.1\r\na: ${"a".repeat(length)}\r\n`],
  ])(
    "responds with 431 to %s if target, names and values have more than 16 KiB, and accepts less",
    async (_what, count, beginning) => {
      const { url } = await startServer([httpSyntax, (_request, response) => sendResult(response)]);
      const others = `Host: a\r\nConnection: close\r\n${"ab: cd\r\n".repeat(count)}\r\n`;
      // The rest has 22 bytes, and four bytes for each of the other headers.
      const send = async (bytes: number) =>
        parseRaw(await exchangeRaw(url, beginning(bytes - 22 - 4 * count) + others));
      expect(await send(16_380)).toMatchObject({ status: 200 });
      expect(await send(16_390)).toMatchObject({ status: 431, headers: { connection: "close" } });
    },
  );

  it.each([
    ["short headers", `${"a: b\r\n".repeat(8000)}`],
    ["headers without a value", `${"a:\r\n".repeat(12_000)}`],
  ])(
    "responds with 431 to thousands of %s, although their names and values have less than 16 KiB",
    async (_what, headers) => {
      const { url } = await startServer([httpSyntax, sendUrl]);
      const response = parseRaw(await exchangeRaw(url, `GET / HTTP/1.1\r\nHost: a\r\n${headers}\r\n`));
      expect(response).toMatchObject({ status: 431, headers: { connection: "close" } });
    },
  );

  it("responds with 400 to HTTP/2.0 in a request line", async () => {
    const { url } = await startServer([httpSyntax, sendUrl]);
    const response = parseRaw(await exchangeRaw(url, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"));
    expect(response).toMatchObject({ status: 400, headers: { connection: "close" } });
  });

  it("closes the connection after an upgrade request, because Node loses the data that follows it", async () => {
    const { port } = await startServer([httpSyntax, sendUrl]);
    const { socket, received, closed } = await open(port);
    const upgrade = "GET /first HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    socket.write(`${upgrade}GET /second HTTP/1.1\r\nHost: a\r\n\r\n`);
    await closed;
    expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
    expect(parseRaw(received())).toMatchObject({
      body: { result: "/first" },
      headers: { connection: "close" },
    });
  });

  it("does not serve requests pipelined after one whose response closes the connection", async () => {
    const served: string[] = [];
    const refuseFirst: RequestHandler = (request, response) => {
      served.push(request.url);
      request.context.closeConnection = request.url === "/first";
      sendResult(response, request.url);
    };
    const { port, lines } = await startServer([refuseFirst]);
    const { socket, received, closed } = await open(port);
    socket.write(["/first", "/second", "/third"].map((path) => REQUEST.replace("/", path)).join(""));
    await closed;
    expect(served).toEqual(["/first"]);
    expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
    expect(lines).toHaveLength(1);
  });

  it("serves pipelined requests one after the other, so that a change comes after those before it", async () => {
    const events: string[] = [];
    const slowAtFirst: RequestHandler = async (request, response) => {
      events.push(`begin ${request.method}`);
      if (request.method === "PUT") await once(request.resume(), "end");
      events.push(`end ${request.method}`);
      sendResult(response, request.method);
    };
    const { port } = await startServer([slowAtFirst]);
    const { socket, until } = await open(port);
    const put = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
    socket.write(`${put}${REQUEST.replace("GET", "DELETE")}`);
    await until('"result":"DELETE"');
    expect(events).toEqual(["begin PUT", "end PUT", "begin DELETE", "end DELETE"]);
  });

  it("does not serve requests pipelined after one that closes the connection only when it responds", async () => {
    const served: string[] = [];
    const begun = Promise.withResolvers<void>();
    const closeLate: RequestHandler = async (request, response) => {
      served.push(request.url);
      await begun.promise;
      request.context.closeConnection = request.url === "/first";
      sendResult(response, request.url);
    };
    const { port } = await startServer([closeLate]);
    const { socket, closed } = await open(port);
    socket.write(["/first", "/second"].map((path) => REQUEST.replace("/", path)).join(""));
    await expect.poll(() => served).toContain("/first");
    begun.resolve();
    await closed;
    expect(served).toEqual(["/first"]);
  });

  it("does not respond to garbage while the response to an earlier request is pending", async () => {
    const { port } = await startServer([neverRespond]);
    const { socket, received, closed } = await open(port);
    socket.write(`${REQUEST}garbage\r\n\r\n`);
    await closed;
    expect(received()).toBe("");
  });

  it("does not respond to a malformed body while the response to an earlier request is pending", async () => {
    const { port } = await startServer([neverRespond]);
    const { socket, received, closed } = await open(port);
    socket.write(`${REQUEST}PATCH / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\ngarbage\r\n`);
    await closed;
    expect(received()).toBe("");
  });

  it("does not respond to garbage in the middle of a response", async () => {
    const half: RequestHandler = (_request, response) => {
      response.writeHead(200, { "Content-Length": 10 });
      response.write("12345");
    };
    const { port } = await startServer([half]);
    const { socket, received, closed } = await open(port);
    socket.write(REQUEST);
    await once(socket, "data");
    socket.write("garbage\r\n\r\n");
    await closed;
    expect(received()).not.toContain("400");
  });

  it("survives a client that sends CONNECT and disconnects before the response", async () => {
    const { server, port } = await startServer([neverRespond]);
    const arrived = once(server, "connection");
    const { socket } = await open(port);
    const [theirs]: Socket[] = await arrived;
    const closed = new Promise((resolve) => theirs?.once("close", resolve));
    socket.write("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
    socket.resetAndDestroy();
    await closed;
  });

  it("responds to garbage that arrives after a response", async () => {
    const { port } = await startServer([sendUrl]);
    const { socket, received, closed } = await open(port);
    socket.write(REQUEST);
    await once(socket, "data");
    socket.write("garbage\r\n\r\n");
    await closed;
    expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  });

  it("logs 499 for a client that disconnects before its response", async () => {
    const { port, lines } = await startServer([neverRespond]);
    const { socket } = await open(port);
    socket.write(REQUEST);
    await expect.poll(() => lines.length + socket.bytesWritten).toBeGreaterThan(0);
    socket.destroy();
    await expect.poll(() => lines).toMatchObject([{ msg: "request", status: 499 }]);
  });
});
