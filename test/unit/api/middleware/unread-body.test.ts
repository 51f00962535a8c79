import type { Server } from "node:http";
import type { Socket } from "node:net";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import type { RequestHandler } from "express";
import { describe, expect, it, vi } from "vitest";
import * as z from "zod";
import { authenticate } from "../../../../src/api/middleware/authenticate.ts";
import { readJsonBody } from "../../../../src/api/middleware/json-body.ts";
import { notFound } from "../../../../src/api/middleware/not-found.ts";
import { RateLimits } from "../../../../src/api/middleware/rate-limit/limits.ts";
import { sendResult } from "../../../../src/api/middleware/respond.ts";
import { parseRaw } from "../../../api/client.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { DEFAULT_LIMITS } from "../../../support/servers/express-app.ts";
import {
  open,
  openTls,
  PATIENT,
  type ServerOptions,
  startServer,
} from "../../../support/servers/http-server.ts";

const BODY_BYTES = 8 * 1024 * 1024;
/** 64 KiB of the body, plus what libuv reads from a busy connection in one event loop iteration: 32 × 64 KiB. */
const MAX_READ_BYTES = 34 * 65_536;

/** The paths `/401`, `/404`, `/413` and `/200` respond with that status. */
const handlers: RequestHandler[] = [
  (request, response, next) => {
    if (request.path !== "/401") return next();
    const cache = { key: () => undefined, requireFreshRecords: () => undefined };
    const limits = new RateLimits(DEFAULT_LIMITS);
    return authenticate({ cache, clock: new FakeClock(), limits })(request, response, next);
  },
  async (request, response, next) => {
    if (request.path === "/404") next();
    else sendResult(response, await readJsonBody(request, response, z.object({})));
  },
  notFound,
];

function acceptedSocket(server: Server, event: "connection" | "secureConnection"): Promise<Socket> {
  return new Promise((resolve) => server.once(event, resolve));
}

async function start(options: ServerOptions = {}) {
  const { server, port } = await startServer(handlers, options);
  const accepted = acceptedSocket(server, options.tls ? "secureConnection" : "connection");
  const client = await (options.tls ? openTls(port) : open(port));
  return { server, client, accepted: await accepted };
}

function headOf(status: number, framing: string): string {
  return `PATCH /${status} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`;
}

/** Chunks of this many bytes each, without a last chunk. */
function chunks(bytes: number, chunkBytes: number): string {
  const chunk = `${chunkBytes.toString(16)}\r\n${" ".repeat(chunkBytes)}\r\n`;
  return chunk.repeat(Math.ceil(bytes / chunk.length));
}

const LENGTH = `Content-Length: ${BODY_BYTES}`;
const CHUNKED = "Transfer-Encoding: chunked";

