import { requestSpanId, type Span } from "../telemetry/span.ts";
import { CLIENT_CLOSED_REQUEST, type CompletedRequest } from "./middleware/completed-request.ts";
import { updateBoost } from "./resources/pipe-scaling/boost-routes.ts";
import { updatePipeScaling } from "./resources/pipe-scaling/routes.ts";

/** The operations that request a size. */
const REQUESTS = [updatePipeScaling, updateBoost];

/**
 * Returns the first span in the trace of a rescale: the request for it. `undefined` for other requests and for rejected
 * ones. A request that failed with a server error, or whose connection closed first, has a span, because the size may
 * have been written.
 *
 * Attribute names follow OpenTelemetry's semantic conventions for HTTP servers.
 */
export function requestSpan(
  { request, context: { requestId, key }, route, status, durationMs }: CompletedRequest,
  endMs: number,
): Span | undefined {
  const operation = REQUESTS.find(({ method, path }) => method === request.method && path === route);
  if (!operation || key === undefined) return undefined;
  if (status !== 200 && status < CLIENT_CLOSED_REQUEST) return undefined;
  const [path] = request.originalUrl.split("?");
  return {
    requestId,
    id: requestSpanId(requestId),
    parentId: undefined,
    kind: "server",
    name: `${operation.method} ${operation.path}`,
    startMs: endMs - durationMs,
    endMs,
    attributes: {
      "http.request.method": operation.method,
      "http.route": operation.path,
      "http.response.status_code": status,
      ...(path ? { "url.path": path } : {}),
      "pipe_scaling.api_key": key.apiKey.id,
      "pipe_scaling.organization": key.apiKey.organizationId,
    },
    failure: status === 200 ? undefined : String(status),
  };
}
