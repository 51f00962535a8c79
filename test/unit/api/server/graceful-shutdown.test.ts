import { once } from "node:events";
import type { Server } from "node:http";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import type { RequestHandler } from "express";
import { describe, expect, onTestFinished, test } from "vitest";
import { shutDownGracefully } from "../../../../src/api/server/graceful-shutdown.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { type ServerOptions, startServer } from "../../../support/servers/http-server.ts";

const HEADERS_MS = 10_000;
const MAX_MS = 25_000;
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const PATCH = "PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";

/** Responds when the body, if there is one, has arrived. */
const respondAfterBody: RequestHandler = (request, response) => {
  if (request.headers.expect !== undefined) response.writeContinue();
  const respond = () => response.writeHead(200, { Connection: "close" }).end("done");
  if (request.readableEnded) respond();
  else request.resume().once("end", respond);
};

async function start(options: ServerOptions = {}) {
  const { server, port, connections } = await startServer([respondAfterBody], options);
  const clock = new FakeClock();
  let ended = false;
  return {
    server,
    port,
    clock,
    hasEnded: () => ended,
    async shutDown() {
      await shutDownGracefully({ server, connections, clock, headersMs: HEADERS_MS, maxMs: MAX_MS });
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

/** Reads all bytes until the server closes the connection. */
async function rest(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await once(socket, "close");
  return Buffer.concat(chunks).toString();
}

describe("a graceful shutdown", () => {
  test("closes a connection immediately if it waits for its next request", async () => {
    const { server, port, shutDown } = await start();
    const socket = await open(server, port, GET.replace("\r\n\r\n", "\r\nConnection: keep-alive\r\n\r\n"));
    await once(socket, "data");
    const ended = shutDown();
    expect(await rest(socket)).toBe("");
    await ended;
  });

  test("closes a connection immediately if it has never sent a request", async () => {
    const { server, port, shutDown } = await start();
    const socket = await open(server, port);
    const ended = shutDown();
    expect(await rest(socket)).toBe("");
    await ended;
  });

  test("closes an unused connection under TLS as well", async () => {
    const { cert, key } = certificatePair("localhost");
    const { server, port, shutDown } = await start({
      tls: { cert: Buffer.from(cert), key: Buffer.from(key) },
    });
    const accepted = once(server, "secureConnection");
    const socket = connectTls({ port, host: "127.0.0.1", ca: cert });
    await Promise.all([once(socket, "secureConnect"), accepted]);
    const ended = shutDown();
    expect(await rest(socket)).toBe("");
    await ended;
  });

  test("completes a request whose body is still arriving", async () => {
    const { server, port, clock, shutDown, hasEnded } = await start();
    const socket = await open(server, port, PATCH);
    await once(socket, "data");
    const ended = shutDown();
    await clock.advance(MAX_MS - 1);
    expect(hasEnded()).toBe(false);
    socket.write("12345");
    expect(await rest(socket)).toContain("done");
    await ended;
  });

  test("closes the connection of a request that exceeds the time limit", async () => {
    const { server, port, clock, shutDown } = await start();
    const socket = await open(server, port, PATCH);
    await once(socket, "data");
    const received = rest(socket);
    const ended = shutDown();
    await clock.advance(MAX_MS);
    expect(await received).toBe("");
    await ended;
  });

  test("applies the usual timeout to headers that are still arriving", async () => {
    const { server, port, clock, shutDown, hasEnded } = await start();
    const arrived = once(server, "connection").then(([socket]) => socket);
    const socket = await open(server, port, "GET / HT");
    const theirs: Socket = await arrived;
    while (theirs.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
    const received = rest(socket);
    const ended = shutDown();
    await clock.advance(HEADERS_MS - 1);
    expect(hasEnded()).toBe(false);
    await clock.advance(1);
    expect(await received).toBe("");
    await ended;
  });
});
