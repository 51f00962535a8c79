import { type DestinationStream, type Logger, pino } from "pino";
import { LogDestination } from "./log-destination.ts";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Whatever is passed under these names is not shown. They are top-level ones: to look for a name at any depth
 * would double the cost of every line, while these cost a line that has none of them nothing.
 */
const NEVER_SHOWN = [
  "authorization",
  "Authorization",
  "credentials",
  "secret",
  "keyId",
  "keySecret",
  "password",
  "token",
  // They have the above inside.
  "headers",
  "req",
  "request",
  "res",
  "response",
];

/**
 * One JSON object a line, on standard output unless told otherwise. Nothing that could carry a credential is ever passed to it; the redaction is a
 * second line of defence, not the first.
 */
export function createLogger(level: LogLevel, component: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: { component },
    timestamp: isoTime(),
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: NEVER_SHOWN, censor: "[redacted]" },
    serializers: { err: describeError },
  };
  return destination ? pino(options, destination) : pino(options);
}

/** As pino's own, but the same text for all lines of a millisecond: formatting a date took a quarter of a line. */
function isoTime(): () => string {
  let formattedAt = Number.NaN;
  let text = "";
  return () => {
    const now = Date.now();
    if (now !== formattedAt) {
      formattedAt = now;
      text = `,"time":"${new Date(now).toISOString()}"`;
    }
    return text;
  };
}

export interface ProcessLog {
  readonly log: Logger;
  /** Writes out what still waits. The last that the process does. */
  readonly end: () => void;
}

/** The log of a long-lived process, on its standard output. */
export function createProcessLog(level: LogLevel, component: string): ProcessLog {
  const { stdout } = process;
  // To have asked for the stream makes a pipe non-blocking. Whether it can be written the destination sees itself.
  stdout.on("error", () => undefined);
  const destination = new LogDestination({
    fd: stdout.fd,
    onDropped: (lines) => log.warn({ lines }, "lines of this log were dropped: nobody was reading it"),
  });
  const log = createLogger(level, component, destination);
  return { log, end: () => destination.end() };
}

/** What went wrong and where, without the request and response objects that errors drag along. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: withoutCredentials(String(error)) };
  const { name, message, stack, cause } = error;
  return {
    type: name,
    message: withoutCredentials(message),
    stack: stack && withoutCredentials(stack),
    ...(cause instanceof Error ? { cause: withoutCredentials(`${cause.name}: ${cause.message}`) } : {}),
  };
}

/** Libraries quote in their messages what they were given. */
function withoutCredentials(text: string): string {
  return text.replace(/\b(Basic|Bearer) +[\w+/=.~-]+/gi, "$1 [redacted]");
}
