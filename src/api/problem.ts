import { errorText } from "./error-text.ts";

/** What a client is to wait, in seconds, before it repeats a request that met a 503. */
const RETRY_AFTER_SECONDS = 5;
/** At most, whatever the cluster asks of us: clients sleep no longer. */
const MOST_RETRY_AFTER_SECONDS = 60;

/**
 * An answer other than 200. The message is the caller's, so it tells what to do and nothing of our inside;
 * what we want to know ourselves is the `cause`, which goes to the log.
 */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  /** Names and values in turn, as `writeHead` takes them. */
  readonly headers: readonly string[];

  constructor(
    status: number,
    message: string,
    { headers = [], cause }: { headers?: readonly string[]; cause?: unknown } = {},
  ) {
    super(errorText(message), { cause });
    this.status = status;
    this.headers = headers;
  }
}

/** One text for every way in which authentication fails: which one it was is nobody's business. */
export function unauthenticated(challenge: string): Problem {
  return new Problem(401, "Authentication failed: send the key's id and secret by HTTP Basic.", {
    headers: ["WWW-Authenticate", challenge],
  });
}

export function invalid(message: string, cause?: unknown): Problem {
  return new Problem(400, message, { cause });
}

export function forbidden(message: string): Problem {
  return new Problem(403, message);
}

export function notFound(message: string): Problem {
  return new Problem(404, message);
}

/** For a path of no route. */
export function nothingThere(): Problem {
  return notFound("There is nothing at this path.");
}

/** @param allowed the methods that the path allows, as the header has them */
export function methodNotAllowed(allowed: string): Problem {
  return new Problem(405, `This path allows only ${allowed}.`, { headers: ["Allow", allowed] });
}

/** Nothing that the caller did: the same request, later, may well succeed. */
export function unavailable(
  message: string,
  { retryAfterMs = RETRY_AFTER_SECONDS * 1000, cause }: { retryAfterMs?: number; cause?: unknown } = {},
): Problem {
  const seconds = Math.min(MOST_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(retryAfterMs / 1000)));
  return new Problem(503, message, { headers: ["Retry-After", String(seconds)], cause });
}

/** What a thrown value is to the caller. What was not foreseen is our fault, and no detail leaks. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(500, "Something went wrong on our side. Quote the request id when you report it.", {
    cause: error,
  });
}
