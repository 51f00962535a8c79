import * as z from "zod";
import { createReconciler, type ReconcilerSetup } from "../../../src/controller/create-reconciler.ts";
import { toHorizontalAutoscalerView } from "../../../src/controller/observe/autoscaler-view.ts";
import { createCaches } from "../../../src/controller/observe/caches.ts";
import { toPipeScalingView } from "../../../src/controller/observe/pipe-scaling-view.ts";
import { toPodView } from "../../../src/controller/observe/pod-view.ts";
import { toPipeView } from "../../../src/controller/observe/workloads/deployment.ts";
import { toStatefulPipeView } from "../../../src/controller/observe/workloads/stateful-set.ts";
import { TIMEOUTS } from "../../../src/controller/timeouts.ts";
import type { ResizeStrategy } from "../../../src/domain/resize-strategy.ts";
import type { HorizontalPodAutoscaler } from "../../../src/kube/autoscalers.ts";
import { type ConfigMap, identityOf } from "../../../src/kube/objects.ts";
import { parseOrganization } from "../../../src/records/organization.ts";
import { parseService } from "../../../src/records/service.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { Event } from "../../../src/runtime/event-recorder.ts";
import type { ReflectorClient } from "../../../src/runtime/list-watch.ts";
import { WorkQueue } from "../../../src/runtime/work-queue.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { POLICY } from "../fixtures/snapshot.ts";
import { TIERS } from "../fixtures/tiers.ts";
import { RECORDS, SimulatedInputs } from "./inputs.ts";

const NO_METRICS = {
  passed: () => undefined,
  reported: () => undefined,
};
const LOG_LINE = z.object({
  pipe: z.string().optional(),
  to: z.string().optional(),
  notInPlace: z.string().optional(),
});

export interface SimulationOptions {
  readonly mostRollouts?: number;
  /** Lead of the controller's clock over the cluster's; negative if it is behind. */
  readonly skewMs?: number;
  /** Pipes are resized in place, and pods are simulated. */
  readonly isInPlace?: boolean;
  readonly metrics?: ReconcilerSetup["metrics"];
  readonly toleratedResizers?: string[];
}

/** The controller, with its queue, caches and bounds, on a simulated cluster. */
export class Simulation extends SimulatedInputs {
  /** Why pipes were not resized in place. */
  readonly fallbacks: string[] = [];
  readonly events: Event[] = [];
  /** Runs of the reconcile function so far. */
  reconciliations = 0;
  /** How often the controller noticed that etcd was restored. */
  etcdRollbacks = 0;
  readonly #options: SimulationOptions;
  #skewMs: number;
  /** Called when the controller's clock is set forward. */
  #onSetForward: () => void = () => undefined;
  /** The size to which each pipe was last not resized in place. */
  readonly #fallenBack = new Map<string, string>();
  /** The setting of the controller. */
  #strategy: ResizeStrategy;
  #caches = createCaches();
  #abort = new AbortController();
  /** Ends the work of the controller, but not its calls. */
  #work = new AbortController();
  #ended: Promise<void> = Promise.resolve();

  constructor(options: SimulationOptions = {}) {
    super(POLICY.rolloutTimeoutMs, { hasPods: options.isInPlace ?? false });
    this.#options = options;
    this.#skewMs = options.skewMs ?? 0;
    this.#strategy = options.isInPlace ? "InPlaceOrRollout" : "Rollout";
  }

