import { Registry } from "prom-client";
import * as z from "zod";
import { ApiMetrics } from "../../../src/api/metrics.ts";
import { labelNamesOf, SERVICE_METRICS } from "../../../src/api/resources/prometheus/exposition.ts";
import { ControllerMetrics, unreadableNamespaces } from "../../../src/controller/report/metrics.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { buildInfo } from "../../../src/telemetry/build-info.ts";
import { clusterMetrics } from "../../../src/telemetry/cluster-metrics.ts";
import { processMetrics } from "../../../src/telemetry/process-metrics.ts";
import { RuntimeMetrics } from "../../../src/telemetry/runtime-metrics.ts";
import { code, sections, table } from "./markdown.ts";

/** A metric of prom-client, whose own type omits the labels. */
const metric = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(["counter", "gauge", "histogram", "summary"]),
  labelNames: z.array(z.string()),
});
type Metric = z.output<typeof metric>;

/** All metrics by process. A test compares them with those of the real processes. */
export function allMetrics() {
  return {
    api: metricsOf((registry) => new ApiMetrics(registry).watchCaches(() => [])),
    controller: metricsOf((registry) => {
      new ControllerMetrics(registry, systemClock);
      unreadableNamespaces(registry, 0);
      const runtime = new RuntimeMetrics({ registry, name: "pipescaling", concurrency: 1 });
      const leader = { isLeader: true };
      runtime.watchQueue({ depth: 0, underWay: () => [] }, leader);
      runtime.watchLeader(leader);
      runtime.watchAges(() => new Map());
    }),
    both: metricsOf((registry) => {
      buildInfo(registry);
      clusterMetrics(registry);
    }),
    node: metricsOf(processMetrics),
    customers: SERVICE_METRICS.map((each): Metric => {
      const { name, help } = each;
      return { name, help, type: "gauge", labelNames: [...labelNamesOf(each)] };
    }),
  };
}

function metricsOf(fill: (registry: Registry) => void): readonly Metric[] {
  const registry = new Registry();
  fill(registry);
  return z.array(metric).parse(registry.getMetricsAsArray());
}

/** Returns the names of the series of a metric. */
export function seriesOf({ name, type }: Metric): readonly string[] {
  return type === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => `${name}${suffix}`) : [name];
}

export function metricsPage(): string {
  const { api, controller, both, node, customers } = allMetrics();
  return sections(
    "# Metrics",
    "Each process serves its metrics at `/metrics` of its operations port. [Scrape the metrics](../how-to/monitor.md) shows how Prometheus gets them; the label `container` of a series is `api` or `controller`. Every label has a bounded set of values, and no value is text from a caller.",
    "A histogram has three series: `…_bucket` with the label `le`, `…_sum` and `…_count`. For examples of their use, see the dashboard (`monitoring.dashboard.enabled`) and the alerts, each of which has [a runbook](../runbooks).",
    "## API",
    rowsOf(api),
    "## Controller",
    "Metrics that start with `workqueue_`, `controller_runtime_` and `leader_election_` have the names and labels of controller-runtime, so dashboards for controller-runtime also work for this controller.",
    rowsOf(controller),
    "## Both processes",
    rowsOf(both),
    "## Node.js, both processes",
    "A timer measures the delays of the event loop every 100 ms, and their values include this interval: in an idle process, the minimum, mean and percentiles are 0.1 s. The values are those of the last period of about 30 s, or of the time between two scrapes if it is longer, and the same for all scrapers; they are 0 until the first period has ended.",
    rowsOf(node),
    "## For customers",
    "`GET /v1/organizations/{organizationId}/prometheus` of [the API](http.md), and the same path of a service, return these metrics for a customer's own Prometheus. They are on the public port, and need an API key. [Scrape your services](../how-to/scrape-your-services.md) has the configuration.",
    rowsOf(customers),
  );
}

function rowsOf(metrics: readonly Metric[]): string {
  const rows = metrics.map(({ name, type, labelNames, help }) => [
    code(name),
    type,
    labelNames.map(code).join(", "),
    help,
  ]);
  return table(["metric", "type", "labels", "description"], rows);
}
