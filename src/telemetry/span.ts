import { createHash } from "node:crypto";

/** Finished work, as part of the trace of one request. */
export interface Span {
  /** The request that caused the work. A span whose request ID does not have the form of the API's is not recorded. */
  readonly requestId: string;
  /** 16 hexadecimal digits, derived from the work: if the work is recorded twice, a backend sees the same span. */
  readonly id: string;
  /** `undefined` for the span of the request itself. */
  readonly parentId: string | undefined;
  readonly kind: "server" | "internal";
  readonly name: string;
  /** Wall clock time, in milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The reason if the work failed. */
  readonly failure?: string | undefined;
}

/** Records a span for export; must not wait and must not throw. */
export type RecordSpan = (span: Span) => void;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * The trace ID of a request: the request ID without its dashes, so that each can be derived from the other. `undefined`
 * for any other text, which someone may have written into an annotation.
 */
export function traceIdOf(requestId: string): string | undefined {
  return UUID.test(requestId) ? requestId.replaceAll("-", "") : undefined;
}

/**
 * The ID of the span of the request itself: the second half of its trace ID. The API and the controller both derive
 * it from the request ID. It is never all zeros, which would be invalid: it starts with the variant of a UUID.
 */
export function requestSpanId(requestId: string): string {
  return requestId.replaceAll("-", "").slice(16);
}

/** The ID of the span of other work in the trace of a request; `work` identifies the work within the trace. */
export function spanIdOf(requestId: string, work: string): string {
  const hash = createHash("sha256").update(`${requestId} ${work}`).digest("hex").slice(0, 16);
  return /^0+$/.test(hash) ? "1".padStart(16, "0") : hash;
}
