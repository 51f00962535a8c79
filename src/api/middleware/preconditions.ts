import type { IncomingMessage } from "node:http";
import type { Request } from "express";
import createError from "http-errors";
import { InvalidRequestError } from "../errors.ts";
import { hasQuery } from "./request-target.ts";

/**
 * Rejects a write with a query string. No operation has one, so a caller who expects `?dryRun=true` to prevent the write
 * must not cause it. Reads ignore a query string.
 *
 * @throws InvalidRequestError
 */
export function refuseQuery(request: IncomingMessage): void {
  if (!hasQuery(request)) return;
  throw new InvalidRequestError(
    'The request must not have a query string, because no operation has one. Nothing has changed: repeat it without the part from the "?" on.',
  );
}

/**
 * Rejects a write whose precondition is false (RFC 9110, section 13.2). Resources of this API have neither entity tags
 * nor modification dates, so only `*`, "the resource exists", can be true; If-Unmodified-Since must be ignored
 * (section 13.1.4). A handler calls it after it found the resource, which therefore exists.
 *
 * @throws HttpError 412
 */
export function requirePreconditions({ headers }: Pick<Request, "headers">): void {
  const { "if-match": ifMatch = "*", "if-none-match": ifNoneMatch } = headers;
  if (ifMatch !== "*") {
    throw createError(
      412,
      "If-Match cannot be met, because resources of this API have no entity tags: omit it, or send If-Match: *.",
    );
  }
  if (ifNoneMatch === "*") {
    throw createError(412, "If-None-Match: * cannot be met, because the resource exists: omit it.");
  }
}
