import type { IncomingMessage } from "node:http";
import { isIPv6 } from "node:net";
import type { RequestHandler } from "express";
import { apiError } from "../errors.ts";
import { MAX_HEADERS } from "../server/limits.ts";

/** Counts the occurrences of a header. Node silently keeps only the first one of some headers, such as Authorization. */
export function countHeader({ rawHeaders }: Pick<IncomingMessage, "rawHeaders">, name: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at];
    // Compares the length first, because lowercasing every name of every request is measurably slower.
    if (sent?.length === name.length && sent.toLowerCase() === name) count += 1;
  }
  return count;
}

/**
 * Rejects requests that Node accepts although this server does not support them, or a proxy may interpret them
 * differently (RFC 9112, sections 2.3, 3.2 and 6.1). The connection closes, because the boundary to the next request
 * can be ambiguous.
 */
export const httpSyntax: RequestHandler = (request, _response, next) => {
  const { headers, context } = request;
  // This server does not support Upgrade. Node stops reading after such a request, so anything that the client sent
  // after it is lost, and the connection must close.
  if (headers.upgrade !== undefined) context.closeConnection = true;
  const reason = syntaxErrorOf(request);
  if (reason === undefined) next();
  else {
    context.closeConnection = true;
    next(apiError(reason));
  }
};

function syntaxErrorOf(request: IncomingMessage) {
  const { headers, rawHeaders, httpVersion } = request;
  if (httpVersion !== "1.1" && httpVersion !== "1.0") return "HttpVersion";
  if (rawHeaders.length > 2 * MAX_HEADERS) return "HeadersTooLong";
  if (!hasOneHost(request)) return "HostCount";
  if (!isHost(headers.host ?? "")) return "HostMalformed";
  if (!isPlainChunked(request)) return "TransferEncoding";
  const isExpectation = headers.expect !== undefined && headers.expect.toLowerCase() !== "100-continue";
  return isExpectation ? "ExpectationUnknown" : undefined;
}

/** HTTP/1.0 has no Host header, but many of its clients send one. */
function hasOneHost(request: IncomingMessage): boolean {
  const count = countHeader(request, "host");
  return count === 1 || (count === 0 && request.httpVersion === "1.0");
}

/** The grammar of Host (RFC 9110, section 7.2): `reg-name` or an IPv6 address in brackets; a port may follow. */
const HOST = /^(?:\[([\da-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::\d*)?$/i;

/** An empty name is valid: clients send it if their URL has no authority. */
function isHost(value: string): boolean {
  const match = HOST.exec(value);
  return match !== null && (match[1] === undefined || isIPv6(match[1]));
}

function isPlainChunked({ headers, httpVersion }: IncomingMessage): boolean {
  const coding = headers["transfer-encoding"];
  return coding === undefined || (httpVersion === "1.1" && coding.toLowerCase() === "chunked");
}
