import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** A pass is milliseconds of our own and some calls to the cluster; a queue may be minutes behind. */
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** What is looked at of a queue on each scrape. */
export interface QueueState {
  readonly depth: number;
  /** For how many milliseconds each pass that has begun has been going on. */
  underWay(): readonly number[];
}

export interface RuntimeMetricsOptions {
  readonly registry: Registry;
  /** Label `controller`, and `name` of the queue and of the leader election. */
  readonly name: string;
  readonly concurrency: number;
}

/**
 * What a controller's runtime tells Prometheus, by the names and labels that controller-runtime and
 * client-go have, so that dashboards and alerts made for any controller serve this one.
 */
export class RuntimeMetrics {
  readonly #options: RuntimeMetricsOptions;
  readonly #adds: Counter;
  readonly #retries: Counter;
  readonly #queueSeconds: Histogram;
  readonly #workSeconds: Histogram;
  readonly #passes: Counter<"controller" | "result">;
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
      help: "Keys that came to wait in the queue.",
    });
    this.#retries = new Counter({
      ...ofQueue,
      name: "workqueue_retries_total",
      help: "Keys that are to be tried again after a failure.",
    });
    this.#queueSeconds = new Histogram({
      ...ofQueue,
      name: "workqueue_queue_duration_seconds",
      help: "How long a key waited in the queue before its pass began.",
      buckets: SECONDS,
    });
    this.#workSeconds = new Histogram({
      ...ofQueue,
      name: "workqueue_work_duration_seconds",
      help: "How long a pass over a key took.",
      buckets: SECONDS,
    });
    this.#passes = new Counter({
      registers,
      labelNames: ["controller", "result"],
      name: "controller_runtime_reconcile_total",
      help: "Passes by their result: success, requeue_after (time alone may change it) or error.",
    });
    this.#errors = new Counter({
      ...ofController,
      name: "controller_runtime_reconcile_errors_total",
      help: "Passes that failed.",
    });
    new Gauge({
      ...ofController,
      name: "controller_runtime_max_concurrent_reconciles",
      help: "Passes that may be under way at once.",
    }).set({ controller: name }, concurrency);
    for (const result of ["success", "requeue_after", "error"])
      this.#passes.inc({ controller: name, result }, 0);
    for (const counter of [this.#adds, this.#retries]) counter.inc({ name }, 0);
    this.#errors.inc({ controller: name }, 0);
  }

  /** For the queue: what it is to tell of its keys. */
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

  passed(result: string): void {
    const { name: controller } = this.#options;
    this.#passes.inc({ controller, result });
    if (result === "error") this.#errors.inc({ controller });
  }

  /** Shows on each scrape how the queue is then. */
  watchQueue(queue: QueueState): void {
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
    gauge("workqueue_depth", "Keys that wait in the queue.", () => queue.depth, { name });
    gauge(
      "workqueue_unfinished_work_seconds",
      "For how long all passes under way have been going on, together.",
      () => seconds().reduce((sum, each) => sum + each, 0),
      { name },
    );
    gauge(
      "workqueue_longest_running_processor_seconds",
      "For how long the pass that has been going on longest has.",
      () => Math.max(0, ...seconds()),
      { name },
    );
    gauge("controller_runtime_active_workers", "Passes under way.", () => queue.underWay().length, {
      controller: name,
    });
  }

  /** Shows on each scrape whether this process leads then. */
  watchLeader(leader: { readonly isLeader: boolean }): void {
    const { registry, name } = this.#options;
    new Gauge({
      name: "leader_election_master_status",
      help: "Whether this process holds the lease.",
      labelNames: ["name"],
      registers: [registry],
      collect() {
        this.set({ name }, leader.isLeader ? 1 : 0);
      },
    });
  }
}
