import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet from "helmet";

/**
 * Helmet's headers, names and values in turn. They are the same for every answer, so helmet runs once, on a
 * response that goes nowhere: as a middleware it would cost each request more than its authentication.
 */
export function securityHeaders(): readonly string[] {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const setHeaders = helmet({
    xFrameOptions: { action: "deny" },
    // Nothing that we answer is a page.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { "default-src": ["'none'"], "frame-ancestors": ["'none'"] },
    },
  });
  setHeaders(request, response, (error?: unknown) => {
    if (error !== undefined) throw new Error("helmet refused its settings", { cause: error });
  });
  return response.getHeaderNames().flatMap((name) => [canonicalName(name), String(response.getHeader(name))]);
}

/** `x-frame-options` as `X-Frame-Options`, which Node has lost. */
function canonicalName(name: string): string {
  return name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}
