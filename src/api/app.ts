import express, { type Express } from "express";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/log.ts";
import type { RecordSpan } from "../telemetry/span.ts";
import type { ClusterCache } from "./cluster/cluster-cache.ts";
import type { ApiMetrics } from "./metrics.ts";
import { authenticate } from "./middleware/authenticate.ts";
import { allowClientIp, type TrustedProxies } from "./middleware/client-ip.ts";
import { errorHandler } from "./middleware/error-handler.ts";
import { httpSyntax } from "./middleware/http-syntax.ts";
import { methodNotAllowedError, notFound } from "./middleware/not-found.ts";
import type { RateLimits } from "./middleware/rate-limit/limits.ts";
import { rateLimit } from "./middleware/rate-limit.ts";
import { requestContext } from "./middleware/request-context.ts";
import { requestLog } from "./middleware/request-log.ts";
import { docsRouter, openApiHandler } from "./openapi/docs-routes.ts";
import { OPERATIONS, type ResourceDeps, resourceRouters } from "./resources/operations.ts";

export interface AppDeps extends ResourceDeps {
  readonly cache: Omit<ClusterCache, "run" | "notSynced">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: RateLimits;
  readonly trustedProxies: TrustedProxies;
  readonly metrics: Pick<ApiMetrics, "requestCompleted">;
  /** `undefined` when tracing is off. */
  readonly recordSpan: RecordSpan | undefined;
  readonly isShuttingDown: () => boolean;
  readonly disableDocsPage: boolean;
}

/**
 * The management API as an express app.
 *
 * The order of the checks (docs/reference/contract.md#order-of-the-checks) keeps a status from revealing what a later
 * check protects: HTTP syntax, 401, source address 403, 429, route 404 and 405, role 403; and in each handler
 * path parameters 400, organization and service 404, query 400, preconditions 412, body 400, 415, 413 and 400, state
 * 400, 409 and 404.
 */
export function createApp(deps: AppDeps): Express {
  const { cache } = deps;
  const app = express();
  app.enable("strict routing");
  app.enable("case sensitive routing");
  app.disable("x-powered-by");
  app.disable("etag");
  // No operation has a query.
  app.set("query parser", false);

  app.use(requestContext(deps));
  app.use(requestLog(deps));
  app.use(httpSyntax);
  const document = openApiHandler(OPERATIONS, deps.maximumSize);
  // Before authentication, because the document is public.
  app.get("/v1", document);
  app.use("/v1", authenticate(deps), allowClientIp, rateLimit({ ...deps, keyUsage: cache.keyUsageBuffer }));
  app.use(resourceRouters(deps));
  app.all("/v1", () => {
    throw methodNotAllowedError("GET, HEAD");
  });
  app.use(docsRouter(document, deps));
  app.use(notFound);
  app.use(errorHandler);
  return app;
}
