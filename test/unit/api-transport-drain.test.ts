import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { Drain } from "../../src/api/drain.ts";
import { isServing, openExchange } from "../../src/api/exchange.ts";
import { certificatePair } from "../gen/certificate.ts";
import { VirtualClock } from "../gen/clock.ts";

const HEADERS_MS = 10_000;
const MOST_MS = 25_000;
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const PATCH = "PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

/** Answers once the body is there. */
const listener: RequestListener = (request, response) => {
  openExchange(request, response, 0);
  request.resume().once("end", () => response.writeHead(200, { Connection: "close" }).end("done"));
};

async function start(server: Server = createServer(listener)) {
  const drain = new Drain(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const clock = new VirtualClock();
  let ended = false;
  onTestFinished(() => {
    server.closeAllConnections();
  });
  return {
    server,
    port,
    clock,
    hasEnded: () => ended,
    async drain() {
      await drain.run({ clock, headersMs: HEADERS_MS, mostMs: MOST_MS, isServing });
      ended = true;
    },
  };
}

async function open(server: Server, port: number, text = ""): Promise<Socket> {
  const accepted = once(server, "connection");
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => {
    socket.destroy();
  });
  socket.on("error", () => undefined);
  await Promise.all([once(socket, "connect"), accepted]);
  if (text !== "") socket.write(text);
  return socket;
}

/** All bytes until the server closes the connection. */
async function rest(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString();
}

describe("the end of a server", () => {
  test("closes at once a connection that waits for its next request", async () => {
    const { server, port, drain } = await start();
    const socket = await open(server, port, GET);
    await once(socket, "data");
    const ended = drain();
    expect(await rest(socket)).toBe("");
    await ended;
  });

  test("closes at once a connection that has never had a request", async () => {
    const { server, port, drain } = await start();
    const socket = await open(server, port);
    const ended = drain();
    expect(await rest(socket)).toBe("");
    await ended;
  });

  test("does so under TLS too", async () => {
    const { cert, key } = certificatePair("localhost");
    const { server, port, drain } = await start(createTlsServer({ cert, key }, listener));
    const accepted = once(server, "secureConnection");
    const socket = connectTls({ port, host: "127.0.0.1", ca: cert });
    await Promise.all([once(socket, "secureConnect"), accepted]);
    const ended = drain();
    expect(await rest(socket)).toBe("");
    await ended;
  });

  test("lets a request end whose body is still on its way", async () => {
    const { server, port, clock, drain, hasEnded } = await start();
    const socket = await open(server, port, PATCH);
    await once(socket, "data");
    const ended = drain();
    await clock.advance(MOST_MS - 1);
    expect(hasEnded()).toBe(false);
    socket.write("12345");
    expect(await rest(socket)).toContain("done");
    await ended;
  });

  test("does not wait for it longer than it may", async () => {
    const { server, port, clock, drain } = await start();
    const socket = await open(server, port, PATCH);
    await once(socket, "data");
    const received = rest(socket);
    const ended = drain();
    await clock.advance(MOST_MS);
    expect(await received).toBe("");
    await ended;
  });

  test("waits for headers that are on their way as long as ever", async () => {
    const { server, port, clock, drain, hasEnded } = await start();
    const arrived = once(server, "connection").then(([socket]) => socket);
    const socket = await open(server, port, "GET / HT");
    const theirs: Socket = await arrived;
    while (theirs.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
    const received = rest(socket);
    const ended = drain();
    await clock.advance(HEADERS_MS - 1);
    expect(hasEnded()).toBe(false);
    await clock.advance(1);
    expect(await received).toBe("");
    await ended;
  });
});
