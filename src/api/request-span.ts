import { requestSpanId, type Span } from "../telemetry/span.ts";
import { CLIENT_CLOSED_REQUEST, type CompletedRequest } from "./middleware/completed-request.ts";
import { SCALING_PATH } from "./resources/pipe-scaling/operation-parts.ts";

/**
 * Returns the first span in the trace of a rescale: the request for it. `undefined` for other requests and for rejected
 * ones. A request that failed with a server error, or whose client disconnected, has a span, because the size may have
 * been written.
 *
 * Attribute names follow OpenTelemetry's semantic conventions for HTTP servers.
 */
export function requestSpan(
  { request, context: { requestId, key }, route, status, durationMs }: CompletedRequest,
  endMs: number,
): Span | undefined {
  if (request.method !== "PATCH" || route !== SCALING_PATH || key === undefined) return undefined;
  if (status !== 200 && status < CLIENT_CLOSED_REQUEST) return undefined;
  const [path] = request.originalUrl.split("?");
  return {
    requestId,
    id: requestSpanId(requestId),
    parentId: undefined,
    kind: "server",
    name: `PATCH ${SCALING_PATH}`,
    startMs: endMs - durationMs,
    endMs,
    attributes: {
      "http.request.method": "PATCH",
      "http.route": SCALING_PATH,
      "http.response.status_code": status,
      ...(path ? { "url.path": path } : {}),
      "pipe_scaling.api_key": key.apiKey.id,
      "pipe_scaling.organization": key.apiKey.organizationId,
    },
    failure: status === 200 ? undefined : String(status),
  };
}
