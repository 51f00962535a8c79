import { type DestinationStream, type Logger, pino } from "pino";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * One JSON object a line on standard output. Nothing that could carry a credential is ever passed to it;
 * the redaction is a second line of defence, not the first.
 */
export function createLogger(level: LogLevel, component: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: { component },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: [
        "authorization",
        "*.authorization",
        "*.Authorization",
        "secret",
        "*.secret",
        "keySecret",
        "*.keySecret",
      ],
      censor: "[redacted]",
    },
    serializers: { err: describeError },
  };
  return destination ? pino(options, destination) : pino(options);
}

/** What went wrong and where, without the request and response objects that errors drag along. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) };
  return {
    type: error.name,
    message: error.message,
    stack: error.stack,
    ...(error.cause instanceof Error ? { cause: `${error.cause.name}: ${error.cause.message}` } : {}),
  };
}
