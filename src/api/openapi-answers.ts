import * as z from "zod";
import type { ZodOpenApiResponseObject } from "zod-openapi";
import { emptyEnvelope, errorEnvelope, successEnvelope } from "./envelopes.ts";
import type { Operation, Route } from "./routes.ts";

/** What every answer of the API has, and what some have besides. */

const count = z.int().min(0);
/** Without a limit there are no such headers. */
const rate = count.optional();

const everywhere = {
  "X-Request-Id": z.uuidv4().meta({
    description: "Quote it when you report something. In a 200 it is also the `requestId`.",
    header: { id: "X-Request-Id" },
  }),
  "X-RateLimit-Limit": rate.meta({
    description: "Requests that a key may send in a window.",
    header: { id: "X-RateLimit-Limit" },
  }),
  "X-RateLimit-Remaining": rate.meta({
    description: "Requests that may be sent at once.",
    header: { id: "X-RateLimit-Remaining" },
  }),
  "X-RateLimit-Reset": count
    .max(55)
    .optional()
    .meta({
      description: "Seconds from now until all of them may be sent again.",
      header: { id: "X-RateLimit-Reset" },
    }),
};

const retryAfter = {
  "Retry-After": count.min(1).meta({
    description: "Seconds to wait before the same request is sent again.",
    header: { id: "Retry-After" },
  }),
};
const challenge = {
  "WWW-Authenticate": z
    .string()
    .meta({ description: "A challenge of the scheme Basic.", header: { id: "WWW-Authenticate" } }),
};
const acceptPatch = {
  "Accept-Patch": z
    .string()
    .meta({ description: "The media types that are taken.", header: { id: "Accept-Patch" } }),
};
const allow = {
  Allow: z
    .string()
    .optional()
    .meta({
      description: "With 405: the methods that the path allows.",
      header: { id: "Allow" },
    }),
};

function refusal(status: number, description: string, headers = {}): ZodOpenApiResponseObject {
  return {
    description,
    headers: z.object({ ...everywhere, ...headers }),
    content: { "application/json": { schema: errorEnvelope, example: { error: description, status } } },
  };
}

const unauthenticated = {
  id: "Unauthenticated",
  ...refusal(
    401,
    "No credentials, or none that are valid: the key is unknown, its secret wrong, or it is disabled or expired.",
    challenge,
  ),
};
const forbidden = {
  id: "Forbidden",
  ...refusal(
    403,
    "The key may not be used from this address, or none of its roles allows the operation. A key with the role `developer` may only read.",
  ),
};
const tooLarge = { id: "TooLarge", ...refusal(413, "The body is longer than 65,536 bytes.") };
const unsupported = {
  id: "UnsupportedMediaType",
  ...refusal(415, "The body is not JSON in UTF-8, by its Content-Type, or it is compressed.", acceptPatch),
};
const tooMany = {
  id: "TooManyRequests",
  ...refusal(
    429,
    "The key has sent more requests than it may, or its address has failed to authenticate too often.",
    retryAfter,
  ),
};
const failed = {
  id: "InternalError",
  ...refusal(
    500,
    "Our fault. The outcome of a write is unknown; it is safe to repeat. Quote the request id when you report it.",
  ),
};
const unavailable = {
  id: "Unavailable",
  ...refusal(
    503,
    "Not possible at the moment. The outcome of a write is unknown; it is safe to repeat.",
    retryAfter,
  ),
};
const otherwise = {
  id: "Refused",
  ...refusal(
    405,
    "What is refused before it comes to an operation: 404 and 405 for a path and a method that there are not, 408 for what does not come in time, 417 for an expectation, 431 for headers longer than 16,384 bytes.",
    allow,
  ),
};

function success({ result }: Operation): ZodOpenApiResponseObject {
  return {
    description: result ? "Done." : "Done. There is no result.",
    headers: z.object(everywhere),
    content: { "application/json": { schema: result ? successEnvelope(result) : emptyEnvelope } },
  };
}

/** All that a route can answer, by status. */
export function answersOf({ path, operation }: Route): Record<string, ZodOpenApiResponseObject> {
  const { body, refusals } = operation;
  const invalid = path.includes("{") ? "An id in the path is no UUID." : "The request is not valid HTTP.";
  const own = Object.entries({ 400: invalid, ...refusals }).map(([status, when]) => [
    status,
    refusal(Number(status), when),
  ]);
  return {
    200: success(operation),
    401: unauthenticated,
    403: forbidden,
    ...Object.fromEntries(own),
    ...(body ? { 413: tooLarge, 415: unsupported } : {}),
    429: tooMany,
    500: failed,
    503: unavailable,
    default: otherwise,
  };
}
