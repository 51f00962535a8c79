import type { IncomingMessage } from "node:http";
import type { Request } from "express";
import { apiError } from "../errors.ts";
import { hasQuery } from "./request-target.ts";

/**
 * Rejects a write with a query string. No operation has query parameters, but a caller may expect `?dryRun=true` to
 * prevent the write. Reads ignore a query string.
 *
 * @throws ApiError 400
 */
export function refuseQuery(request: IncomingMessage): void {
  if (hasQuery(request)) throw apiError("QueryRefused");
}

/**
 * Rejects a write whose precondition is false (RFC 9110, section 13.2). Resources of this API have neither entity tags
 * nor modification dates, so If-Match is true only with `*`, "the resource exists", and If-None-Match is false only
 * with `*`; If-Unmodified-Since must be ignored (section 13.1.4). Call it after the organization and the service are
 * found. A member or a boost counts as existing.
 *
 * @throws ApiError 412
 */
export function requirePreconditions({ headers }: Pick<Request, "headers">): void {
  const { "if-match": ifMatch = "*", "if-none-match": ifNoneMatch } = headers;
  if (ifMatch !== "*") throw apiError("IfMatch");
  if (ifNoneMatch === "*") throw apiError("IfNoneMatch");
}
