import type { ErrorRequestHandler } from "express";
import { ApiError, apiError } from "../errors.ts";
import { sendError } from "./respond.ts";

// Express recognizes an error handler by its four parameters.
export const errorHandler: ErrorRequestHandler = (error: unknown, { context }, response, _next) => {
  // Unexpected errors become a 500 without details.
  const expected = error instanceof ApiError ? error : apiError("Internal").with({ cause: error });
  context.isNotYet = expected.reason === "NoSizeYet";
  sendError(response, expected);
};
