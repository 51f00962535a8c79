import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/** The directives of a Content-Security-Policy. */
export type ContentPolicy = Readonly<Record<string, readonly string[]>>;

/** For responses that are not pages. */
const NOTHING: ContentPolicy = { "default-src": ["'none'"], "frame-ancestors": ["'none'"] };

/**
 * The headers of all responses with content of one type, names and values in turn.
 *
 * The headers of helmet never change, so helmet runs once, on a dummy response: as a middleware it would cost each
 * request more than authentication.
 */
export function responseHeaders(contentType: string, policy = NOTHING): readonly string[] {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const setHeaders = helmet({
    xFrameOptions: { action: "deny" },
    contentSecurityPolicy: { useDefaults: false, directives: { ...policy } },
  });
  setHeaders(request, response, (error?: unknown) => {
    if (error !== undefined) throw new Error("helmet rejected its settings", { cause: error });
  });
  const helmets = response.getHeaderNames();
  return [
    "Content-Type",
    contentType,
    "Cache-Control",
    "no-store",
    ...helmets.flatMap((name) => [canonicalName(name), String(response.getHeader(name))]),
  ];
}

export const JSON_HEADERS: readonly string[] = responseHeaders("application/json");

/** Restores `X-Frame-Options` from `x-frame-options`, because Node returns lowercase names. */
function canonicalName(name: string): string {
  return name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}
