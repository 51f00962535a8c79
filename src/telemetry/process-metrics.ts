import { collectDefaultMetrics, type Registry } from "prom-client";

/**
 * Precision of the delay of the event loop. A timer with this interval measures it, so an idle process reports a delay
 * of this length. The default of 10 ms would make it wake up 100 times a second, which costs 0.7 % of a core.
 */
const EVENT_LOOP_PRECISION_MS = 100;

/** The metrics of Node and of the process, as prom-client names them. */
export function processMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
}
