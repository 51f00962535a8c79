import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import helmet, { type HelmetOptions } from "helmet";
import { Registry } from "prom-client";

/** The directives of a Content-Security-Policy. */
export type ContentPolicy = Readonly<Record<string, readonly string[]>>;

/** For JSON: a browser that shows it must not load anything, nor show it in a frame. */
const NOTHING: ContentPolicy = { "default-src": ["'none'"], "frame-ancestors": ["'none'"] };

/** Headers of helmet without a meaning for JSON: each protects a page, a frame or a plugin, and costs time to write. */
const ONLY_FOR_PAGES = {
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  referrerPolicy: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} as const satisfies HelmetOptions;

/**
 * The headers of all responses with content of one type, names and values in turn.
 *
 * The headers of helmet never change, so helmet runs once, on a dummy response: as a middleware it would cost each
 * request more than authentication.
 *
 * @param policy of a page; without one, the content must not be shown as a page
 */
export function responseHeaders(contentType: string, policy?: ContentPolicy): readonly string[] {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { ...(policy ?? NOTHING) } },
    ...(policy ? { xFrameOptions: { action: "deny" } } : ONLY_FOR_PAGES),
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

/** For metrics, which are not shown as a page either. */
export const EXPOSITION_HEADERS: readonly string[] = responseHeaders(Registry.PROMETHEUS_CONTENT_TYPE);

/** Restores `X-Frame-Options` from `x-frame-options`, because Node returns lowercase names. */
function canonicalName(name: string): string {
  return name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}
