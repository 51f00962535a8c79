import { once } from "node:events";
import type { RequestListener, Server } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Answers } from "../../src/api/answers.ts";
import { type Exchange, openExchange } from "../../src/api/exchange.ts";
import { createApiServer, TIMEOUTS, type Timeouts } from "../../src/api/server.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createLogger, type Logger } from "../../src/telemetry/log.ts";
import { exchangeRaw, parseRaw } from "../api/client.ts";

let running: Server | undefined;

afterEach(async () => {
  running?.closeAllConnections();
  running?.close();
});

/** Only for tests of time: a machine that is busy may keep a client waiting for longer than the quick ones. */
const QUICK = { headersMs: 100, requestMs: 200, keepAliveMs: 1000, stalledMs: 30_000, checkMs: 20 };
const PATIENT = { ...QUICK, headersMs: 10_000, requestMs: 20_000 };

async function start(
  serve: (exchange: Exchange, answers: Answers) => void,
  { log = createLogger("silent", "api"), timeouts = PATIENT }: { log?: Logger; timeouts?: Timeouts } = {},
) {
  const clock = systemClock;
  const answers = new Answers({ log, clock, draining: () => false });
  const listener: RequestListener = (request, response) => serve(openExchange(request, response, 0), answers);
  const server = createApiServer({ listener, answers, clock, tls: undefined, timeouts });
  running = server;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return { server, url: `http://127.0.0.1:${address.port}`, port: address.port };
}

async function open(port: number): Promise<{ socket: Socket; received: () => string }> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  return { socket, received: () => Buffer.concat(chunks).toString() };
}

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

describe("the API's server", () => {
  it("has the limits of time of the contract", () => {
    expect(TIMEOUTS).toMatchObject({ headersMs: 10_000, requestMs: 30_000, keepAliveMs: 75_000 });
  });

  it("lets go of a client that does not read its answer", async () => {
    const body = Buffer.alloc(32 * 1024 * 1024);
    const { server, port } = await start(({ response }) => void response.end(body), {
      timeouts: { ...PATIENT, stalledMs: 100 },
    });
    const arrived = once(server, "connection");
    const socket = connect(port, "127.0.0.1");
    const [theirs]: Socket[] = await arrived;
    socket.write(REQUEST);
    await new Promise((resolve) => theirs?.once("close", resolve));
    socket.destroy();
  });

  it("answers dozens of requests that come at once, in their order", async () => {
    const { port } = await start((exchange, answers) => answers.success(exchange, exchange.request.url));
    const { socket, received } = await open(port);
    const paths = Array.from({ length: 50 }, (_, at) => `/${at}`);
    socket.write(paths.map((path) => REQUEST.replace("/", path)).join(""));
    while (!received().includes('"result":"/49"')) await once(socket, "data");
    expect([...received().matchAll(/"result":"(.*?)"/g)].map(([, result]) => result)).toEqual(paths);
  });

  it.each([
    ["requests", REQUEST],
    ["requests with an expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n"],
  ])("closes a connection on which hundreds of %s wait for an answer", async (_what, request) => {
    const lines: unknown[] = [];
    const log = createLogger("info", "api", { write: (line) => lines.push(line) });
    const { port } = await start(() => undefined, { log });
    const { socket, received } = await open(port);
    socket.write(`${REQUEST}${request.repeat(500)}`);
    await once(socket, "close");
    expect(received()).toBe("");
    expect(lines.length).toBeLessThan(100);
  });

  it("answers 408 to headers that come too slowly", async () => {
    const { url } = await start(() => undefined, { timeouts: { ...QUICK, requestMs: 60_000 } });
    const answer = parseRaw(await exchangeRaw(url, "GET / HTTP/1.1\r\nHost: a\r\n"));
    expect(answer).toMatchObject({ status: 408, body: { status: 408 } });
  });

  it("answers 408 to a body that comes too slowly, with the request's own id, and logs it once", async () => {
    const lines: Record<string, unknown>[] = [];
    const log = createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) });
    let requestId: string | undefined;
    const { url } = await start(
      (exchange, answers) => {
        requestId = exchange.requestId;
        exchange.request.once("error", () => answers.success(exchange, "too late"));
      },
      { log, timeouts: { ...QUICK, headersMs: 150 } },
    );

    const answer = parseRaw(
      await exchangeRaw(url, "PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"),
    );

    expect(answer).toMatchObject({ status: 408, headers: { "x-request-id": requestId } });
    expect(lines).toMatchObject([{ requestId, status: 408, method: "PATCH" }]);
  });

  it("answers 431 to more than 16 KiB of headers, and nothing less", async () => {
    const { url } = await start((exchange, answers) => answers.success(exchange, exchange.request.url));
    const headers = (bytes: number) =>
      `GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Long: ${"a".repeat(bytes)}\r\n\r\n`;
    expect(parseRaw(await exchangeRaw(url, headers(16_000))).status).toBe(200);
    expect(parseRaw(await exchangeRaw(url, headers(17_000))).status).toBe(431);
  });

  it("does not answer garbage in the place of an earlier request whose answer is still owed", async () => {
    const { port } = await start(() => undefined);
    const { socket, received } = await open(port);
    socket.write(`${REQUEST}garbage\r\n\r\n`);
    await once(socket, "close");
    expect(received()).toBe("");
  });

  it("does not answer a broken body in the place of an earlier request whose answer is still owed", async () => {
    const { port } = await start(() => undefined);
    const { socket, received } = await open(port);
    socket.write(`${REQUEST}PATCH / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\ngarbage\r\n`);
    await once(socket, "close");
    expect(received()).toBe("");
  });

  it("does not answer garbage into the middle of an answer", async () => {
    const { port } = await start(({ response }) => {
      response.writeHead(200, { "Content-Length": 10 });
      response.write("12345");
    });
    const { socket, received } = await open(port);
    socket.write(REQUEST);
    await once(socket, "data");
    socket.write("garbage\r\n\r\n");
    await once(socket, "close");
    expect(received()).not.toContain("400");
  });

  it("survives a client that is gone before it is told that this is not a proxy", async () => {
    const { server, port } = await start(() => undefined);
    const arrived = once(server, "connection");
    const { socket } = await open(port);
    const [theirs]: Socket[] = await arrived;
    const closed = new Promise((resolve) => theirs?.once("close", resolve));
    socket.write("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
    socket.resetAndDestroy();
    await closed;
  });

  it("answers garbage that comes after an answer", async () => {
    const { port } = await start((exchange, answers) => answers.success(exchange, undefined));
    const { socket, received } = await open(port);
    socket.write(REQUEST);
    await once(socket, "data");
    socket.write("garbage\r\n\r\n");
    await once(socket, "close");
    expect(received().match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 400"]);
  });
});
