import type { Registry } from "prom-client";
import type { Tiers } from "../domain/tier.ts";
import type { KubeClient } from "../kube/client.ts";
import type { Clock } from "../runtime/clock.ts";
import { EventRecorder } from "../runtime/event-recorder.ts";
import { LeaderElector } from "../runtime/leader.ts";
import type { Informer } from "../runtime/reflector.ts";
import { HistoryTakenBackError } from "../runtime/start-anew.ts";
import { WorkQueue } from "../runtime/work-queue.ts";
import { runWorkers } from "../runtime/workers.ts";
import type { Logger } from "../telemetry/log.ts";
import { RuntimeMetrics } from "../telemetry/runtime-metrics.ts";
import type { RecordSpan } from "../telemetry/span.ts";
import { RolloutBudget } from "./apply/rollout-budget.ts";
import { Validations } from "./apply/validations.ts";
import { WriteHistory } from "./apply/write-history.ts";
import { countRolling } from "./decide/rolling.ts";
import { enqueueOnChange } from "./event-handlers.ts";
import { LEASE_NAME } from "./names.ts";
import { createCaches, createInformers } from "./observe/caches.ts";
import { DeletedScalings } from "./observe/deleted-scalings.ts";
import { Reconciler } from "./reconciler.ts";
import { ControllerMetrics } from "./report/metrics.ts";

const REPORTING_CONTROLLER = "pipes.clouddb.dev/pipe-scaling-controller";
const QUEUE_NAME = "pipescaling";
const CONCURRENCY = 16;
/** At most one reconciliation per service in this time: a burst of changes is one. */
const RECONCILE_INTERVAL_MS = 100;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 60_000;

export interface SetupOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Namespace of the records, and of the Lease. */
  readonly namespace: string;
  /** Namespaces of pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
  /** Whether the cluster knows vertical autoscalers. */
  readonly verticalAutoscalers: boolean;
  /** Unique to this process among those that share the Lease. */
  readonly identity: string;
  readonly tiers: Tiers;
  readonly maxConcurrentRollouts: number;
  readonly rolloutTimeoutMs: number;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
}

/** The parts of the controller, connected; nothing runs yet. */
export interface Controller {
  /** Keep the caches true. */
  readonly informers: readonly Informer[];
  readonly elector: LeaderElector;
  /** Aborted, with the reason, when what is known may be of a future that was taken back; nothing is written then. */
  readonly outdated: AbortSignal;
  /** Reconciles services until the signal is aborted. Only for the leader. */
  work(signal: AbortSignal): Promise<void>;
}

export function setup(options: SetupOptions): Controller {
  const { client, clock, log, registry, identity, namespace } = options;
  const caches = createCaches();
  const ending = new AbortController();
  const outdated = ending.signal;
  const informers = createInformers(caches, {
    ...options,
    onProblem: (err) => log.warn({ err }, "the API server cannot be watched; trying again"),
    onTakenBack: () => ending.abort(new HistoryTakenBackError()),
  });
  const elector = new LeaderElector({
    client,
    clock,
    namespace,
    name: LEASE_NAME,
    identity,
    onProblem: (err) => log.warn({ err }, "the lease cannot be renewed; trying again"),
  });
  const assertMayWrite = () => {
    outdated.throwIfAborted();
    elector.assertHeld();
  };
  const events = new EventRecorder({
    client,
    clock,
    controller: REPORTING_CONTROLLER,
    instance: identity,
    assertMayWrite,
    onLost: ({ reason, regarding }, err) =>
      log.warn({ err, reason, name: regarding.name }, "an event was lost"),
  });
  const runtimeMetrics = new RuntimeMetrics({ registry, name: QUEUE_NAME, concurrency: CONCURRENCY });
  const queue = new WorkQueue({
    clock,
    observer: runtimeMetrics.queueObserver(),
    minIntervalMs: RECONCILE_INTERVAL_MS,
    retryFirstMs: RETRY_FIRST_MS,
    retryMostMs: RETRY_MOST_MS,
  });
  const { rolloutTimeoutMs } = options;
  const writes = new WriteHistory(caches.pipes);
  const validations = new Validations(caches.pipes);
  const enqueue = (serviceId: string) => queue.add(serviceId);
  const budget = new RolloutBudget({
    clock,
    limit: options.maxConcurrentRollouts,
    rolling: () =>
      countRolling(caches, { nowMs: clock.now(), rolloutTimeoutMs }) + writes.unresolvedRollouts(clock.now()),
    wake: enqueue,
  });
  const deletedScalings = new DeletedScalings(caches.scalings, clock);
  enqueueOnChange(caches, queue, budget);
  runtimeMetrics.watchQueue(queue);
  runtimeMetrics.watchLeader(elector);
  const metrics = new ControllerMetrics(registry, clock);
  const reconciler = new Reconciler({
    ...options,
    caches,
    writes,
    validations,
    budget,
    deletedScalings,
    enqueue,
    events,
    metrics,
    assertMayWrite,
  });
  const work = (signal: AbortSignal) =>
    runWorkers(
      {
        queue,
        concurrency: CONCURRENCY,
        reconcile: (serviceId) => reconciler.reconcile(serviceId),
        onFailure: (serviceId, err, expected) =>
          log[expected ? "debug" : "error"]({ serviceId, err }, "a reconciliation failed; trying again"),
        onPass: (result) => runtimeMetrics.passed(result),
      },
      signal,
    );
  return { informers, elector, outdated, work };
}
