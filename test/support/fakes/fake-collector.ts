import { startFakeHttpServer } from "./fake-http-server.ts";

/** A span in OTLP (JSON over HTTP), with the name of the service that sent it. */
export interface CollectedSpan {
  readonly service: unknown;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly flags: number;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code?: number; readonly message?: string };
}

export interface FakeCollector {
  readonly url: string;
  readonly authorizations: readonly (string | undefined)[];
  /** The spans received so far, in order. */
  readonly spans: readonly CollectedSpan[];
}

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface WireSpan extends Omit<CollectedSpan, "service" | "attributes" | "startMs" | "endMs"> {
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
}

interface WireRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

/** Accepts traces at `/v1/traces`, or responds with another status or body; it stops at the end of the test. */
export async function startFakeCollector(status = 200, response: object = {}): Promise<FakeCollector> {
  const spans: CollectedSpan[] = [];
  const { url, requests } = await startFakeHttpServer(({ path, contentType, body }) => {
    if (path !== "/v1/traces" || contentType !== "application/json") return { status: 404, body: {} };
    if (status === 200) spans.push(...spansOf(JSON.parse(JSON.stringify(body))));
    return { status, body: response };
  });
  return {
    url,
    spans,
    get authorizations() {
      return requests.map(({ authorization }) => authorization);
    },
  };
}

function spansOf({ resourceSpans }: WireRequest): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map(({ startTimeUnixNano, endTimeUnixNano, attributes, ...span }) => ({
        ...span,
        service: plain(resource.attributes)["service.name"],
        startMs: milliseconds(startTimeUnixNano),
        endMs: milliseconds(endTimeUnixNano),
        attributes: plain(attributes),
      })),
  );
}

function milliseconds(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1_000_000n);
}

function plain(attributes: readonly Attribute[]): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
}
