import type { Response } from "express";
import type { ApiError } from "../errors.ts";
import { errorText } from "./error-text.ts";
import { bytesOf, type FileBody, isShort, type ResponseBody, writeInParts } from "./response-body.ts";
import { EXPOSITION_HEADERS, JSON_HEADERS } from "./response-headers.ts";
import { endAfterBody, hasUnreadBody, isShortBody } from "./unread-body.ts";

/** Sends 200 with the envelope; without a result, the envelope has only `requestId` and `status`. */
export function sendResult(response: Response, result?: unknown): void {
  sendJsonResult(response, JSON.stringify(result));
}

/** Sends 200 with the envelope around a result that is already JSON. */
export function sendJsonResult(response: Response, json: string | undefined): void {
  const result = json === undefined ? "" : `,"result":${json}`;
  const body = `{"requestId":"${response.req.context.requestId}","status":200${result}}`;
  send(response, 200, JSON_HEADERS, body);
}

/** Sends 200 with metrics as text for Prometheus. */
export function sendExposition(response: Response, text: string): void {
  send(response, 200, EXPOSITION_HEADERS, text);
}

/** Remembers the JSON of each object: the cache replaces objects and never modifies them, and clients poll them. */
export function memoizeJson<T extends object>(toWire: (object: T) => unknown): (object: T) => string {
  const known = new WeakMap<T, string>();
  return (object) => {
    const json = known.get(object) ?? JSON.stringify(toWire(object));
    known.set(object, json);
    return json;
  };
}

/** Sends the error envelope. If the response has already started, the error is only recorded for the log. */
export function sendError(response: Response, error: ApiError): void {
  response.req.context.error ??= error;
  if (response.headersSent) return;
  const headers = [...JSON_HEADERS, ...Object.entries(error.headers).flat()];
  send(response, error.status, headers, errorBody(error));
}

/**
 * Sends a complete response with the common headers. It uses one `writeHead` with a flat array, because setting about
 * twenty headers one by one costs more than authentication.
 *
 * @param headers names and values in turn
 */
export function send(
  response: Response,
  status: number,
  headers: readonly string[],
  body: ResponseBody,
): void {
  const { req: request } = response;
  const { context } = request;
  // The connection has ended with a response that the server wrote itself (server/malformed-requests.ts).
  if (context.rawStatus !== undefined) return;
  const isUnread = hasUnreadBody(request);
  if (context.isShuttingDown() || (isUnread && !isShortBody(request))) context.closeConnection = true;
  const length = String(bytesOf(body));
  response.writeHead(status, [
    "X-Request-Id",
    context.requestId,
    "Content-Length",
    length,
    ...headers,
    ...context.rateLimitFields,
    ...(context.closeConnection ? CLOSE : []),
  ]);
  const end = isUnread ? () => endAfterBody(request, response) : () => void response.end();
  if (request.method === "HEAD") {
    // Node does not write the headers before the end unless they are flushed.
    response.flushHeaders();
    end();
  } else if (!isShort(body)) {
    // A string is copied to a buffer, so that it can be freed, and a response that is not read costs one copy.
    void sendInParts(response, typeof body === "string" ? ownBody(response, body) : body, end);
  } else if (isUnread) {
    response.write(body);
    end();
  } else {
    response.end(body);
  }
}

function ownBody(response: Response, text: string): Buffer {
  const body = Buffer.from(text);
  response.req.context.unsentBodies.add(response, body.length);
  return body;
}

async function sendInParts(response: Response, body: Buffer | FileBody, end: () => void): Promise<void> {
  const { context } = response.req;
  const { unsentBodies } = context;
  try {
    await writeInParts(body, response, () => unsentBodies.progress(response));
    unsentBodies.remove(response);
    end();
  } catch (cause) {
    // The write failed because the client has disconnected, or because its connection was closed (unsent-bodies.ts).
    if (response.destroyed || response.req.socket.destroyed) return;
    context.rawStatus = 500;
    context.error = new Error("the body of the response cannot be read", { cause });
    response.destroy();
  }
}

const CLOSE: readonly string[] = ["Connection", "close"];

export function errorBody({ message, status }: Pick<ApiError, "message" | "status">): string {
  return JSON.stringify({ error: errorText(message), status });
}
