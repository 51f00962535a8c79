import { ERRORS, type ErrorFacts, type ErrorReason } from "./error-table.ts";

/** Suggested wait before a caller repeats a request that got a 503, unless the cluster suggests another one. */
const RETRY_AFTER_MS = 5000;
/** Longest wait that is suggested, because existing clients of the published contract do not wait longer. */
const MAX_RETRY_AFTER_MS = 60_000;

interface ErrorDetails {
  /** For the log. */
  readonly cause?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Suggested wait before the caller repeats the request. */
  readonly retryAfterMs?: number | undefined;
}

/** The reason why a request is not served, and the response to it: status, sentence and headers. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly reason: ErrorReason;
  readonly status: number;
  headers: Readonly<Record<string, string>> = {};

  constructor(reason: ErrorReason, status: number, sentence: string) {
    super(sentence);
    this.reason = reason;
    this.status = status;
    if (status === 503) this.with({ retryAfterMs: RETRY_AFTER_MS });
  }

  /** Adds a cause for the log, or headers of the response. */
  with({ cause, headers = {}, retryAfterMs }: ErrorDetails): this {
    if (cause !== undefined) this.cause = cause;
    const wait = retryAfterMs === undefined ? {} : { "Retry-After": retryAfter(retryAfterMs) };
    this.headers = { ...this.headers, ...wait, ...headers };
    return this;
  }
}

const TABLE: { readonly [R in ErrorReason]: Row<ErrorFacts[R]> } = ERRORS;

interface Row<Facts extends readonly unknown[]> {
  readonly status: number;
  readonly sentence: (...facts: Facts) => string;
}

/** The error with this reason in the table of errors. */
export function apiError<R extends ErrorReason>(reason: R, ...facts: ErrorFacts[R]): ApiError {
  const { status, sentence } = TABLE[reason];
  return new ApiError(reason, status, sentence(...facts));
}

/** True if the cause may be the state of an object, which a cache may show as it was a moment ago. */
export function isAboutState(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.reason === "BeingSetUp" || [400, 404, 409].includes(error.status);
}

/** True if a write may have been made. */
export function isNotConfirmed(error: unknown): boolean {
  return error instanceof ApiError && ["NotConfirmed", "EndNotConfirmed"].includes(error.reason);
}

function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(Math.min(ms, MAX_RETRY_AFTER_MS) / 1000)));
}
