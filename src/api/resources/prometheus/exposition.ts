import { computeUnits } from "../../../domain/compute-units.ts";
import type { Service } from "../../../records/service.ts";
import { PROGRESS_STATES, type ProgressState } from "../../cluster/progress.ts";
import { atTime, type PipeScalingView } from "../../cluster/views.ts";

/** The scaling of a service at the time of the scrape: during a boost, the progress is that of the boost. */
type ScalingAt = Pick<PipeScalingView, "effective" | "replicas" | "progress">;

/** A gauge of a service. */
interface ServiceMetric {
  readonly name: string;
  readonly help: string;
  /** Has a series for each state, of which one is 1. */
  readonly byState?: true;
  /** `undefined` while the value is not known. */
  readonly value: (scaling: ScalingAt, state: ProgressState) => number | undefined;
}

export const SERVICE_METRICS: readonly ServiceMetric[] = [
  {
    name: "pipe_scaling_service_desired_cpu_cores",
    help: "CPU of each replica that every pipe of the service should have, in cores.",
    value: ({ progress }) => progress.desired && progress.desired.size.cpuMillicores / 1000,
  },
  {
    name: "pipe_scaling_service_desired_memory_gib",
    help: "Memory of each replica that every pipe of the service should have, in GiB.",
    value: ({ progress }) => progress.desired?.size.memoryGib,
  },
  {
    name: "pipe_scaling_service_effective_cpu_cores",
    help: "CPU of each replica in the last size that all pipes of the service had at the same time, in cores.",
    value: ({ effective }) => effective && effective.cpuMillicores / 1000,
  },
  {
    name: "pipe_scaling_service_effective_memory_gib",
    help: "Memory of each replica in the last size that all pipes of the service had at the same time, in GiB.",
    value: ({ effective }) => effective?.memoryGib,
  },
  {
    name: "pipe_scaling_service_pipes",
    help: "Database pipes of the service.",
    value: ({ progress }) => progress.pipes?.total,
  },
  {
    name: "pipe_scaling_service_updated_pipes",
    help: "Pipes of the service that run the desired size.",
    value: ({ progress }) => progress.pipes?.updated,
  },
  {
    name: "pipe_scaling_service_failed_pipes",
    help: "Pipes of the service that failed to reach the desired size, at most 20.",
    value: ({ progress }) => progress.failures.length,
  },
  {
    name: "pipe_scaling_service_state",
    help: "1 for the state of the service, 0 for the other states: propagating, scaled, failed or suspended.",
    byState: true,
    value: ({ progress }, state) => Number(progress.state === state),
  },
  {
    name: "pipe_scaling_service_compute_units",
    help: "Compute units of the service at the desired size: one unit is 2 cores with 8 GiB.",
    value: ({ progress, replicas }) =>
      progress.desired && replicas !== undefined ? computeUnits(progress.desired.size, replicas) : undefined,
  },
];

export function labelNamesOf({ byState }: ServiceMetric): readonly string[] {
  return ["service_id", "service_name", ...(byState ? ["state"] : [])];
}

export interface ObservedService {
  readonly service: Pick<Service, "id" | "name">;
  /** `undefined` if the service has no PipeScaling; it has no series then. */
  readonly scaling: PipeScalingView | undefined;
}

/**
 * Formats the metrics of services as text for Prometheus, metric by metric as the format requires.
 *
 * A registry of prom-client would be filled for each request: for 3,000 services that takes 230 ms, in which the process
 * serves no other request, instead of 16 ms.
 */
export function exposition(services: readonly ObservedService[], nowMs: number): string {
  const known = services.flatMap(({ service, scaling }) =>
    scaling ? [{ scaling: scalingAt(scaling, nowMs), labels: labelsOf(service) }] : [],
  );
  return SERVICE_METRICS.map(({ name, help, byState, value }) => {
    const samples = known.flatMap(({ scaling, labels }) =>
      (byState ? PROGRESS_STATES : [scaling.progress.state]).map((state) => {
        const sample = value(scaling, state);
        const all = byState ? `${labels},state="${state}"` : labels;
        return sample === undefined ? "" : `${name}{${all}} ${sample}\n`;
      }),
    );
    return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${samples.join("")}`;
  }).join("");
}

function scalingAt(scaling: PipeScalingView, nowMs: number): ScalingAt {
  const { effective, replicas } = scaling;
  return { effective, replicas, progress: atTime(scaling, nowMs).progress };
}

function labelsOf({ id, name }: ObservedService["service"]): string {
  return `service_id="${id}",service_name="${escaped(name)}"`;
}

/** Escapes the value of a label (https://prometheus.io/docs/instrumenting/exposition_formats/). */
function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
