import { once } from "node:events";
import { createServer } from "node:http";
import express, { type RequestHandler } from "express";
import { onTestFinished } from "vitest";
import { TrustedProxies } from "../../../src/api/middleware/client-ip.ts";
import { errorHandler } from "../../../src/api/middleware/error-handler.ts";
import { RateLimits } from "../../../src/api/middleware/rate-limit/limits.ts";
import { requestContext } from "../../../src/api/middleware/request-context.ts";
import { normalizeTarget } from "../../../src/api/middleware/request-target.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { RateLimitSettings } from "../../../src/settings/api.ts";

export const DEFAULT_LIMITS: RateLimitSettings = { rateLimit: 10, rateWindowMs: 10_000, failedLogins: 10 };

export interface MiddlewareOptions {
  readonly clock: Clock;
  readonly limits?: RateLimits;
  readonly trustedProxies?: readonly string[];
}

/** An express app with the request context first, these handlers, and the error handler last. */
export function appOf(handlers: readonly RequestHandler[], options: MiddlewareOptions) {
  const { clock, limits = new RateLimits(DEFAULT_LIMITS), trustedProxies = [] } = options;
  const app = express();
  const proxies = new TrustedProxies(trustedProxies);
  app.use(requestContext({ clock, trustedProxies: proxies, limits, isShuttingDown: () => false }));
  for (const handler of handlers) app.use(handler);
  app.use(errorHandler);
  return app;
}

/** Serves the app on a free port until the test ends. Returns its base URL. */
export async function serve(app: ReturnType<typeof express>): Promise<string> {
  const server = createServer((request, response) => {
    normalizeTarget(request);
    app(request, response);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return `http://127.0.0.1:${address.port}`;
}
