import type { Request, RequestHandler } from "express";
import { apiError } from "../errors.ts";
import { requireAllowedIp } from "./client-ip.ts";
import { authenticatedKey } from "./request-context.ts";

/** The roles that may read, and those that may write. */
const READERS: readonly string[] = ["admin", "developer"];
const WRITERS: readonly string[] = ["admin"];

/** Rejects a request if no role of its key allows it. */
export const authorize: RequestHandler = (request, _response, next) => {
  requireRole(request);
  next();
};

/**
 * Repeats the checks of the key right before a write, and after a read from the cluster. The body of a request and its
 * turn in a write queue can take 50 s, in which the key can expire, or be revoked or changed.
 *
 * @throws ApiError 401, 403; 503 if the cached keys or records are stale
 */
export function reauthorize(request: Request): void {
  request.context.reauthenticate();
  requireAllowedIp(request.context);
  requireRole(request);
}

function requireRole(request: Request): void {
  const { roles } = authenticatedKey(request);
  const isRead = request.method === "GET" || request.method === "HEAD";
  const allowed = isRead ? READERS : WRITERS;
  if (!roles.some((role) => allowed.includes(role)))
    throw apiError("RoleMissing", allowed.join(" or "), roles);
}
