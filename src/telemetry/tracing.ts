import type { Logger } from "./log.ts";
import type { RecordSpan } from "./span.ts";

export interface TracingSettings {
  /** Base URL of a collector for OTLP over HTTP. Without it, tracing is off and its packages are not loaded. */
  readonly otlpEndpoint?: string | undefined;
}

export interface Tracing {
  /** Absent if tracing is off. */
  readonly recordSpan: RecordSpan | undefined;
  /** Sends the waiting spans. */
  end(): Promise<void>;
}

const NO_TRACING: Tracing = { recordSpan: undefined, end: async () => undefined };

/**
 * @param service name of the process in the tracing backend
 * @param instance unique to this process
 */
export async function startTracing(
  { otlpEndpoint }: TracingSettings,
  service: string,
  instance: string,
  log: Logger,
): Promise<Tracing> {
  if (otlpEndpoint === undefined) return NO_TRACING;
  const { SpanRecorder } = await import("./span-recorder.ts");
  const resource = { "service.name": service, "service.instance.id": instance };
  const recorder = new SpanRecorder({ endpoint: otlpEndpoint, resource, log });
  return { recordSpan: recorder.record, end: () => recorder.end() };
}
