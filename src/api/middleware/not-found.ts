import type { RequestHandler } from "express";
import createError from "http-errors";

export function notFoundError(): Error {
  return createError(404, "There is nothing at this path.");
}

/** Responds with 404 if no route matches the path. */
export const notFound: RequestHandler = (_request, _response, next) => next(notFoundError());

/** @param allowed the methods of the path, as the Allow header lists them */
export function methodNotAllowedError(allowed: string): Error {
  return createError(405, `This path allows only ${allowed}.`, { headers: { Allow: allowed } });
}

/** The last handler of each route. Responds with 405, and lists the methods of the route in `Allow`. */
export const methodNotAllowed: RequestHandler = (request, _response, next) => {
  const { methods }: { readonly methods: Readonly<Record<string, boolean>> } = request.route;
  const served = Object.keys(methods).filter((method) => method !== "_all");
  const withHead = served.includes("get") ? [...served, "head"] : served;
  const allowed = withHead.map((method) => method.toUpperCase()).sort();
  next(methodNotAllowedError(allowed.join(", ")));
};
