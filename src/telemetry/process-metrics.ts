import { collectDefaultMetrics, type Registry } from "prom-client";

/**
 * Interval of the timer that measures the event loop delay; an idle process reports a delay of this length. With the
 * default of 10 ms, the timer would wake up an idle process 100 times a second, which costs 0.7 % of a core.
 */
export const EVENT_LOOP_PRECISION_MS = 100;

/**
 * Gauges of prom-client whose names end in `_total`, which is the suffix of counters. Each repeats the sum of the gauge
 * without this suffix.
 */
const MISNAMED_GAUGES = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

/** Registers the default metrics of prom-client about Node and the process. */
export function processMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  for (const name of MISNAMED_GAUGES) registry.removeSingleMetric(name);
}
