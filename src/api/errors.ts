/**
 * Domain errors of requests. Services and caches throw them; only middleware/error-handler.ts maps them to HTTP
 * statuses. The message is for the caller: it tells what to do and reveals nothing about the cluster. Details for the
 * log are in the `cause`.
 */
export abstract class ApiError extends Error {}

/** The object does not exist or belongs to another organization; the caller cannot distinguish the two. */
export class NotFoundError extends ApiError {
  override readonly name = "NotFoundError";
}

/** The request contradicts a rule, so repeating it does not help. Nothing has changed. */
export class InvalidRequestError extends ApiError {
  override readonly name = "InvalidRequestError";
}

/** The state of the object does not allow the change until someone changes that state. Nothing has changed. */
export class ConflictError extends ApiError {
  override readonly name = "ConflictError";
}

export interface UnavailableOptions {
  /** Suggested delay before the caller repeats the request. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Not the caller's fault: the same request may succeed later. The outcome of a write is unknown, and it is safe to
 * repeat.
 */
export class UnavailableError extends ApiError {
  override readonly name = "UnavailableError";
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { retryAfterMs, cause }: UnavailableOptions = {}) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

/** Not a failure, unlike other errors with the status 503: callers wait until something exists for the first time. */
export class NotYetError extends UnavailableError {}
