import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** A reconcile takes milliseconds, or longer with calls to the cluster. A key can wait in the queue for minutes. */
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The part of a queue that is read at each scrape. */
export interface QueueState {
  readonly depth: number;
  /** The age of each running reconcile in milliseconds. */
  underWay(): readonly number[];
}

/** Tells whether this process is the leader. */
export interface Leader {
  readonly isLeader: boolean;
}

export interface RuntimeMetricsOptions {
  readonly registry: Registry;
  /** Value of the label `controller`, and of the label `name` of the queue and of the leader election. */
  readonly name: string;
  readonly concurrency: number;
}

/**
 * The metrics of a controller's runtime, with the names and labels of controller-runtime and client-go, so that
 * dashboards and alerts for any controller work for this one.
 */
export class RuntimeMetrics {
  readonly #options: RuntimeMetricsOptions;
  readonly #adds: Counter;
  readonly #retries: Counter;
  readonly #queueSeconds: Histogram;
  readonly #workSeconds: Histogram;
  readonly #reconciles: Counter<"controller" | "result">;
  readonly #errors: Counter;

  constructor(options: RuntimeMetricsOptions) {
    const { registry, name, concurrency } = options;
    const registers = [registry];
    const ofQueue = { registers, labelNames: ["name"] };
    const ofController = { registers, labelNames: ["controller"] };
    this.#options = options;
    this.#adds = new Counter({
      ...ofQueue,
      name: "workqueue_adds_total",
      help: "Keys added to the queue.",
    });
    this.#retries = new Counter({
      ...ofQueue,
      name: "workqueue_retries_total",
      help: "Keys scheduled for a retry after a failure.",
    });
    this.#queueSeconds = new Histogram({
      ...ofQueue,
      name: "workqueue_queue_duration_seconds",
      help: "Time from adding a key to the queue until its reconcile starts, in seconds.",
      buckets: SECONDS,
    });
    this.#workSeconds = new Histogram({
      ...ofQueue,
      name: "workqueue_work_duration_seconds",
      help: "Duration of a reconcile, in seconds.",
      buckets: SECONDS,
    });
    this.#reconciles = new Counter({
      registers,
      labelNames: ["controller", "result"],
      name: "controller_runtime_reconcile_total",
      help: "Reconciles by result: success, requeue (again soon), requeue_after (a recheck is scheduled) or error.",
    });
    this.#errors = new Counter({
      ...ofController,
      name: "controller_runtime_reconcile_errors_total",
      help: "Failed reconciles.",
    });
    new Gauge({
      ...ofController,
      name: "controller_runtime_max_concurrent_reconciles",
      help: "Maximum number of concurrent reconciles.",
    }).set({ controller: name }, concurrency);
    for (const result of ["success", "requeue", "requeue_after", "error"])
      this.#reconciles.inc({ controller: name, result }, 0);
    for (const counter of [this.#adds, this.#retries]) counter.inc({ name }, 0);
    this.#errors.inc({ controller: name }, 0);
  }

  /** @returns the functions that the queue calls for its keys */
  queueObserver() {
    const { name } = this.#options;
    const queueSeconds = this.#queueSeconds.labels({ name });
    const workSeconds = this.#workSeconds.labels({ name });
    return {
      added: () => this.#adds.inc({ name }),
      began: (waitedMs: number) => queueSeconds.observe(waitedMs / 1000),
      ended: (workedMs: number) => workSeconds.observe(workedMs / 1000),
      retried: () => this.#retries.inc({ name }),
    };
  }

  reconciled(result: string): void {
    const { name: controller } = this.#options;
    this.#reconciles.inc({ controller, result });
    if (result === "error") this.#errors.inc({ controller });
  }

  /**
   * Reports the state of the queue at each scrape. On standby, the queue has the key of every service, and none is
   * taken.
   */
  watchQueue(queue: QueueState, leader: Leader): void {
    const { registry, name } = this.#options;
    const gauge = (of: string, help: string, value: () => number, labels: Readonly<Record<string, string>>) =>
      new Gauge({
        name: of,
        help,
        labelNames: Object.keys(labels),
        registers: [registry],
        collect() {
          this.set(labels, value());
        },
      });
    const seconds = () => queue.underWay().map((ms) => ms / 1000);
    gauge(
      "workqueue_depth",
      "Keys waiting in the queue; 0 unless this process is the leader.",
      () => (leader.isLeader ? queue.depth : 0),
      { name },
    );
    gauge(
      "workqueue_unfinished_work_seconds",
      "Sum of the ages of all running reconciles, in seconds.",
      () => seconds().reduce((sum, each) => sum + each, 0),
      { name },
    );
    gauge(
      "workqueue_longest_running_processor_seconds",
      "Age of the oldest running reconcile, in seconds.",
      () => Math.max(0, ...seconds()),
      { name },
    );
    gauge("controller_runtime_active_workers", "Running reconciles.", () => queue.underWay().length, {
      controller: name,
    });
  }

  /** Reports the age of each watch at each scrape. @param ages milliseconds by kind; Infinity if not read yet */
  watchAges(ages: () => ReadonlyMap<string, number>): void {
    new Gauge({
      name: "pipe_scaling_watch_age_seconds",
      help: "Time since the API server last confirmed the controller's cache of a kind, in seconds; the maximum over all namespaces.",
      labelNames: ["resource"],
      registers: [this.#options.registry],
      collect() {
        for (const [resource, ageMs] of ages())
          if (Number.isFinite(ageMs)) this.set({ resource }, ageMs / 1000);
      },
    });
  }

  /** Reports at each scrape whether this process is the leader. */
  watchLeader(leader: Leader): void {
    const { registry, name } = this.#options;
    new Gauge({
      name: "leader_election_master_status",
      help: "1 if this process holds the leader election lease, otherwise 0.",
      labelNames: ["name"],
      registers: [registry],
      collect() {
        this.set({ name }, leader.isLeader ? 1 : 0);
      },
    });
  }
}
