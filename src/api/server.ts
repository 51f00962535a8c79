import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Clock } from "../runtime/clock.ts";
import type { Answers } from "./answers.ts";
import { ClientAddresses } from "./client-address.ts";
import { openExchange } from "./exchange.ts";
import { limitPipelining } from "./pipelining.ts";
import { Problem } from "./problem.ts";

export interface Timeouts {
  /** Until the last header has come. */
  readonly headersMs: number;
  /** Until the last byte of the body has come. */
  readonly requestMs: number;
  /** That a connection may wait for its next request. */
  readonly keepAliveMs: number;
  /** That nothing may move on a connection, though an answer is owed on it or is not read. */
  readonly stalledMs: number;
  /** How often the first two are looked at. */
  readonly checkMs: number;
}

export const TIMEOUTS: Timeouts = {
  headersMs: 10_000,
  requestMs: 30_000,
  keepAliveMs: 75_000,
  // The slowest answer takes 100 s: a write that others keep getting ahead of (object-change.ts).
  stalledMs: 120_000,
  checkMs: 1000,
};

const MAX_HEADER_BYTES = 16_384;

/** An idle one costs some 80 KB with TLS; a few replicas behind an ingress need far fewer. */
const MAX_CONNECTIONS = 1000;

export interface ServerDeps {
  readonly listener: RequestListener;
  readonly answers: Answers;
  readonly clock: Clock;
  /** PEM; plain HTTP without. */
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** Without it a client's address is the connection's. */
  readonly addresses?: ClientAddresses;
  readonly timeouts?: Timeouts;
}

/**
 * The HTTP server around the app. It sees to what happens before a request is one: limits of time and size,
 * and answers, in the API's own envelope, to what Node's parser refuses.
 */
export function createApiServer(deps: ServerDeps): Server {
  const { listener, answers, clock, tls, addresses = new ClientAddresses(), timeouts = TIMEOUTS } = deps;
  const options: ServerOptions = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkMs,
    // The app checks Host itself: Node's answer would have no body.
    requireHostHeader: false,
  };
  const limited = limitPipelining(listener);
  const server = tls
    ? createTlsServer({ ...options, ...tls, handshakeTimeout: timeouts.headersMs }, limited)
    : createServer(options, limited);
  server.timeout = timeouts.stalledMs;
  server.maxConnections = MAX_CONNECTIONS;
  // Node drops headers beyond a number in silence, a second Authorization among them; the bytes are the limit.
  server.maxHeadersCount = 0;
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const problem = parserProblem(error);
    if (problem) answers.raw(socket, problem);
    else socket.destroy();
  });
  const refuseExpectation: RequestListener = (request, response) => {
    const problem = new Problem(417, "The only expectation that can be met is 100-continue.", {
      headers: ["Connection", "close"],
    });
    answers.failure(openExchange(request, response, clock.monotonic(), addresses.of(request)), problem);
  };
  server.on("checkExpectation", limitPipelining(refuseExpectation));
  server.on("connect", (_request, socket) => {
    // Node has taken its own listener off: a client that is gone by now would end the process.
    socket.on("error", () => socket.destroy());
    answers.raw(socket, new Problem(400, "This is not a proxy."));
  });
  return server;
}

/** What the parser's error is in HTTP; `undefined` where nobody is left to tell, or it is not HTTP. */
function parserProblem({ code = "" }: NodeJS.ErrnoException): Problem | undefined {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem(431, `The headers must not be longer than ${MAX_HEADER_BYTES} bytes.`);
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return new Problem(413, "The chunk extensions of the body are too long.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem(408, "The request did not come in time.");
    default:
      return code.startsWith("HPE_") ? new Problem(400, "The request is not valid HTTP.") : undefined;
  }
}
