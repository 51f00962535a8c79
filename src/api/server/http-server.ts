import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type ConnectionLimits, Connections, type ConnectionsOptions } from "../../http/connections.ts";
import type { TlsFiles } from "../../settings/tls-files.ts";
import { contextOf } from "../middleware/request-context.ts";
import { normalizeTarget } from "../middleware/request-target.ts";
import { HEADERS_TIMEOUT_S, MAX_HEADER_BYTES, MAX_HEADERS, REQUEST_TIMEOUT_S } from "./limits.ts";
import { MalformedRequests, type MalformedRequestsOptions } from "./malformed-requests.ts";
import { limitPipelining } from "./pipelining.ts";

export interface Timeouts {
  /** Until the last header has arrived. */
  readonly headersMs: number;
  /** Until the last byte of the body has arrived. */
  readonly requestMs: number;
  /** Longest wait of a connection for its next request. */
  readonly keepAliveMs: number;
  /** Maximum time without traffic on a connection with a pending or unread response. */
  readonly stalledMs: number;
  /** Interval at which the first two are checked. */
  readonly checkMs: number;
}

/** The timeouts that are not a setting. */
export const TIMEOUTS: Omit<Timeouts, "keepAliveMs"> = {
  headersMs: HEADERS_TIMEOUT_S * 1000,
  requestMs: REQUEST_TIMEOUT_S * 1000,
  // The slowest response takes 120 s: a write that waits for its turn (cluster/write-queue.ts) and then conflicts with
  // other writers in every round (cluster/retry-on-conflict.ts).
  stalledMs: 150_000,
  // Often, so that hundreds of connections do not expire in one turn of the event loop.
  checkMs: 100,
};

/** An idle connection costs some 80 KB with TLS; a few replicas behind an ingress need far fewer than 500. */
const CONNECTION_LIMITS: ConnectionLimits = { total: 500, perSource: 250 };

export interface HttpServerOptions
  extends Omit<MalformedRequestsOptions, "connections">,
    Pick<ConnectionsOptions, "isTrustedProxy" | "onDrop"> {
  readonly app: RequestListener;
  /** Without it, the server uses plain HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly timeouts: Timeouts;
  readonly connectionLimits?: ConnectionLimits;
}

export interface HttpServer {
  readonly server: Server;
  readonly connections: Connections;
}

/** The HTTP server in front of the app. It handles what the app never sees: limits of time, size and connections. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { app, tls, timeouts, connectionLimits: limits = CONNECTION_LIMITS } = options;
  const serverOptions: ServerOptions = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkMs,
    // middleware/http-syntax.ts checks Host: Node's response would have no body.
    requireHostHeader: false,
    // Saves 5 µs per request without a body: Node emits no stream events for it.
    optimizeEmptyRequests: true,
  };
  const server = tls
    ? createTlsServer({ ...serverOptions, ...tls, handshakeTimeout: timeouts.headersMs })
    : createServer(serverOptions);
  server.timeout = timeouts.stalledMs;
  // Node stops the parser beyond this number, but its older versions silently drop headers, perhaps a second
  // Authorization. So it is one more than allowed, and middleware/http-syntax.ts rejects a request that has as many.
  server.maxHeadersCount = MAX_HEADERS + 1;

  const connections = new Connections({
    server,
    isTrustedProxy: options.isTrustedProxy,
    isAuthenticated: (request) => contextOf(request)?.key !== undefined,
    onDrop: options.onDrop,
    limits,
  });
  const malformed = new MalformedRequests({ ...options, connections });
  const serve = limitPipelining((request, response) => {
    // Until the socket is closed after a 408 to headers, the parser may find their end, and a 4xx changes nothing.
    if (request.socket.writableEnded) return;
    // RFC 9112, section 9.6: a request after the one that closes the connection gets no response, so it must not change
    // anything either.
    const previous = connections.latest(request.socket);
    if (previous && contextOf(previous.request)?.closeConnection) return;
    connections.begin({ request, response });
    normalizeTarget(request);
    app(request, response);
  });
  server.on("request", serve);
  // The app decides whether the body is wanted (middleware/json-body.ts); Node would ask for it before authentication.
  server.on("checkContinue", serve);
  server.on("checkExpectation", serve);
  server.on("clientError", (error, socket) => malformed.onClientError(error, socket));
  server.on("connect", (_request, socket) => malformed.onConnect(socket));
  return { server, connections };
}