describe("the body of a rejected request", () => {
  it("does not delay the response to HEAD", async () => {
    const { client } = await start();
    client.socket.write(`HEAD /404 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n`);
    await client.until("404 Not Found");
    expect(client.socket.closed).toBe(false);
  });

  it.each([
    [401, "a length", LENGTH, () => " ".repeat(BODY_BYTES)],
    [404, "a length", LENGTH, () => " ".repeat(BODY_BYTES)],
    [413, "a length", LENGTH, () => " ".repeat(BODY_BYTES)],
    [401, "large chunks", CHUNKED, () => chunks(BODY_BYTES, 60_000)],
    [404, "large chunks", CHUNKED, () => chunks(BODY_BYTES, 60_000)],
    [413, "large chunks", CHUNKED, () => chunks(BODY_BYTES, 60_000)],
    [401, "chunks of one byte", CHUNKED, () => chunks(BODY_BYTES, 1)],
    [404, "chunks of one byte", CHUNKED, () => chunks(BODY_BYTES, 1)],
    [413, "chunks of one byte", CHUNKED, () => chunks(BODY_BYTES, 1)],
  ])(
    "is read only partially if the response is %i: 8 MiB with %s",
    async (status, _what, framing, bodyOf) => {
      const { client, accepted } = await start();
      client.socket.write(headOf(status, framing));
      client.socket.write(bodyOf());
      await client.closed;
      expect(parseRaw(client.received())).toMatchObject({ status, headers: { connection: "close" } });
      expect(accepted.bytesRead).toBeLessThan(MAX_READ_BYTES);
    },
  );

  it.each([401, 404, 413])(
    "is read only partially over TLS if the response is %i, and the connection ends once",
    async (status) => {
      const { cert, key } = certificatePair("localhost");
      const tls = { cert: Buffer.from(cert), key: Buffer.from(key) };
      const { client, accepted } = await start({ tls });
      const destroySoon = vi.spyOn(accepted, "destroySoon");
      client.socket.write(headOf(status, CHUNKED));
      client.socket.write(chunks(BODY_BYTES, 1));
      await client.closed;
      expect(parseRaw(client.received())).toMatchObject({ status, headers: { connection: "close" } });
      expect(accepted.bytesRead).toBeLessThan(MAX_READ_BYTES);
      // Once by Node, after the response, and once for the body. Node warns about more than ten.
      expect(destroySoon.mock.calls.length).toBeLessThanOrEqual(2);
    },
  );

  it.each([401, 404, 413])("does not delay a %i response until it arrives", async (status) => {
    const { client } = await start();
    client.socket.write(headOf(status, LENGTH));
    await client.until('"status"');
    expect(parseRaw(client.received()).status).toBe(status);
  });

  it("can still be sent partially after the response without a connection reset", async () => {
    const { client, accepted } = await start();
    client.socket.write(headOf(401, LENGTH));
    await client.until('"status"');
    for (let times = 0; times < 60; times += 1) {
      await new Promise((resolve) => client.socket.write(" ".repeat(1000), resolve));
    }
    await expect.poll(() => accepted.bytesRead).toBeGreaterThan(60_000);
    expect(client.socket.destroyed).toBe(false);
    client.socket.write(" ".repeat(10_000));
    await client.closed;
  });

  it("is no longer parsed after the response if it is chunked, so that many chunks cost nothing", async () => {
    const { client, server, accepted } = await start();
    const errors: unknown[] = [];
    server.on("clientError", (error) => errors.push(error));
    client.socket.write(headOf(401, CHUNKED));
    await client.until('"status"');
    client.socket.write("this is no chunk".repeat(1000));
    await expect.poll(() => accepted.bytesRead).toBeGreaterThan(16_000);
    expect(errors).toEqual([]);
    expect(client.socket.destroyed).toBe(false);
  });
});

describe("a keep-alive connection", () => {
  const SMALL = `${headOf(404, "Content-Length: 5")}12345`;

  it("stays open after a 404 for a request with a small body, regardless of where the body is split", async () => {
    const { client } = await start();
    for (const cut of [SMALL.length, SMALL.length - 3, SMALL.length - 5]) {
      const before = client.received().length;
      client.socket.write(SMALL.slice(0, cut));
      await expect.poll(() => client.received().slice(before)).toContain('"status":404');
      client.socket.write(SMALL.slice(cut));
    }
    expect(client.received()).not.toContain("Connection: close");
    client.socket.write(`${headOf(200, "Content-Length: 2")}{}`);
    await client.until("HTTP/1.1 200");
  });

  it("is closed if an announced small body does not arrive", async () => {
    const { client } = await start({ timeouts: { ...PATIENT, keepAliveMs: 60_000, requestMs: 60_000 } });
    client.socket.write(headOf(404, "Content-Length: 5"));
    await client.until('"status":404');
    await client.closed;
  });

  it("is closed after a 401, even for a request with a small body", async () => {
    const { client } = await start();
    client.socket.write(`${headOf(401, "Content-Length: 5")}12345`);
    await client.closed;
    expect(parseRaw(client.received())).toMatchObject({ status: 401, headers: { connection: "close" } });
  });
});
