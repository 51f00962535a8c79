import { createHash } from "node:crypto";

/** A stretch of work that is over, as a part of the trace of one request. */
export interface Span {
  /** Of the request that all this is about. Without one that makes a trace, nothing is told. */
  readonly requestId: string;
  /** 16 hexadecimal digits; equal for the same work, so that who tells of it twice tells the same. */
  readonly id: string;
  /** `undefined` for the request itself. */
  readonly parentId: string | undefined;
  readonly kind: "server" | "internal";
  readonly name: string;
  /** By the wall clock, in milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** Why it failed, if it did. */
  readonly failure?: string | undefined;
}

/** Where spans go; must not throw. */
export type TellSpan = (span: Span) => void;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * The id of the trace of a request: the request id without its dashes, so that who has the one has the other.
 * `undefined` for a request id that is not one of ours, which somebody may have written into an annotation.
 */
export function traceIdOf(requestId: string): string | undefined {
  return UUID.test(requestId) ? requestId.replaceAll("-", "") : undefined;
}

/**
 * The id of the span of the request itself: the second half of its trace id, which both processes know without
 * telling each other. It is never all zeros, as no span's may be: it begins with a UUID's variant.
 */
export function requestSpanId(requestId: string): string {
  return requestId.replaceAll("-", "").slice(16);
}

/** The id of the span of some work in a request's trace, from what tells this work from all other. */
export function spanIdOf(requestId: string, work: string): string {
  const hash = createHash("sha256").update(`${requestId} ${work}`).digest("hex").slice(0, 16);
  return /^0+$/.test(hash) ? "1".padStart(16, "0") : hash;
}
