import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { ApiMetrics } from "../metrics.ts";
import type { DropReason } from "./connections.ts";

/** At most one line in this time, so that an attack does not fill the log. */
const INTERVAL_MS = 10_000;

export interface DropLogOptions {
  readonly log: Logger;
  readonly clock: Pick<Clock, "monotonic">;
  readonly metrics: Pick<ApiMetrics, "connectionDropped">;
}

/** Counts dropped connections, and logs the first one and then at most one line in 10 s with the number since. */
export function dropLog({
  log,
  clock,
  metrics,
}: DropLogOptions): (reason: DropReason, source: string) => void {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let dropped = 0;
  return (reason, source) => {
    metrics.connectionDropped(reason);
    dropped += 1;
    const now = clock.monotonic();
    if (now - loggedAt < INTERVAL_MS) return;
    log.warn({ reason, source, dropped }, "connections dropped at their limit");
    loggedAt = now;
    dropped = 0;
  };
}
