import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { RequestHandler } from "express";
import { Registry } from "prom-client";
import { onTestFinished } from "vitest";
import { ApiMetrics } from "../../../src/api/metrics.ts";
import { TrustedProxies } from "../../../src/api/middleware/client-ip.ts";
import { RateLimits } from "../../../src/api/middleware/rate-limit/limits.ts";
import { requestLog } from "../../../src/api/middleware/request-log.ts";
import { createHttpServer, type Timeouts } from "../../../src/api/server/http-server.ts";
import type { ConnectionLimits, DropReason } from "../../../src/http/connections.ts";
import { type Clock, systemClock } from "../../../src/runtime/clock.ts";
import type { TlsFiles } from "../../../src/settings/tls-files.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { appOf, DEFAULT_LIMITS } from "./express-app.ts";

/** For tests of the timeouts. */
export const QUICK: Timeouts = {
  headersMs: 100,
  requestMs: 200,
  keepAliveMs: 1000,
  stalledMs: 30_000,
  checkMs: 20,
};

/** For all other tests, because a busy machine may delay a client for longer than the quick timeouts. */
export const PATIENT: Timeouts = { ...QUICK, headersMs: 10_000, requestMs: 20_000, keepAliveMs: 60_000 };

export interface ServerOptions {
  readonly timeouts?: Timeouts;
  readonly connectionLimits?: ConnectionLimits;
  readonly tls?: TlsFiles;
  readonly clock?: Clock;
  readonly trustedProxies?: readonly string[];
}

/** The API's server with these handlers in place of its routes, until the test ends. */
export async function startServer(handlers: readonly RequestHandler[], options: ServerOptions = {}) {
  const { timeouts = PATIENT, tls, clock = systemClock, trustedProxies = [], connectionLimits } = options;
  const lines: Record<string, unknown>[] = [];
  const drops: DropReason[] = [];
  const log = createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) });
  const limits = new RateLimits(DEFAULT_LIMITS);
  const metrics = new ApiMetrics(new Registry());
  const logged = requestLog({ log, clock, metrics, recordSpan: undefined });
  const proxies = new TrustedProxies(trustedProxies);
  const { server, connections } = createHttpServer({
    app: appOf([logged, ...handlers], { clock, limits, trustedProxies }),
    tls,
    clock,
    log,
    metrics,
    limits,
    timeouts,
    isTrustedProxy: (address) => proxies.has(address),
    onDrop: (reason) => drops.push(reason),
    ...(connectionLimits ? { connectionLimits } : {}),
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  const { port } = address;
  return { server, connections, url: `${tls ? "https" : "http"}://127.0.0.1:${port}`, port, lines, drops };
}

export interface OpenSocket {
  readonly socket: Socket;
  received(): string;
  /** Resolves once this text has arrived. */
  until(text: string): Promise<void>;
  readonly closed: Promise<unknown>;
}

/** A connection on which the test decides what is sent, byte by byte. */
export function open(port: number): Promise<OpenSocket> {
  return opened(connect(port, "127.0.0.1"), "connect");
}

/** A connection over TLS, which accepts any certificate. */
export function openTls(port: number): Promise<OpenSocket> {
  return opened(connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }), "secureConnect");
}

async function opened(socket: Socket, event: "connect" | "secureConnect"): Promise<OpenSocket> {
  onTestFinished(() => {
    socket.destroy();
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  // A reset is one way to close.
  socket.on("error", () => undefined);
  await once(socket, event);
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const received = () => Buffer.concat(chunks).toString();
  return {
    socket,
    received,
    async until(text) {
      while (!received().includes(text)) await once(socket, "data");
    },
    closed,
  };
}
