import { collectDefaultMetrics, type Registry } from "prom-client";

/**
 * Interval of the timer that measures the event loop delay; an idle process reports a delay of this length. With the
 * default of 10 ms, the timer would wake up an idle process 100 times a second, which costs 0.7 % of a core.
 */
const EVENT_LOOP_PRECISION_MS = 100;

/** Registers the default metrics of prom-client about Node and the process. */
export function processMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
}
