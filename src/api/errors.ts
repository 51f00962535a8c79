/**
 * Why a request cannot be served, in terms of the domain. Services and caches throw these; only
 * middleware/error-handler.ts knows which HTTP status each one becomes. The message is written for the caller,
 * so it says what to do and reveals nothing of the cluster; details for the log are the `cause`.
 */
export abstract class ApiError extends Error {}

/** The object does not exist, or belongs to another organization: the caller cannot tell which. */
export class NotFoundError extends ApiError {
  override readonly name = "NotFoundError";
}

/** The request contradicts a rule, so repeating it does not help. Nothing has changed. */
export class InvalidRequestError extends ApiError {
  override readonly name = "InvalidRequestError";
}

/** The state of the object forbids the change until somebody changes that state. Nothing has changed. */
export class ConflictError extends ApiError {
  override readonly name = "ConflictError";
}

export interface UnavailableOptions {
  /** Suggested delay before the caller repeats the request. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/** Not the caller's fault: the same request may succeed later. The outcome of a write is unknown, and it is safe to repeat. */
export class UnavailableError extends ApiError {
  override readonly name = "UnavailableError";
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { retryAfterMs, cause }: UnavailableOptions = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}
