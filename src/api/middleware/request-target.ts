import type { IncomingMessage } from "node:http";

/** Requests whose path is not percent-encoded UTF-8. */
const malformed = new WeakSet<IncomingMessage>();
/** Requests with a query. */
const queried = new WeakSet<IncomingMessage>();

/**
 * Rewrites the target of a request (RFC 9112, section 3.2) to a path that express can route without an error. Otherwise
 * the order of checks would be wrong: express parses the target before any middleware, and decodes parameters before
 * any handler.
 *
 * - The absolute form, which every server must accept, becomes its path; any other target without a path becomes a path
 *   without a route.
 * - The query is dropped, because no operation has one, and `hasQuery` remembers it.
 * - A path that cannot be decoded stays literal, and `isPathMalformed` remembers it.
 */
export function normalizeTarget(request: IncomingMessage): void {
  const target = request.url ?? "";
  if (/\?./.test(target)) queried.add(request);
  const path = pathOf(target);
  if (isDecodable(path)) request.url = path;
  else {
    malformed.add(request);
    request.url = path.replaceAll("%", "%25");
  }
}

export function isPathMalformed(request: IncomingMessage): boolean {
  return malformed.has(request);
}

/** Returns true if the target had a query; an empty one does not count. */
export function hasQuery(request: IncomingMessage): boolean {
  return queried.has(request);
}

/** Returns a path that starts with a slash and contains no character that ends a path in a URL parser. */
export function pathOf(target: string): string {
  const path = target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "");
  const [withoutQuery = ""] = path.split("?", 1);
  const encoded = withoutQuery.replaceAll("#", "%23");
  return encoded.startsWith("/") ? encoded : `/-${encoded}`;
}

function isDecodable(path: string): boolean {
  if (!path.includes("%")) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
