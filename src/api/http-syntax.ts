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

/** @throws Problem 400, after which the connection closes: two readers may disagree where it is in */
export function requireOneHost(request: IncomingMessage): void {
  if (timesSent(request, "host") === 1) return;
  throw new Problem(400, "The request must have exactly one Host header.", {
    headers: ["Connection", "close"],
  });
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
