import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { FALLBACK_REASONS } from "../../crd/fallback-reasons.ts";
import type { PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { FAILURE_REASONS, failureReason, type Reason } from "../../crd/reasons.ts";
import type { PipeState } from "../../domain/rollout-plan.ts";
import { parseTime } from "../../kube/time.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Event } from "../../runtime/event-recorder.ts";
import { RESIZED_IN_PLACE } from "./events.ts";
import { newFallbacks } from "./resize-methods.ts";
import { STATE_NAMES } from "./status.ts";
import { desiredSinceMs } from "./status-content.ts";

/** A rescale takes seconds in place, minutes if pods are replaced, and hours if a pipe needs intervention. */
const PROPAGATION_SECONDS = [5, 10, 30, 60, 120, 180, 300, 600, 900, 1800, 3600, 4 * 3600];

const PIPE_STATES = ["done", ...Object.keys(STATE_NAMES)];
/** Waits that people chose. They do not count as a rescale in progress, so that they cause no alarm. */
const WAITING_BY_CHOICE: readonly Reason[] = ["WaitingForOwner", "WaitingForWindow"];

const CONDITIONS = ["Stalled", "Reconciling", "Ready", "Suspended"] as const;

/** The state of a service after its last reconciliation. */
interface ServiceState {
  readonly states: readonly PipeState[];
  readonly condition: (typeof CONDITIONS)[number];
  /** Since when a rescale has been in progress, in milliseconds since 1970; `undefined` if there is none. */
  readonly underWaySinceMs: number | undefined;
}

/** Metrics of services and pipes. Every label has a bounded set of values. */
export class ControllerMetrics {
  readonly #clock: Pick<Clock, "now">;
  readonly #services = new Map<string, ServiceState>();
  readonly #propagation: Histogram;
  readonly #failures: Counter<"reason">;
  readonly #fallbacks: Counter<"reason">;
  readonly #commits: Counter;

  constructor(registry: Registry, clock: Pick<Clock, "now">) {
    this.#clock = clock;
    const registers = [registry];
    const services = this.#services;
    this.#propagation = new Histogram({
      name: "pipe_scaling_propagation_seconds",
      help: "Duration of completed rescales in seconds, from when the controller saw the new size until every pipe of the service ran it. Those that resize no running pipe do not count, except for the start of a pipe that was not up when the controller first saw it.",
      buckets: PROPAGATION_SECONDS,
      registers,
    });
    this.#failures = new Counter({
      name: "pipe_scaling_failures_total",
      help: "Failures in the status of services, by reason, counted when the Event on the PipeScaling is recorded; at most 20 pipes of a service.",
      labelNames: ["reason"],
      registers,
    });
    for (const reason of FAILURE_REASONS) this.#failures.inc({ reason }, 0);
    this.#fallbacks = new Counter({
      name: "pipe_scaling_in_place_fallbacks_total",
      help: "Pipes whose pods are replaced because they cannot be resized in place, by reason; at most 20 of a service for each size.",
      labelNames: ["reason"],
      registers,
    });
    for (const reason of FALLBACK_REASONS) this.#fallbacks.inc({ reason }, 0);
    this.#commits = new Counter({
      name: "pipe_scaling_in_place_commits_total",
      help: "Pipes whose template followed their resized pods without a rollout.",
      registers,
    });
    new Gauge({
      name: "pipe_scaling_pipes",
      help: "Pipes by state relative to the desired size. Pipes in the states done and resized run it.",
      labelNames: ["state"],
      registers,
      collect() {
        const all = [...services.values()].flatMap(({ states }) => states);
        for (const state of PIPE_STATES) this.set({ state }, all.filter((each) => each === state).length);
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
      help: "Age of the oldest rescale in progress, in seconds; 0 if there is none. A request that repeats the size does not begin it again. Once every pipe has run the size, it is the time since Ready last became False, for example because a pipe was added. Rescales that are stalled or suspended, or wait for a rollout window or an owner, do not count, and their age begins again afterwards. After a change of leader, it includes earlier waits for a window or an owner.",
      registers,
      collect() {
        const now = clock.now();
        const begun = [...services.values()].map(({ underWaySinceMs = now }) => underWaySinceMs);
        this.set((now - begun.reduce((a, b) => Math.min(a, b), now)) / 1000);
      },
    });
  }

  /** Records a reconciliation. Without a status, the service is removed from the metrics. */
  passed(serviceId: string, status: PipeScalingStatus | undefined, states: readonly PipeState[]): void {
    if (!status) {
      this.#services.delete(serviceId);
      return;
    }
    this.#services.set(serviceId, {
      states,
      condition: conditionOf(status),
      underWaySinceMs: underWaySinceMs(status, this.#services.get(serviceId), this.#clock.now()),
    });
  }

  /** Records a write of the status of a PipeScaling, and the Events that it caused. */
  reported(before: PipeScalingStatus, after: PipeScalingStatus, events: readonly Event[]): void {
    for (const { type, reason } of events) {
      if (type === "Warning") this.#failures.inc({ reason: failureReason(reason) });
      if (reason === RESIZED_IN_PLACE) this.#commits.inc();
    }
    for (const { reason } of newFallbacks(before, after)) this.#fallbacks.inc({ reason });
    const { startedAt, completedAt } = after.propagation ?? {};
    if (!startedAt || !completedAt || !hasResized(before, after)) return;
    this.#propagation.observe((Date.parse(completedAt) - Date.parse(startedAt)) / 1000);
  }
}

