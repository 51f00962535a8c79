import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Connections, Exchange } from "../../http/connections.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/log.ts";
import { type ApiError, apiError } from "../errors.ts";
import type { ApiMetrics } from "../metrics.ts";
import { unknownMethodError } from "../middleware/not-found.ts";
import type { RateLimits } from "../middleware/rate-limit/limits.ts";
import { contextOf } from "../middleware/request-context.ts";
import { errorBody } from "../middleware/respond.ts";
import { JSON_HEADERS } from "../middleware/response-headers.ts";

export interface MalformedRequestsOptions {
  readonly connections: Pick<Connections, "latest">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Logger;
  readonly metrics: Pick<ApiMetrics, "malformedRequest">;
  readonly limits: Pick<RateLimits, "uncharged">;
}

/**
 * Responds to malformed and incomplete requests, because Node's own response would have no body. The connection ends
 * with the response.
 */
export class MalformedRequests {
  readonly #options: MalformedRequestsOptions;

  constructor(options: MalformedRequestsOptions) {
    this.#options = options;
  }

  /** For errors of the parser, the TLS handshake and the socket, and for requests that are too slow. */
  onClientError(error: ParserError, socket: Duplex): void {
    const refusal = toApiError(error);
    // A client that opened the connection in advance would read a 408 as the response to its first request.
    const isUnused = socket instanceof Socket && socket.bytesRead === 0;
    if (refusal && !isUnused) this.#refuse(socket, refusal);
    else socket.destroy();
  }

  onConnect(socket: Duplex): void {
    // Node has removed its own listeners; without them, a client that disconnects now would crash the process, and one
    // that does not read the response before this one would hold the connection.
    socket.on("error", () => socket.destroy());
    socket.on("timeout", () => socket.destroy());
    this.#refuse(socket, apiError("NotAProxy"));
  }

  #refuse(socket: Duplex, error: ApiError): void {
    const latest = this.#options.connections.latest(socket);
    if (!socket.writable || !canRespond(latest)) {
      // Destroys the socket once the pending bytes of an earlier response are sent.
      socket.end(() => socket.destroy());
      return;
    }
    // If the parser failed in the body of a request that the app is serving, the response has the ID of that request.
    const unfinished = latest && !latest.request.complete ? contextOf(latest.request) : undefined;
    const requestId = unfinished?.requestId ?? randomUUID();
    const head = this.#head(error, requestId, unfinished?.rateLimitFields ?? this.#options.limits.uncharged);
    socket.end(`${head}\r\n\r\n${errorBody(error)}`, () => socket.destroy());
    if (unfinished) {
      unfinished.rawStatus = error.status;
      unfinished.error = error;
      return;
    }
    this.#options.metrics.malformedRequest(error.status);
    const client = socket instanceof Socket ? socket.remoteAddress : undefined;
    this.#options.log.info({ requestId, client, status: error.status }, "request");
  }

  #head(error: ApiError, requestId: string, rateLimitFields: readonly string[]): string {
    const headers = [
      "X-Request-Id",
      requestId,
      "Content-Length",
      String(Buffer.byteLength(errorBody(error))),
      ...JSON_HEADERS,
      ...Object.entries(error.headers).flat(),
      ...rateLimitFields,
      "Date",
      new Date(this.#options.clock.now()).toUTCString(),
      "Connection",
      "close",
    ];
    const lines = [`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ""}`];
    for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
    return lines.join("\r\n");
  }
}

/**
 * Returns true if a response that bypasses Node's HTTP layer would be unambiguous. While an earlier response is
 * pending, the client would mistake this one for it. In the middle of an earlier response, this one would corrupt it.
 */
function canRespond(latest: Exchange | undefined): boolean {
  if (latest === undefined) return true;
  const { request, response } = latest;
  // A response gets its socket after the responses before it are written.
  return request.complete ? response.writableFinished : response.socket !== null && !response.headersSent;
}

/** Returns the response to an error; `undefined` if the client disconnected, or if the TLS handshake failed. */
function toApiError(error: ParserError): ApiError | undefined {
  const { code = "" } = error;
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return apiError("HeadersTooLong");
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return apiError("ChunkExtensionsTooLong");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return apiError("TooSlow");
    case "HPE_INVALID_METHOD":
    // The method is one of another protocol, such as RTSP.
    case "HPE_INVALID_CONSTANT":
      return startsWithRequestLine(error) ? unknownMethodError() : apiError("NotHttp");
    default:
      return code.startsWith("HPE_") ? apiError("NotHttp") : undefined;
  }
}

/** An error of Node's parser, with the bytes in which it failed; other errors have no bytes. */
interface ParserError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

/** A request line with any method (RFC 9112, section 3), perhaps after empty lines. */
const REQUEST_LINE = /^[\r\n]*[\w!#$%&'*+.^`|~-]+ [\x21-\x7e]+ HTTP\/1\.[01]\r\n/;

/** The bytes can begin with earlier requests. While their responses are pending, the malformed request gets none. */
function startsWithRequestLine({ rawPacket = Buffer.alloc(0) }: ParserError): boolean {
  return REQUEST_LINE.test(rawPacket.toString("latin1"));
}
