import { MIMEType } from "node:util";
import type { Request, Response } from "express";
import { isHttpError } from "http-errors";
import { parse } from "lossless-json";
import getRawBody from "raw-body";
import type * as z from "zod";
import { messageOf } from "../../kube/errors.ts";
import { type ApiError, apiError } from "../errors.ts";
import { describeValidationErrors, quote } from "./error-text.ts";
import { countHeader } from "./http-syntax.ts";
import { refuseQuery, requirePreconditions } from "./preconditions.ts";
import { announcesBody } from "./unread-body.ts";

const LIMIT_BYTES = 65_536;

/**
 * Every chunk costs memory and time, however short it is: 64,000 chunks of one byte take a hundred times the memory of
 * their bytes. HTTP libraries send chunks of kilobytes.
 */
const MAX_CHUNKS = 1024;

export const MEDIA_TYPES = ["application/json", "application/merge-patch+json"];

/**
 * Checks the preconditions of a write, and returns its validated body. Call it after the path is resolved, so that the
 * checks run in the documented order.
 *
 * @throws ApiError 400 for a query, 412, 400 for a missing body, 415, 413, 400 for an invalid body, in this order
 */
export async function readJsonBody<T>(
  request: Request,
  response: Response,
  schema: z.ZodType<T>,
): Promise<T> {
  refuseQuery(request);
  requirePreconditions(request);
  if (!announcesBody(request)) throw apiError("BodyMissing");
  requireJsonType(request);
  return validate(decodeJson(await receive(request, response)), schema);
}

/**
 * Checks the preconditions of a write, and waits for the end of its body, which is ignored. Call it before a write that
 * needs no body: the response to an incomplete body is 400 or 408, and a 4xx guarantees that nothing has changed.
 *
 * @throws ApiError 400 for a query, 412, 413, 400, in this order
 */
export async function discardBody(request: Request, response: Response): Promise<void> {
  refuseQuery(request);
  requirePreconditions(request);
  if (announcesBody(request)) await receive(request, response);
}

function requireJsonType(request: Request): void {
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw unsupported(apiError("BodyCompressed"));
  }
  if (countHeader(request, "content-type") !== 1 || !isJson(request.headers["content-type"] ?? "")) {
    throw unsupported(apiError("BodyType", MEDIA_TYPES));
  }
}

function isJson(contentType: string): boolean {
  let type: MIMEType;
  try {
    type = new MIMEType(contentType);
  } catch {
    return false;
  }
  const charset = (type.params.get("charset") ?? "utf-8").toLowerCase();
  // `utf8` is not a registered name, but some clients send it (https://encoding.spec.whatwg.org/#names-and-labels).
  return MEDIA_TYPES.includes(type.essence) && (charset === "utf-8" || charset === "utf8");
}

function unsupported(error: ApiError): ApiError {
  return error.with({ headers: { "Accept-Patch": MEDIA_TYPES.join(", ") } });
}

/** The raw bytes, not inflated. */
async function receive(request: Request, response: Response): Promise<Buffer> {
  const length = request.headers["content-length"] ?? null;
  if (Number(length) > LIMIT_BYTES) throw tooLarge();
  // A client of HTTP/1.0 does not know the status 100 (RFC 9110, section 10.1.1).
  if (request.headers.expect !== undefined && request.httpVersion === "1.1") response.writeContinue();
  let chunks = 0;
  const countChunk = () => {
    chunks += 1;
    if (chunks !== MAX_CHUNKS + 1) return;
    // raw-body stops reading at an error of the stream; discarding the chunks that follow is cheaper than keeping them.
    request.emit("error", tooManyChunks());
    request.resume();
  };
  request.on("data", countChunk);
  try {
    const reading: Promise<Buffer> = getRawBody(request, { length, limit: LIMIT_BYTES });
    const body = await reading;
    // The body was too slow, and its end was found while the 408 was sent (server/malformed-requests.ts).
    if (request.context.rawStatus !== undefined) throw apiError("TooSlow");
    return body;
  } catch (error) {
    throw toBodyError(error);
  } finally {
    request.off("data", countChunk);
  }
}

function toBodyError(error: unknown): unknown {
  if (!isHttpError(error)) return error;
  if (error["type"] === "entity.too.large") return tooLarge();
  // raw-body reports 400 if the client disconnected, or if the length does not match.
  if (error.status === 400) return apiError("BodyIncomplete").with({ cause: error });
  return error;
}

function tooLarge(): Error {
  return apiError("BodyTooLong", LIMIT_BYTES);
}

function tooManyChunks(): Error {
  return apiError("TooManyChunks", MAX_CHUNKS);
}

/**
 * Parses strict JSON: UTF-8 without a byte order mark, and no duplicate keys with different values, because two parsers
 * of such a body could use different values.
 *
 * @throws ApiError 400
 */
export function decodeJson(bytes: Buffer): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw apiError("BodyNotUtf8").with({ cause });
  }
  try {
    return parse(text, null, {
      parseNumber: Number,
      onDuplicateKey: ({ key }) => {
        throw new SyntaxError(`the key ${quote(key)} occurs twice with different values`);
      },
    });
  } catch (cause) {
    if (cause instanceof RangeError) throw apiError("BodyTooDeep").with({ cause });
    throw apiError("BodyNotJson", messageOf(cause)).with({ cause });
  }
}

/** @throws ApiError 400 that names the fields and the rules */
export function validate<T>(value: unknown, schema: z.ZodType<T>): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw apiError("BodyInvalid", describeValidationErrors(result.error));
}
