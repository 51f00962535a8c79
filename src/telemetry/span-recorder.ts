import { setTimeout as delay } from "node:timers/promises";
import {
  type Attributes,
  type Context,
  DiagLogLevel,
  diag,
  INVALID_SPANID,
  INVALID_TRACEID,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  type IdGenerator,
  type SpanExporter,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "./log.ts";
import { type RecordSpan, traceIdOf } from "./span.ts";

export interface SpanRecorderOptions {
  /** Base URL of a collector that accepts OTLP over HTTP; `/v1/traces` is added to it. */
  readonly endpoint: string;
  /** Attributes of this process. */
  readonly resource: Attributes;
  /** Reports spans that could not be delivered. */
  readonly log: Logger;
}

/** Maximum time that a span waits for its batch to fill. */
const BATCH_MS = 1000;
const BATCH_SPANS = 512;
/** If more spans wait, new ones are dropped: a slow collector must not cost memory. */
const MAX_WAITING_SPANS = 4096;
const EXPORT_MS = 2000;
/** Maximum time that the shutdown waits for the last spans. */
const SHUTDOWN_MS = 3000;

/** Sends spans to a collector, in batches. Recording a span never waits and never fails. */
export class SpanRecorder {
  readonly #ids = new AssignedIds();
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;

  constructor({ endpoint, resource, log }: SpanRecorderOptions) {
    logWarnings(log);
    const url = `${endpoint.replace(/\/+$/, "")}/v1/traces`;
    // The exporter's own timeout starts only when the connection is open.
    const httpAgentOptions = { keepAlive: true, timeout: EXPORT_MS };
    const exporter = new OTLPTraceExporter({ url, timeoutMillis: EXPORT_MS, httpAgentOptions });
    const processor = new BatchSpanProcessor({
      exporter: withLogOfFailures(exporter, log),
      scheduledDelayMillis: BATCH_MS,
      maxExportBatchSize: BATCH_SPANS,
      maxQueueSize: MAX_WAITING_SPANS,
      exportTimeoutMillis: 2 * EXPORT_MS,
    });
    this.#provider = new TracerProvider({
      resource: resourceFromAttributes(resource),
      idGenerator: this.#ids,
      spanProcessors: [processor],
    });
    this.#tracer = this.#provider.getTracer("pipe-scaling-operator");
  }

  readonly record: RecordSpan = ({
    requestId,
    id,
    parentId,
    name,
    kind,
    startMs,
    endMs,
    attributes,
    failure,
  }) => {
    const traceId = traceIdOf(requestId);
    if (traceId === undefined || !isTime(startMs) || !isTime(endMs)) return;
    this.#ids.assign(traceId, id);
    const span = this.#tracer.startSpan(
      name,
      {
        kind: kind === "server" ? SpanKind.SERVER : SpanKind.INTERNAL,
        startTime: startMs,
        attributes: { ...attributes, "pipe_scaling.request_id": requestId },
      },
      contextOf(traceId, parentId),
    );
    if (failure !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failure });
    // The clocks of two processes can differ.
    span.end(Math.max(startMs, endMs));
  };

  /** Sends the waiting spans. Resolves when they are sent, or after 3 s. */
  async end(): Promise<void> {
    const ending = new AbortController();
    const { signal } = ending;
    const timeout = delay(SHUTDOWN_MS, undefined, { signal }).catch(() => undefined);
    // The exporter logs failures.
    const shutdown = this.#provider.shutdown().catch(() => undefined);
    await Promise.race([shutdown, timeout]);
    ending.abort();
  }
}

/** Provides the IDs of the next span; the SDK requests them synchronously in `startSpan`. */
class AssignedIds implements IdGenerator {
  #traceId = INVALID_TRACEID;
  #spanId = INVALID_SPANID;

  assign(traceId: string, spanId: string): void {
    this.#traceId = traceId;
    this.#spanId = spanId;
  }

  generateTraceId(): string {
    return this.#traceId;
  }

  generateSpanId(): string {
    return this.#spanId;
  }
}

/** The parent may have been recorded by another process, so the SDK gets it as a remote one. */
function contextOf(traceId: string, parentId: string | undefined): Context {
  if (parentId === undefined) return ROOT_CONTEXT;
  const parent = { traceId, spanId: parentId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, parent);
}

/** OTLP represents times as nanoseconds in 64 bits, which end in the year 2554. */
const LAST_TIME_MS = 2 ** 64 / 1e6;

/**
 * Returns whether a number is a time in milliseconds since 1970. Times come from annotations, which someone may have
 * edited; an invalid one would make the whole batch fail. The SDK treats numbers below the uptime as relative times.
 */
function isTime(ms: number): boolean {
  return ms > performance.now() && ms < LAST_TIME_MS;
}

function withLogOfFailures(exporter: SpanExporter, log: Logger): SpanExporter {
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        const { error: err } = result;
        if (err) log.warn({ err, spans: spans.length }, "spans were lost: the collector did not accept them");
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
}

/**
 * The SDK warns about dropped spans, and about spans that the collector rejects although it accepts the rest of the
 * batch. Its errors are failed exports, which the exporter logs.
 */
function logWarnings(log: Logger): void {
  const ignore = () => undefined;
  diag.setLogger(
    {
      warn: (...parts: unknown[]) =>
        log.warn({ detail: parts.map(String).join(" ") }, "warning of OpenTelemetry"),
      error: ignore,
      info: ignore,
      debug: ignore,
      verbose: ignore,
    },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
