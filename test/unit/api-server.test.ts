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

let server: Server | undefined;

afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
});

const QUICK = { headersMs: 100, requestMs: 200, keepAliveMs: 1000, checkMs: 20 };

async function start(
  serve: (exchange: Exchange, answers: Answers) => void,
  { log = createLogger("silent", "api"), timeouts = QUICK }: { log?: Logger; timeouts?: Timeouts } = {},
) {
  const clock = systemClock;
  const answers = new Answers({ log, clock, draining: () => false });
  const listener: RequestListener = (request, response) => serve(openExchange(request, response, 0), answers);
  const started = createApiServer({ listener, answers, clock, tls: undefined, timeouts });
  server = started;
  started.listen(0, "127.0.0.1");
  await once(started, "listening");
  const address = started.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}`, port: address.port };
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
      { log },
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
