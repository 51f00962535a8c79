import { collectDefaultMetrics, type Registry } from "prom-client";

/**
 * Interval of the timer that measures the event loop delay; an idle process reports a delay of this length. With the
 * default of 10 ms, the timer would wake up an idle process 100 times a second, which costs 0.7 % of a core.
 */
export const EVENT_LOOP_PRECISION_MS = 100;

/** A little less than the usual interval of scrapes, 30 s, so that a single scraper always gets new values. */
const LAG_PERIOD_MS = 29_000;

/** The gauge of prom-client whose `collect` sets all gauges of the event loop delay, and begins to measure again. */
const LAG = "nodejs_eventloop_lag_seconds";

/**
 * Gauges of prom-client whose names end in `_total`, which is the suffix of counters. Each repeats the sum of the gauge
 * without this suffix.
 */
const MISNAMED_GAUGES = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

/**
 * Registers the default metrics of prom-client about Node and the process.
 *
 * @param monotonic milliseconds that never decrease
 */
export function processMetrics(registry: Registry, monotonic = () => performance.now()): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS });
  for (const name of MISNAMED_GAUGES) registry.removeSingleMetric(name);
  shareLag(registry, monotonic);
}

/**
 * Keeps the delays of a period until the next one has ended. Otherwise each scrape would begin a period, and of several
 * scrapers, each would get only the delays since the scrape of another one.
 */
function shareLag(registry: Registry, monotonic: () => number): void {
  const lag = registry.getMetricsAsArray().find(({ name }) => name === LAG);
  if (!lag) return;
  const { collect } = lag;
  let begunAt = monotonic();
  lag.collect = () => {
    const now = monotonic();
    if (now - begunAt < LAG_PERIOD_MS) return;
    begunAt = now;
    return collect.call(lag);
  };
}
