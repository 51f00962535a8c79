import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { FALLBACK_REASONS, type FallbackReason } from "../../crd/fallback-reasons.ts";
import type { PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { FAILURE_REASONS, failureReason } from "../../crd/reasons.ts";
import type { PipeState } from "../../domain/rollout-plan.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Event } from "../../runtime/event-recorder.ts";
import { POD_OUTCOMES, type PodOutcome } from "../in-place/pod-outcome.ts";
import { newInPlace } from "./resize-methods.ts";

/**
 * Pods that start immediately take seconds, real pipes take minutes, and a pipe that needs intervention takes hours.
 */
const PROPAGATION_SECONDS = [5, 10, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 4 * 3600];

const PIPE_STATES: readonly PipeState[] = [
  "done",
  "rolling",
  "waiting",
  "retrying",
  "failed",
  "paused",
  "unsizable",
];
/** A pipe falls back to a rollout after a minute. */
const DEFERRED_SECONDS = [0.1, 1, 5, 10, 20, 30, 40, 50, 60, 90];

const CONDITIONS = ["Ready", "Reconciling", "Stalled", "Suspended"] as const;

/** Number of services with their own series, those with the most units. The others share the series `other`. */
const MOST_SERVICES = 1000;

/** The state of a service after its last reconciliation. */
interface ServiceState {
  readonly states: readonly PipeState[];
  readonly condition: (typeof CONDITIONS)[number];
  readonly computeUnits: number;
  /** Start of the rescale in progress, if any. */
  readonly underWaySinceMs: number | undefined;
}

/** Metrics of services and pipes. Every label has a bounded set of values. */
export class ControllerMetrics {
  readonly #services = new Map<string, ServiceState>();
  readonly #propagation: Histogram;
  readonly #failures: Counter<"reason">;
  readonly #fallbacks: Counter<"reason">;
  readonly #pods: Counter<"outcome">;
  readonly #commits: Counter;
  readonly #deferred: Histogram;

  constructor(registry: Registry, clock: Clock) {
    const registers = [registry];
    const services = this.#services;
    const states = () => [...services.values()].flatMap((each) => each.states);
    this.#propagation = new Histogram({
      name: "pipe_scaling_propagation_seconds",
      help: "Duration of completed rescales in seconds, from when the controller saw the new size until every pipe of the service ran it.",
      buckets: PROPAGATION_SECONDS,
      registers,
    });
    this.#failures = new Counter({
      name: "pipe_scaling_failures_total",
      help: "Failures of pipes and services to get their size, by reason, counted when the Event is recorded.",
      labelNames: ["reason"],
      registers,
    });
    for (const reason of FAILURE_REASONS) this.#failures.inc({ reason }, 0);
    this.#fallbacks = new Counter({
      name: "pipe_scaling_in_place_fallbacks_total",
      help: "Pipes whose pods are replaced because they cannot be resized in place, by reason.",
      labelNames: ["reason"],
      registers,
    });
    for (const reason of FALLBACK_REASONS) this.#fallbacks.inc({ reason }, 0);
    this.#pods = new Counter({
      name: "pipe_scaling_in_place_pods_total",
      help: "Pods whose resize in place ended, by outcome: resized if they run the size, returned if they got their old size again before a rollout, unfinished if the size was no longer wanted or a rollout replaces them.",
      labelNames: ["outcome"],
      registers,
    });
    for (const outcome of POD_OUTCOMES) this.#pods.inc({ outcome }, 0);
    this.#commits = new Counter({
      name: "pipe_scaling_in_place_commits_total",
      help: "Pipes whose template followed their resized pods without a rollout.",
      registers,
    });
    this.#deferred = new Histogram({
      name: "pipe_scaling_in_place_deferred_seconds",
      help: "Time in seconds for which a resize in place waited for room on the node, until the pod got it or the pipe fell back to a rollout.",
      buckets: DEFERRED_SECONDS,
      registers,
    });
    new Gauge({
      name: "pipe_scaling_pipes",
      help: "Pipes by state relative to the desired size; done means that they run it.",
      labelNames: ["state"],
      registers,
      collect() {
        const all = states();
        for (const state of PIPE_STATES) this.set({ state }, all.filter((each) => each === state).length);
      },
    });
    new Gauge({
      name: "pipe_scaling_pipes_out_of_size",
      help: "Pipes that do not run the desired size.",
      registers,
      collect() {
        this.set(states().filter((state) => state !== "done").length);
      },
    });
    new Gauge({
      name: "pipe_scaling_services",
      help: "Services by condition of their PipeScaling.",
      labelNames: ["condition"],
      registers,
      collect() {
        const conditions = [...services.values()].map((each) => each.condition);
        for (const condition of CONDITIONS)
          this.set({ condition }, conditions.filter((each) => each === condition).length);
      },
    });
    new Gauge({
      name: "pipe_scaling_oldest_propagation_seconds",
      help: "Age of the oldest rescale in progress, in seconds; 0 if there is none.",
      registers,
      collect() {
        const now = clock.now();
        const begun = [...services.values()].map(({ underWaySinceMs = now }) => underWaySinceMs);
        this.set((now - begun.reduce((a, b) => Math.min(a, b), now)) / 1000);
      },
    });
    new Gauge({
      name: "pipe_scaling_compute_units",
      help: `Compute units at the desired size, for each of the ${MOST_SERVICES} largest services; the others are summed as other.`,
      labelNames: ["service"],
      registers,
      collect() {
        this.reset();
        for (const [service, units] of unitsByService(services)) this.set({ service }, units);
      },
    });
  }

  /** Records a reconciliation. Without a status, the service is removed from the metrics. */
  passed(serviceId: string, status: PipeScalingStatus | undefined, states: readonly PipeState[]): void {
    if (!status) {
      this.#services.delete(serviceId);
      return;
    }
    const { computeUnits = 0, propagation } = status;
    const isUnderWay = propagation !== undefined && propagation.completedAt === undefined;
    this.#services.set(serviceId, {
      states,
      condition: conditionOf(status),
      computeUnits,
      underWaySinceMs: isUnderWay ? Date.parse(propagation.startedAt) : undefined,
    });
  }

  fellBack(reason: FallbackReason): void {
    this.#fallbacks.inc({ reason });
  }

  podEnded(outcome: PodOutcome): void {
    this.#pods.inc({ outcome });
  }

  wasDeferred(durationMs: number): void {
    this.#deferred.observe(durationMs / 1000);
  }

  /** Records a write of the status of a PipeScaling, and the Events that it caused. */
  reported(before: PipeScalingStatus, after: PipeScalingStatus, events: readonly Event[]): void {
    for (const { type, reason } of events)
      if (type === "Warning") this.#failures.inc({ reason: failureReason(reason) });
    this.#commits.inc(newInPlace(before, after).length);
    const { startedAt, completedAt } = after.propagation ?? {};
    if (!startedAt || !completedAt) return;
    // A rescale completes again when a pipe is added or removed; only its first completion counts.
    if (before.propagation?.completedAt && before.propagation.startedAt === startedAt) return;
    this.#propagation.observe((Date.parse(completedAt) - Date.parse(startedAt)) / 1000);
  }
}

/** Returns the most specific condition. Without a True condition, the resource is suspended. */
function conditionOf({ conditions = [] }: PipeScalingStatus): (typeof CONDITIONS)[number] {
  const holds = (type: string) => conditions.some((each) => each.type === type && each.status === "True");
  if (holds("Stalled")) return "Stalled";
  if (holds("Reconciling")) return "Reconciling";
  return holds("Ready") ? "Ready" : "Suspended";
}

function unitsByService(services: ReadonlyMap<string, ServiceState>): (readonly [string, number])[] {
  const units = [...services].map(([id, { computeUnits }]) => [id, computeUnits] as const);
  const largest = units.toSorted(([, a], [, b]) => b - a);
  const others = largest.slice(MOST_SERVICES);
  const sum = others.reduce((total, [, each]) => total + each, 0);
  return [...largest.slice(0, MOST_SERVICES), ...(others.length === 0 ? [] : [["other", sum] as const])];
}