/** Reports how many namespaces this process left out when it started. They have no watch whose age would show it. */
export function unreadableNamespaces(registry: Registry, count: number): void {
  const gauge = new Gauge({
    name: "pipe_scaling_unreadable_namespaces",
    help: "Namespaces of pipes that the controller left out when it started, because it may not read them; the log names them.",
    registers: [registry],
  });
  gauge.set(count);
}

/** True if a rescale that has completed between two statuses gave its size to running pipes. */
function hasResized(
  before: PipeScalingStatus,
  { desired, replicas, propagation }: PipeScalingStatus,
): boolean {
  if (!replicas) return false;
  // A rescale completes again when a pipe that was added, or that failed before, has the size. Only the first counts.
  if (before.propagation?.startedAt === propagation?.startedAt) return !before.propagation?.completedAt;
  // A resize in place can complete before its start is reported. Otherwise, the pipes had the size before: when they
  // were adopted, or when the same size was requested again.
  return before.desired !== undefined && before.desired.summary !== desired?.summary;
}

/** @param before absent in the first reconciliation of a process, which knows only the status */
function underWaySinceMs(
  status: PipeScalingStatus,
  before: ServiceState | undefined,
  nowMs: number,
): number | undefined {
  const sinceMs = sinceMsOf(status);
  if (sinceMs === undefined || !before) return sinceMs;
  // A rescale that was stalled or waited by choice for days has begun only now.
  return Math.max(sinceMs, before.underWaySinceMs ?? nowMs);
}

function sinceMsOf(status: PipeScalingStatus): number | undefined {
  const { propagation, conditions = [] } = status;
  const waits = conditions.some(({ reason }) => WAITING_BY_CHOICE.some((each) => each === reason));
  if (!propagation || waits || conditionOf(status) !== "Reconciling") return undefined;
  const transitionMs = (of: string) =>
    parseTime(conditions.find(({ type }) => type === of)?.lastTransitionTime);
  // The condition is younger than the rescale if the service was stalled or suspended meanwhile.
  const sinceMs = Math.max(desiredSinceMs(status), transitionMs("Reconciling"));
  if (propagation.completedAt === undefined) return sinceMs;
  // Every pipe has run the size, but a template does not follow its pods yet, or a pipe was added or changed later.
  return Math.max(sinceMs, transitionMs("Ready"));
}

/** Without a condition that is True, the PipeScaling is suspended. */
function conditionOf({ conditions = [] }: PipeScalingStatus): (typeof CONDITIONS)[number] {
  const holds = (type: string) => conditions.some((each) => each.type === type && each.status === "True");
  return CONDITIONS.find(holds) ?? "Suspended";
}
