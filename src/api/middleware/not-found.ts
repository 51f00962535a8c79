import type { RequestHandler } from "express";
import { type ApiError, apiError } from "../errors.ts";
import { METHODS } from "../openapi/operation.ts";

/** Responds with 404 if no route matches the path. */
export const notFound: RequestHandler = (_request, _response, next) => next(apiError("NoSuchPath"));

/** Returns the error for a method that Node's parser does not know. It is the same for every path. */
export function unknownMethodError(): ApiError {
  const allowed = allowHeader(METHODS);
  return apiError("MethodUnknown", allowed).with({ headers: { Allow: allowed } });
}

/** @param allowed the methods of the path, as the Allow header lists them */
export function methodNotAllowedError(allowed: string): Error {
  return apiError("MethodNotAllowed", allowed).with({ headers: { Allow: allowed } });
}

/** The last handler of each route. Responds with 405, and lists the methods of the route in `Allow`. */
export const methodNotAllowed: RequestHandler = (request, _response, next) => {
  const { methods }: { readonly methods: Readonly<Record<string, boolean>> } = request.route;
  const served = Object.keys(methods).filter((method) => method !== "_all");
  next(methodNotAllowedError(allowHeader(served.map((method) => method.toUpperCase()))));
};

/** The value of `Allow`. Express serves HEAD with the handler of GET. */
function allowHeader(methods: readonly string[]): string {
  const all = methods.includes("GET") ? [...methods, "HEAD"] : methods;
  return all.toSorted().join(", ");
}