  run(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /**
   * Replaces the controller with a new one that knows only the cluster.
   *
   * @param strategy the setting of the controller; by default as before
   */
  start(strategy = this.#strategy): void {
    this.#strategy = strategy;
    this.stop();
    this.#abort = new AbortController();
    this.#caches = createCaches();
    const { cluster, events } = this;
    const { mostRollouts = 50, toleratedResizers } = this.#options;
    const policy = {
      ...POLICY,
      maxConcurrentRollouts: mostRollouts,
      resizeStrategy: strategy,
      toleratedResizers,
    };
    const clock = this.#skewedClock();
    const caches = this.#caches;
    this.#work = new AbortController();
    const { signal } = this.#abort;
    const queue = new WorkQueue({
      clock,
      minIntervalMs: 100,
      retryFirstMs: 50,
      retryMostMs: 60_000,
      random: () => 0.5,
    });
    const client: ReflectorClient = {
      json: (request) => cluster.json({ ...request, signal: request.signal ?? signal }),
      stream: (request) => cluster.stream(request),
    };
    const restart = () => this.#restartRequired();
    const { work } = createReconciler({
      client,
      clock,
      caches,
      queue,
      policy,
      namespace: RECORDS,
      tiers: TIERS,
      concurrency: 16,
      // Each Deployment is deployed with its labels, and most tests have no others.
      timeouts: { ...TIMEOUTS, adoptMs: 0 },
      metrics: this.#options.metrics ?? NO_METRICS,
      log: createLogger("info", "controller", { write: (line) => this.#noteFallback(line) }),
      events: { record: (event) => events.push(event) },
      assertMayWrite: () => undefined,
      isLeader: () => !signal.aborted,
      onSetForward: (listener) => {
        this.#onSetForward = listener;
      },
      podsProblem: () => undefined,
      statefulSetsProblem: () => undefined,
      pipeNamespaces: [],
      onProblem: () => undefined,
      onEtcdRollback: restart,
      onFailure: () => undefined,
      onReconciled: () => {
        this.reconciliations += 1;
      },
    });
    cluster.readyJudge.controllerStarted();
    this.#watch();
    this.#ended = work(this.#work.signal);
  }

  /** Kills the controller. Its calls in flight are lost, except those that have reached the API server. */
  stop(): void {
    this.#abort.abort();
    this.#work.abort();
    this.cluster.readyJudge.controllerStopped();
  }

  /** Sends SIGTERM to the controller. Resolves when it has ended what it must not leave unfinished. */
  async terminate(): Promise<void> {
    this.#work.abort();
    await this.#ended;
    this.stop();
  }

  /** The controller has noticed an etcd restore: its process ends, and Kubernetes starts another one. */
  #restartRequired(): void {
    this.etcdRollbacks += 1;
    this.stop();
    this.clock.after(1000, () => this.start());
  }

  #noteFallback(line: string): void {
    const { pipe = "", to = "", notInPlace } = LOG_LINE.parse(JSON.parse(line));
    if (notInPlace === undefined || this.#fallenBack.get(pipe) === to) return;
    this.#fallenBack.set(pipe, to);
    this.fallbacks.push(`${pipe} ${notInPlace}`);
  }

  /** A response of the API server corrects the controller's clock, after which it has this lead. */
  correctClock(skewMs: number): void {
    const isForward = skewMs > this.#skewMs;
    this.#skewMs = skewMs;
    if (isForward) this.#onSetForward();
  }

  #skewedClock(): Clock {
    const { clock } = this;
    return {
      now: () => clock.now() + this.#skewMs,
      monotonic: () => clock.monotonic(),
      after: (delayMs, callback) => clock.after(delayMs, callback),
    };
  }

  #watch(): void {
    const { scalings, pipes, pods } = this.#caches;
    const { cluster } = this;
    for (const record of this.records.values()) this.onRecord(record);
    cluster.watch({
      pipe: (object) => pipes.of("Deployment").apply(toPipeView(object)),
      pipeGone: (object) => pipes.of("Deployment").remove(toPipeView(object)),
      statefulSet: (object) => pipes.of("StatefulSet").apply(toStatefulPipeView(object)),
      statefulSetGone: (object) => pipes.of("StatefulSet").remove(toStatefulPipeView(object)),
      scaling: (object) => scalings.apply(toPipeScalingView(object)),
      scalingGone: (object) => scalings.remove(toPipeScalingView(object)),
      pod: (object) => pods.apply(toPodView(object)),
      podGone: (object) => pods.remove(toPodView(object)),
    });
  }

  /** A HorizontalPodAutoscaler was created or changed. */
  applyAutoscaler(object: HorizontalPodAutoscaler): void {
    const metadata = { ...object.metadata, resourceVersion: this.cluster.next() };
    this.#caches.autoscalers[0].apply(toHorizontalAutoscalerView({ ...object, metadata }));
  }

  /** Each record is in the caches at once. */
  protected override onRecord({ metadata, data }: ConfigMap): void {
    const { organizations, services } = this.#caches;
    const { name, labels } = metadata;
    if (name.startsWith("organization-"))
      organizations.apply({ metadata: identityOf(metadata), record: parseOrganization(name, data) });
    else services.apply({ metadata: identityOf(metadata), record: parseService(name, labels, data) });
  }

  protected override onRecordGone(record: ConfigMap): void {
    this.#caches.services.remove(record);
  }
}
