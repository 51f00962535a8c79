import type { Request, RequestHandler } from "express";
import { messageOf } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { RecordSpan } from "../../telemetry/span.ts";
import type { ApiMetrics } from "../metrics.ts";
import { requestSpan } from "../request-span.ts";
import { CLIENT_CLOSED_REQUEST, type CompletedRequest } from "./completed-request.ts";
import type { RequestContext } from "./request-context.ts";
import { requestLineWriter, roundedMs } from "./request-line.ts";

export interface RequestLogOptions {
  readonly log: Logger;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly metrics: Pick<ApiMetrics, "requestCompleted">;
  /** Absent if tracing is off. */
  readonly recordSpan: RecordSpan | undefined;
}

/**
 * Logs and counts each request when its response is written or its connection closes, and records the span of a request
 * for a size.
 */
export function requestLog({ log, clock, metrics, recordSpan }: RequestLogOptions): RequestHandler {
  // No redaction: it costs more than the rest of a line, and all fields of these lines are set here.
  const requests = log.child({}, { redact: [] });
  const writeServed = requestLineWriter(log);
  return (request, response, next) => {
    response.once("close", () => {
      const { context } = request;
      const sent = response.headersSent ? response.statusCode : CLIENT_CLOSED_REQUEST;
      const status = context.rawStatus ?? sent;
      const durationMs = clock.monotonic() - context.startedAt;
      const completed = { request, context, route: routeTemplate(request), status, durationMs };
      metrics.requestCompleted(completed);
      const span = recordSpan && requestSpan(completed, clock.now());
      if (span) recordSpan(span);
      if (status < 500 || context.isNotYet) writeServed(completed, clock.now());
      else writeFailed(requests, completed);
    });
    next();
  };
}

function writeFailed(log: Logger, { request, context, route, status, durationMs }: CompletedRequest): void {
  const line = {
    requestId: context.requestId,
    client: context.clientIp,
    apiKey: context.key?.apiKey.id,
    organization: context.key?.apiKey.organizationId,
    method: request.method,
    route,
    status,
    durationMs: roundedMs(durationMs),
  };
  if (status === 500) log.error({ ...line, err: context.error?.cause }, "request");
  else log.warn({ ...line, because: reasonOf(context.error) }, "request");
}

/** Returns the message of the cause, if there is one, because the message for the caller has no details. */
function reasonOf(error: RequestContext["error"]): string | undefined {
  return error?.cause instanceof Error ? messageOf(error.cause) : error?.message;
}

/** Templates by the route objects of express. There is one object for each path. */
const templates = new WeakMap<object, string>();

/** `/v1/things/{thingId}` of the route that matched the request, for logs and metrics; `undefined` if none did. */
function routeTemplate(request: Request): string | undefined {
  const route: { readonly path: string | readonly string[] } | undefined = request.route;
  if (route === undefined) return undefined;
  const known = templates.get(route);
  if (known !== undefined) return known;
  // The path itself comes first, then its aliases (path-aliases.ts).
  const path = typeof route.path === "string" ? route.path : (route.path[0] ?? "");
  const template = path.replace(/:(\w+)/g, "{$1}");
  templates.set(route, template);
  return template;
}
