import type { Request, RequestHandler } from "express";
import createError from "http-errors";
import { requireAllowedIp } from "./client-ip.ts";
import { authenticatedKey } from "./request-context.ts";

/** `admin` may do everything, `developer` may read, any other role nothing. */
export const authorize: RequestHandler = (request, _response, next) => {
  requireRole(request);
  next();
};

/**
 * Repeats the checks of the key right before a write. The body of a request and its turn in a write queue can take
 * 50 s, and a key that is revoked, changed or expires meanwhile must not write.
 *
 * @throws HttpError 401, 403; UnavailableError if the cached keys are stale
 */
export function reauthorize(request: Request): void {
  request.context.reauthenticate();
  requireAllowedIp(request.context);
  requireRole(request);
}

function requireRole(request: Request): void {
  const { roles } = authenticatedKey(request);
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (roles.includes("admin") || (isRead && roles.includes("developer"))) return;
  throw createError(403, "The roles of this key do not allow this operation.");
}
