import { collectDefaultMetrics, Registry } from "prom-client";
import * as z from "zod";
import { ApiMetrics } from "../../../src/api/metrics.ts";
import { ControllerMetrics } from "../../../src/controller/report/metrics.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { clusterMetrics } from "../../../src/telemetry/cluster-metrics.ts";
import { RuntimeMetrics } from "../../../src/telemetry/runtime-metrics.ts";
import { code, sections, table } from "./markdown.ts";

/** What prom-client knows of a metric; its own type leaves the labels out. */
const metric = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(["counter", "gauge", "histogram", "summary"]),
  labelNames: z.array(z.string()),
});
type Metric = z.output<typeof metric>;

/** All metrics by who has them. That a process has just these is tested with the real ones. */
export function allMetrics() {
  return {
    api: metricsOf((registry) => new ApiMetrics(registry).watchCaches(() => [])),
    controller: metricsOf((registry) => {
      new ControllerMetrics(registry, systemClock);
      const runtime = new RuntimeMetrics({ registry, name: "pipescaling", concurrency: 1 });
      runtime.watchQueue({ depth: 0, underWay: () => [] });
      runtime.watchLeader({ isLeader: true });
      runtime.watchAges(() => new Map());
    }),
    both: metricsOf((registry) => clusterMetrics(registry)),
    node: metricsOf((register) => collectDefaultMetrics({ register })),
  };
}

function metricsOf(fill: (registry: Registry) => void): readonly Metric[] {
  const registry = new Registry();
  fill(registry);
  return z.array(metric).parse(registry.getMetricsAsArray());
}

/** Names of its samples. */
export function seriesOf({ name, type }: Metric): readonly string[] {
  return type === "histogram" ? ["_bucket", "_sum", "_count"].map((suffix) => `${name}${suffix}`) : [name];
}

export function metricsPage(): string {
  const { api, controller, both, node } = allMetrics();
  return sections(
    "# Metrics",
    "Each process has them at `/metrics` of its operations port. With `monitoring.serviceMonitor.enabled` Prometheus finds both; their series are then told apart by the label `container`, which is `api` or `controller`. Each label has a bounded set of values, and none of them is a caller's own text.",
    "A histogram named here is three series: `…_bucket`, with the label `le`, `…_sum` and `…_count`. What they are good for together is in the dashboard (`monitoring.dashboard.enabled`), and in the alerts, each of which has [a runbook](../runbooks).",
    "## Of the API",
    rowsOf(api),
    "## Of the controller",
    "Names and labels that begin with `workqueue_`, `controller_runtime_` and `leader_election_` are those that any controller made with controller-runtime has, so that dashboards made for such show this one too.",
    rowsOf(controller),
    "## Of both",
    rowsOf(both),
    "## Of Node.js, in both",
    rowsOf(node),
  );
}

function rowsOf(metrics: readonly Metric[]): string {
  const rows = metrics.map(({ name, type, labelNames, help }) => [
    code(name),
    type,
    labelNames.map(code).join(", "),
    help,
  ]);
  return table(["metric", "type", "labels", "what it tells"], rows);
}
