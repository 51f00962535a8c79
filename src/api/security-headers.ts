import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/** The directives of a Content-Security-Policy. */
export type ContentPolicy = Readonly<Record<string, readonly string[]>>;

/** For what is not a page. */
const NOTHING: ContentPolicy = { "default-src": ["'none'"], "frame-ancestors": ["'none'"] };

/**
 * The headers of all answers with content of one type, names and values in turn.
 *
 * Helmet's are the same each time, so helmet runs once, on a response that goes nowhere: as a middleware it
 * would cost each request more than its authentication.
 */
export function answerHeaders(contentType: string, policy = NOTHING): readonly string[] {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const setHeaders = helmet({
    xFrameOptions: { action: "deny" },
    contentSecurityPolicy: { useDefaults: false, directives: { ...policy } },
  });
  setHeaders(request, response, (error?: unknown) => {
    if (error !== undefined) throw new Error("helmet refused its settings", { cause: error });
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

/** `x-frame-options` as `X-Frame-Options`, which Node has lost. */
function canonicalName(name: string): string {
  return name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}
