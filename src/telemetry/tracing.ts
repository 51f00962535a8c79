import type { Logger } from "./log.ts";
import type { TellSpan } from "./span.ts";

export interface TracingSettings {
  /** Base URL of a collector that takes OTLP over HTTP; without one nothing is traced, and nothing of it loaded. */
  readonly otlpEndpoint?: string | undefined;
}

export interface Tracing {
  /** Absent where nothing is traced. */
  readonly tell: TellSpan | undefined;
  /** Sends what waits. */
  end(): Promise<void>;
}

const NO_TRACING: Tracing = { tell: undefined, end: async () => undefined };

/**
 * @param service the name by which traces are found
 * @param instance unique to this process
 */
export async function startTracing(
  { otlpEndpoint }: TracingSettings,
  service: string,
  instance: string,
  log: Logger,
): Promise<Tracing> {
  if (otlpEndpoint === undefined) return NO_TRACING;
  const { SpanSender } = await import("./span-sender.ts");
  return new SpanSender({
    endpoint: otlpEndpoint,
    resource: { "service.name": service, "service.instance.id": instance },
    onLost: (spans, err) => log.warn({ err, spans }, "spans were lost: the collector did not take them"),
  });
}
