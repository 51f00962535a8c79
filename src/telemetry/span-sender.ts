import { setTimeout as delay } from "node:timers/promises";
import { type Attributes, type HrTime, SpanKind, SpanStatusCode, TraceFlags } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, type ReadableSpan, type SpanExporter } from "@opentelemetry/sdk-trace";
import { type Span, type TellSpan, traceIdOf } from "./span.ts";

export interface SpanSenderOptions {
  /** Base URL of a collector that takes OTLP over HTTP; `/v1/traces` is added to it. */
  readonly endpoint: string;
  /** Attributes of this process. */
  readonly resource: Attributes;
  /** Spans that could not be delivered; they are not tried again. */
  readonly onLost: (spans: number, error: unknown) => void;
}

/** Spans wait so long for others to go with. */
const BATCH_MS = 1000;
const BATCH_MOST = 512;
/** Beyond this many spans that wait, new ones are dropped: a collector that is slow costs no memory. */
const WAITING_MOST = 4096;
const CALL_MS = 2000;
/** A process that ends waits no longer for its last spans. */
const ENDING_MS = 3000;

/**
 * Sends spans to a collector, many at a time. Whatever the collector does, telling a span takes no time and
 * never fails.
 */
export class SpanSender {
  readonly #processor: BatchSpanProcessor;
  readonly #resource: ReadableSpan["resource"];

  constructor({ endpoint, resource, onLost }: SpanSenderOptions) {
    const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
    // Its own timeout begins only with the connection.
    const httpAgentOptions = { keepAlive: true, timeout: CALL_MS };
    const exporter = new OTLPTraceExporter({ url, timeoutMillis: CALL_MS, httpAgentOptions });
    this.#resource = resourceFromAttributes(resource);
    this.#processor = new BatchSpanProcessor({
      exporter: telling(exporter, onLost),
      scheduledDelayMillis: BATCH_MS,
      maxExportBatchSize: BATCH_MOST,
      maxQueueSize: WAITING_MOST,
      exportTimeoutMillis: 2 * CALL_MS,
    });
  }

  readonly tell: TellSpan = (span) => {
    const traceId = traceIdOf(span.requestId);
    // Times come from annotations, which somebody may have edited: one that is none would spoil the others too.
    if (traceId === undefined || !isTime(span.startMs) || !isTime(span.endMs)) return;
    this.#processor.onEnd(readable(span, traceId, this.#resource));
  };

  /** Sends what waits, and resolves when it is sent, or given up after a few seconds. */
  async end(): Promise<void> {
    const ending = new AbortController();
    const { signal } = ending;
    const givenUp = delay(ENDING_MS, undefined, { signal }).catch(() => undefined);
    // What is lost has been told of.
    const sent = this.#processor.shutdown().catch(() => undefined);
    await Promise.race([sent, givenUp]);
    ending.abort();
  }
}

/** The processor tells nobody of failures but a logger that is global to the process. */
function telling(exporter: SpanExporter, onLost: SpanSenderOptions["onLost"]): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.error) onLost(spans.length, result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

function readable(span: Span, traceId: string, resource: ReadableSpan["resource"]): ReadableSpan {
  const context = (spanId: string) => ({ traceId, spanId, traceFlags: TraceFlags.SAMPLED });
  const endMs = Math.max(span.startMs, span.endMs);
  return {
    name: span.name,
    kind: span.kind === "server" ? SpanKind.SERVER : SpanKind.INTERNAL,
    spanContext: () => context(span.id),
    ...(span.parentId === undefined ? {} : { parentSpanContext: context(span.parentId) }),
    startTime: hrTime(span.startMs),
    endTime: hrTime(endMs),
    duration: hrTime(endMs - span.startMs),
    status:
      span.failure === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: span.failure },
    attributes: { ...span.attributes, "pipe_scaling.request_id": span.requestId },
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: { name: "pipe-scaling-operator" },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Since 1970, in milliseconds. */
function isTime(ms: number): boolean {
  return Number.isFinite(ms) && ms >= 0;
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
