import { createServer, type IncomingMessage, type Server, type ServerOptions } from "node:http";
import type { Registry } from "prom-client";
import { type ConnectionLimits, Connections } from "../http/connections.ts";
import { dropLog } from "./drop-log.ts";
import type { Logger } from "./log.ts";
import type { Access, AccessControl } from "./metrics-access.ts";

/** The response of `/readyz`. */
export interface Readiness {
  readonly ready: boolean;
  /** The reason if the process is not ready. */
  readonly problem?: string;
}

export interface OpsServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: Registry;
  readonly readiness: () => Readiness;
  /** Decides who may read the metrics; without it, everyone may. */
  readonly access?: AccessControl | undefined;
  /** Milliseconds that never decrease. */
  readonly monotonic: () => number;
  readonly log: Logger;
}

/**
 * The kubelet and Prometheus need one connection each for a moment, but by default every pod of the cluster can
 * connect. At a limit, a new connection replaces the least recently used one, so connections that are held open cannot
 * block probes.
 */
const CONNECTION_LIMITS: ConnectionLimits = { total: 200, perSource: 40 };

/** Time limit for receiving a request, which has no body and a few headers. */
const REQUEST_MS = 10_000;

/** A connection without traffic is closed after this time, even if its client has not read the response. */
const INACTIVE_MS = 30_000;

/**
 * Scrapes within this time share one text, so that a client that scrapes in a loop costs little. It is shorter than the
 * interval of any scraper, so the values that a scraper gets are newer each time.
 */
const SHARED_MS = 500;

/**
 * Starts the operations port: `/healthz`, `/readyz`, `/metrics`. It must not be public. Resolves when the server
 * listens; the caller closes it at the end of the process.
 */
export function startOpsServer(options: OpsServerOptions): Promise<Server> {
  const limits: ServerOptions = {
    headersTimeout: REQUEST_MS,
    requestTimeout: REQUEST_MS,
    connectionsCheckingInterval: 1000,
  };
  const server = createServer(limits);
  server.timeout = INACTIVE_MS;
  const connections = new Connections({
    server,
    isTrustedProxy: () => false,
    isAuthenticated: () => false,
    onDrop: dropLog({ ...options, listener: "operations" }),
    limits: CONNECTION_LIMITS,
  });
  const render = sharedText(options);
  server.on("request", (request, response) => {
    // The response to the first request closes the connection, so requests that are pipelined behind it get none.
    if (connections.latest(request.socket)) return;
    connections.begin({ request, response });
    const send = ({ status, headers, body }: OpsResponse) =>
      response.writeHead(status, { ...headers, connection: "close" }).end(body);
    respond({ ...options, render }, request).then(send, (error: unknown) => send(text(500, String(error))));
  });
  return listen(server, options.host, options.port, options.log);
}

interface OpsResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Responder extends OpsServerOptions {
  readonly render: () => Promise<string>;
}

async function respond(options: Responder, { url, headers, socket }: IncomingMessage): Promise<OpsResponse> {
  switch (url?.split("?", 1)[0]) {
    case "/healthz":
      return text(200, "ok");
    case "/readyz": {
      const { ready, problem } = options.readiness();
      return ready ? text(200, "ok") : text(503, problem ?? "not ready");
    }
    case "/metrics":
      return respondWithMetrics(options, headers.authorization, socket.remoteAddress);
    default:
      return text(404, "not found: this port serves /healthz, /readyz and /metrics");
  }
}

async function respondWithMetrics(
  { metrics, access, render }: Responder,
  authorization: string | undefined,
  address: string | undefined,
): Promise<OpsResponse> {
  const decision: Access = access ? await access.check(authorization, address) : "allowed";
  switch (decision) {
    case "allowed":
      return {
        status: 200,
        headers: { "content-type": metrics.contentType },
        body: await render(),
      };
    case "unauthenticated":
      return text(401, "unauthorized: send a valid bearer token", { "www-authenticate": "Bearer" });
    case "forbidden":
      return text(403, "forbidden: the user of the token may not get the non-resource URL /metrics");
    case "unknown":
      return text(503, "the API server cannot review the token: try again later");
  }
}

function sharedText({ metrics, monotonic }: OpsServerOptions): () => Promise<string> {
  let shared: Promise<string> | undefined;
  let renderedAt = 0;
  return () => {
    const now = monotonic();
    if (shared === undefined || now - renderedAt >= SHARED_MS) {
      shared = metrics.metrics();
      renderedAt = now;
    }
    return shared;
  };
}

function text(status: number, body: string, headers: OpsResponse["headers"] = {}): OpsResponse {
  return { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers }, body: `${body}\n` };
}

/**
 * Resolves when the server listens. After that, errors of the server, such as a connection that cannot be accepted
 * for lack of file descriptors, are logged and do not end the process.
 *
 * @throws Error with a sentence for the user if the server cannot listen
 */
export function listen<S extends Server>(server: S, host: string, port: number, log: Logger): Promise<S> {
  return new Promise((resolve, reject) => {
    const onStartError = (cause: NodeJS.ErrnoException) => {
      const where = `${host} port ${port}`;
      const why =
        cause.code === "EADDRINUSE"
          ? `${where} is in use by another program: stop it or choose another port`
          : `cannot listen on ${where}: ${cause.message}`;
      reject(new Error(why, { cause }));
    };
    server.once("error", onStartError);
    server.listen(port, host, () => {
      server.off("error", onStartError);
      server.on("error", (err) => log.error({ err, host, port }, "server error"));
      resolve(server);
    });
  });
}

/** The URL of a server; empty if it does not listen. For port 0, it has the port that the system chose. */
export function urlOf(server: Server, scheme: "http" | "https" = "http"): string {
  const address = server.address();
  if (typeof address !== "object" || address === null) return "";
  const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `${scheme}://${host}:${address.port}`;
}
