import { type DestinationStream, type Logger, pino } from "pino";
import { messageOf } from "../kube/errors.ts";

export type { Logger } from "pino";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * Values of these fields are redacted. Only top-level fields are checked: a search at any depth would double the
 * cost of every line.
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
  // Objects that contain these fields.
  "headers",
  "req",
  "request",
  "res",
  "response",
];

/**
 * Returns a logger that writes one JSON object per line, to standard output by default. Callers never pass a credential
 * to it; the redaction is a second safeguard.
 */
export function createLogger(level: LogLevel, component: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: { component },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: NEVER_SHOWN, censor: "[redacted]" },
    serializers: { err: describeError },
  };
  return destination ? pino(options, destination) : pino(options);
}

/** Returns a function that writes to the destination of a logger. Each line must be JSON and end with a line feed. */
export function lineWriter(log: Logger): (line: string) => void {
  const destination: DestinationStream = Reflect.get(log, pino.symbols.streamSym);
  return (line) => destination.write(line);
}

/** The fields of an error that help to find its cause, without the request and response objects attached to it. */
function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { message: withoutCredentials(String(error)) };
  const { name, stack, cause } = error;
  return {
    type: name,
    message: withoutCredentials(messageOf(error)),
    stack: stack && withoutCredentials(stack),
    ...(cause instanceof Error ? { cause: withoutCredentials(`${cause.name}: ${messageOf(cause)}`) } : {}),
  };
}

/** Removes credentials that a library quotes in its error message. */
function withoutCredentials(text: string): string {
  return text.replace(/\b(Basic|Bearer) +[\w+/=.~-]+/gi, "$1 [redacted]");
}
