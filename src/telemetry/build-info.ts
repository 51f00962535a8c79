import { Gauge, type Registry } from "prom-client";
import packageJson from "../../package.json" with { type: "json" };

/** Registers a metric with the version of this program as a label, as other exporters do. */
export function buildInfo(registry: Registry): void {
  const gauge = new Gauge({
    name: "pipe_scaling_build_info",
    help: "Always 1; the label has the version of the process.",
    labelNames: ["version"],
    registers: [registry],
  });
  gauge.set({ version: packageJson.version }, 1);
}
