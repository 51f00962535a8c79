import type { DropReason } from "../http/connections.ts";
import type { Logger } from "./log.ts";

/** Least time between two lines, so that an attack does not fill the log. */
const INTERVAL_MS = 10_000;

export interface DropLogOptions {
  readonly log: Logger;
  /** Milliseconds that never decrease. */
  readonly monotonic: () => number;
  /** Name of the port in the log line. */
  readonly listener: "api" | "operations";
}

/** Logs the first dropped connection, then at most one line every 10 s, with the number since the last line. */
export function dropLog({
  log,
  monotonic,
  listener,
}: DropLogOptions): (reason: DropReason, source: string) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let dropped = 0;
  return (reason, source) => {
    dropped += 1;
    const now = monotonic();
    if (now - loggedAt < INTERVAL_MS) return;
    log.warn({ listener, reason, source, dropped }, "connections dropped at their limit");
    loggedAt = now;
    dropped = 0;
  };
}
