import type { ErrorRequestHandler } from "express";
import createError, { type HttpError, isHttpError } from "http-errors";
import {
  ConflictError,
  InvalidRequestError,
  NotFoundError,
  NotYetError,
  UnavailableError,
} from "../errors.ts";
import { sendError } from "./respond.ts";

/** Suggested wait, in seconds, before a client repeats a request that got a 503. */
const RETRY_AFTER_SECONDS = 5;
/** Clients of this family of APIs do not wait longer than this, even if the cluster requests a longer delay. */
const MAX_RETRY_AFTER_SECONDS = 60;

/** The only mapping from errors to HTTP statuses. Unexpected errors become a 500 without details. */
export function toHttpError(error: unknown): HttpError {
  if (isHttpError(error)) return error;
  if (error instanceof NotFoundError) return createError(404, error.message);
  if (error instanceof InvalidRequestError) return createError(400, error.message, causeOf(error));
  if (error instanceof ConflictError) return createError(409, error.message);
  if (error instanceof UnavailableError) {
    const headers = { "Retry-After": retryAfter(error.retryAfterMs) };
    return createError(503, error.message, { headers, ...causeOf(error) });
  }
  return createError(500, "Something went wrong on our side. Quote the request ID when you report it.", {
    cause: error,
  });
}

function causeOf({ cause }: Error): { cause?: unknown } {
  return cause === undefined ? {} : { cause };
}

function retryAfter(ms = RETRY_AFTER_SECONDS * 1000): string {
  return String(Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(ms / 1000))));
}

// Express recognizes an error handler by its four parameters.
export const errorHandler: ErrorRequestHandler = (error, { context }, response, _next) => {
  context.isNotYet = error instanceof NotYetError;
  sendError(response, toHttpError(error));
};
