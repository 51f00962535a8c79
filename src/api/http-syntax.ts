import type { IncomingMessage } from "node:http";
import { Problem } from "./problem.ts";

/** How often a header was sent; Node itself keeps the first of several and says nothing. */
export function timesSent(request: IncomingMessage, name: string): number {
  const { rawHeaders } = request;
  let times = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at];
    // Length first: lower-casing every name of every request would show in the benchmark.
    if (sent?.length === name.length && sent.toLowerCase() === name) times += 1;
  }
  return times;
}

/**
 * Refuses what Node takes, though a proxy may have read it as something else (RFC 9112, sections 3.2 and 6.1).
 *
 * @throws Problem 400, after which the connection closes
 */
export function requireOneReading(request: IncomingMessage): void {
  if (timesSent(request, "host") !== 1) throw ambiguous("The request must have exactly one Host header.");
  const coding = request.headers["transfer-encoding"];
  if (coding === undefined) return;
  if (request.httpVersion === "1.0" || coding.toLowerCase() !== "chunked") {
    throw ambiguous("The only Transfer-Encoding that is taken is chunked, in HTTP/1.1.");
  }
}

function ambiguous(message: string): Problem {
  return new Problem(400, message, { headers: ["Connection", "close"] });
}

/**
 * The path of a request's target, without its query, undecoded. A proxy may send the absolute form, which
 * every server must take (RFC 9112, section 3.2.2).
 */
export function pathOf(target: string): string {
  const path = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const query = path.indexOf("?");
  return query === -1 ? path : path.slice(0, query);
}
