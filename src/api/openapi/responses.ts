import * as z from "zod";
import type { ZodOpenApiResponseObject } from "zod-openapi";
import { emptyEnvelope, errorEnvelope, successEnvelope } from "../resources/envelopes.ts";
import type { Operation } from "./operation.ts";

/** Headers of all responses (`everywhere`), and those of some. */

const count = z.int().min(0);
/** Absent when there is no limit. */
const rate = count.optional();

const everywhere = {
  "X-Request-Id": z.uuidv4().meta({
    description: "Include it when you report a problem. The body of a 200 has it too, as `requestId`.",
    header: { id: "X-Request-Id" },
  }),
  "X-RateLimit-Limit": rate.meta({
    description: "Requests that a key may send per window.",
    header: { id: "X-RateLimit-Limit" },
  }),
  "X-RateLimit-Remaining": rate.meta({
    description: "Requests that remain in the window.",
    header: { id: "X-RateLimit-Remaining" },
  }),
  "X-RateLimit-Reset": count
    .max(55)
    .optional()
    .meta({
      description: "Seconds from now until the whole limit is available again.",
      header: { id: "X-RateLimit-Reset" },
    }),
};

const retryAfter = {
  "Retry-After": count.min(1).meta({
    description: "Seconds to wait before repeating the request.",
    header: { id: "Retry-After" },
  }),
};
const challenge = {
  "WWW-Authenticate": z.string().meta({
    description: "A challenge for the Basic authentication scheme.",
    header: { id: "WWW-Authenticate" },
  }),
};
const acceptPatch = {
  "Accept-Patch": z
    .string()
    .meta({ description: "The media types that a request body may have.", header: { id: "Accept-Patch" } }),
};
const allow = {
  Allow: z
    .string()
    .optional()
    .meta({
      description: "The methods of the path. Only in a 405.",
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
    "No credentials, or invalid ones: the key is unknown, disabled or expired, or its secret is wrong.",
    challenge,
  ),
};
const forbidden = {
  id: "Forbidden",
  ...refusal(
    403,
    "The key may not be used from this IP address, or its roles do not allow the operation. A key with the role `developer` may only read.",
  ),
};
const preconditionFailed = {
  id: "PreconditionFailed",
  ...refusal(
    412,
    "`If-Match` with an entity tag, or `If-None-Match: *`: no resource has an entity tag, so only `If-Match: *` can be met. Other conditional headers have no effect.",
  ),
};
const tooLarge = {
  id: "TooLarge",
  ...refusal(413, "The body is longer than 65,536 bytes, or in more than 1,024 chunks."),
};
const unsupported = {
  id: "UnsupportedMediaType",
  ...refusal(415, "The Content-Type is not JSON in UTF-8, or the body is compressed.", acceptPatch),
};
const tooMany = {
  id: "TooManyRequests",
  ...refusal(
    429,
    "Too many requests with the key, or too many failed authentications from the address.",
    retryAfter,
  ),
};
const failed = {
  id: "InternalError",
  ...refusal(
    500,
    "An internal error. A write may have taken effect. Include the request ID when you report it.",
  ),
};
const unavailable = {
  id: "Unavailable",
  ...refusal(
    503,
    "Temporarily unavailable. A write may have taken effect; it is safe to repeat the request.",
    retryAfter,
  ),
};
const anyOther = {
  id: "Refused",
  ...refusal(
    405,
    "Rejected before routing: 404 and 405 for an unknown path or method, 408 if the request arrives too slowly, 413 for long chunk extensions, 417 for an unsupported `Expect` header, 431 for headers longer than 16,384 bytes, or more than 128 of them.",
    allow,
  ),
};

function success({ result, exposition }: Operation): ZodOpenApiResponseObject {
  const headers = z.object(everywhere);
  if (exposition !== undefined) {
    const content = { "text/plain": { schema: z.string(), example: exposition } };
    return { description: "Success: metrics, without an envelope.", headers, content };
  }
  return {
    description: result ? "Success." : "Success, without a result.",
    headers,
    content: { "application/json": { schema: result ? successEnvelope(result) : emptyEnvelope } },
  };
}

const ALSO_REJECTED =
  " A request with a query string or an incomplete body is also rejected, and one that a policy of the cluster denies.";

/** All responses of an operation, by status. */
export function responsesOf(operation: Operation): Record<string, ZodOpenApiResponseObject> {
  const { method, path, body, refusals } = operation;
  const invalid = path.includes("{") ? "An ID in the path is not a UUID." : "The request is not valid HTTP.";
  const all = { ...refusals, 400: `${refusals[400] ?? invalid}${method === "GET" ? "" : ALSO_REJECTED}` };
  const own = Object.entries(all).map(([status, when]) => [
    status,
    refusal(Number(status), when, status === "503" ? retryAfter : {}),
  ]);
  return {
    200: success(operation),
    401: unauthenticated,
    403: forbidden,
    503: unavailable,
    ...Object.fromEntries(own),
    // A DELETE ignores its body, but waits for its end.
    ...(method === "GET" ? {} : { 412: preconditionFailed, 413: tooLarge }),
    ...(body ? { 415: unsupported } : {}),
    429: tooMany,
    500: failed,
    default: anyOther,
  };
}
