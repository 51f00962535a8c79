import type { RequestHandler } from "express";
import createError from "http-errors";
import { authenticatedKey } from "./request-context.ts";

/** `admin` may do everything, `developer` may read, any other role nothing. */
export const authorize: RequestHandler = (request, _response, next) => {
  const { roles } = authenticatedKey(request);
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (roles.includes("admin") || (isRead && roles.includes("developer"))) next();
  else next(createError(403, "The roles of this key do not allow this operation."));
};
