import type { Registry } from "prom-client";
import { CONTROLLER_FIELD_MANAGER } from "../crd/names.ts";
import type { KubeClient } from "../kube/client.ts";
import { EventRecorder } from "../runtime/event-recorder.ts";
import type { Informer } from "../runtime/informer.ts";
import { LeaderElector } from "../runtime/leader.ts";
import { UnreadableObjectError } from "../runtime/reflector.ts";
import { EtcdRollbackError } from "../runtime/restart-required.ts";
import type { RetryDelays } from "../runtime/retry-backoff.ts";
import type { ServerClock } from "../runtime/server-clock.ts";
import { watchAges } from "../runtime/watch-ages.ts";
import { WorkQueue } from "../runtime/work-queue.ts";
import type { ControllerSettings } from "../settings/controller.ts";
import type { Logger } from "../telemetry/log.ts";
import { RuntimeMetrics } from "../telemetry/runtime-metrics.ts";
import type { RecordSpan } from "../telemetry/span.ts";
import { createReconciler } from "./create-reconciler.ts";
import { LEASE_NAME } from "./names.ts";
import { createCaches, createInformers } from "./observe/caches.ts";
import { ControllerMetrics } from "./report/metrics.ts";
import type { Timeouts } from "./timeouts.ts";

const CONCURRENCY = 16;
/** Least time between the starts of two reconciles of one service, so that a burst of changes leads to few. */
const RECONCILE_INTERVAL_MS = 100;
const RETRY = { retryFirstMs: 50, retryMostMs: 60_000 };

export interface SetupOptions {
  readonly settings: ControllerSettings;
  readonly client: KubeClient;
  /** For the leader election, with a connection of its own: no other calls may delay a renewal. */
  readonly leaseClient: KubeClient;
  readonly clock: ServerClock;
  readonly log: Logger;
  readonly registry: Registry;
  /** The CRD of vertical autoscalers is installed. */
  readonly verticalAutoscalers: boolean;
  readonly timeouts: Timeouts;
  /** Delays before a failed watch is retried; by default those of `RetryBackoff`. */
  readonly retryDelays?: RetryDelays | undefined;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
}

/** The parts of the controller, connected; nothing runs yet. */
export interface Controller {
  /** Fill the caches and keep them current. */
  readonly informers: readonly Informer[];
  readonly elector: LeaderElector;
  /** Aborted with an EtcdRollbackError after an etcd restore; from then on, only the lease is written. */
  readonly outdated: AbortSignal;
  /** Reconciles services until the signal is aborted, then finishes commits. Only the leader may call it. */
  work(signal: AbortSignal): Promise<void>;
}

export function setup(options: SetupOptions): Controller {
  const { settings, client, clock, log, registry } = options;
  const { identity, namespace } = settings;
  const caches = createCaches();
  const ending = new AbortController();
  const outdated = ending.signal;
  const onEtcdRollback = () => ending.abort(new EtcdRollbackError());
  const onProblem = (err: unknown) => {
    const isOfObject = err instanceof UnreadableObjectError;
    log.warn(
      { err },
      isOfObject ? "an object is malformed" : "the API server cannot be watched; trying again",
    );
  };
  const informers = createInformers(caches, {
    ...settings,
    ...options,
    onEtcdRollback,
    onProblem,
    onPermissionChange: (of) => {
      for (const { serviceId, metadata } of caches.pipes.values())
        if (of === undefined || metadata.namespace === of) queue.add(serviceId);
    },
  });
  const elector = new LeaderElector({
    client: options.leaseClient,
    clock,
    namespace,
    name: LEASE_NAME,
    fieldManager: CONTROLLER_FIELD_MANAGER,
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
    controller: "pipes.clouddb.dev/pipe-scaling-controller",
    instance: identity,
    fieldManager: CONTROLLER_FIELD_MANAGER,
    assertMayWrite,
    onLost: ({ reason, regarding }, err) =>
      log.warn({ err, reason, name: regarding.name }, "an Event was not written"),
  });
  const runtimeMetrics = new RuntimeMetrics({ registry, name: "pipescaling", concurrency: CONCURRENCY });
  const queue = new WorkQueue({
    clock,
    observer: runtimeMetrics.queueObserver(),
    minIntervalMs: RECONCILE_INTERVAL_MS,
    ...RETRY,
  });
  runtimeMetrics.watchQueue(queue, elector);
  runtimeMetrics.watchLeader(elector);
  runtimeMetrics.watchAges(() => watchAges(informers.all, clock));
  const { work } = createReconciler({
    ...settings,
    ...options,
    policy: settings,
    caches,
    queue,
    events,
    assertMayWrite,
    onEtcdRollback,
    onProblem,
    concurrency: CONCURRENCY,
    onSetForward: (listener) => clock.onSetForward(listener),
    isLeader: () => elector.isLeader && !outdated.aborted,
    podsProblem: (of) => informers.podsProblem(of),
    statefulSetsProblem: (of) => informers.statefulSetsProblem(of),
    metrics: new ControllerMetrics(registry, clock),
    onFailure: (serviceId, err, expected) =>
      log[expected ? "debug" : "error"]({ serviceId, err }, "a reconciliation failed; trying again"),
    onReconciled: (result) => runtimeMetrics.reconciled(result),
  });
  return { informers: informers.all, elector, outdated, work };
}
