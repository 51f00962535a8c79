import { collectDefaultMetrics, Registry } from "prom-client";
import type { Tiers } from "../domain/tier.ts";
import { KubeClient } from "../kube/client.ts";
import { connect } from "../kube/connection.ts";
import { checkReachable } from "../kube/reachable.ts";
import { systemClock } from "../runtime/clock.ts";
import { EventRecorder } from "../runtime/event-recorder.ts";
import { LeaderElector, LeadershipLostError } from "../runtime/leader.ts";
import type { Informer } from "../runtime/reflector.ts";
import { WorkQueue } from "../runtime/work-queue.ts";
import { runWorkers } from "../runtime/workers.ts";
import type { Logger } from "../telemetry/log.ts";
import { startOpsServer, urlOf } from "../telemetry/ops-server.ts";
import { createCaches, createInformers } from "./caches.ts";
import { Reconciler } from "./reconcile.ts";
import { RolloutSlots } from "./slots.ts";
import { connectToQueue, countRolling } from "./wiring.ts";

export interface ControllerSettings {
  readonly kubeconfig: string | undefined;
  /** Namespace of the records, and of the Lease. */
  readonly namespace: string;
  /** Namespaces of pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
  readonly host: string;
  readonly opsPort: number;
  /** Unique to this process among those that share the Lease. */
  readonly identity: string;
  readonly tiers: Tiers;
  readonly maxConcurrentRollouts: number;
  readonly rolloutTimeoutMs: number;
}

const LEASE_NAME = "pipe-scaling-controller";
const CONCURRENCY = 16;
/** At most one pass per service in this time: a burst of changes is one (design, section 8). */
const PASS_INTERVAL_MS = 100;
const RETRY_FIRST_MS = 50;
const RETRY_MOST_MS = 60_000;

/**
 * Runs the controller until the signal is aborted.
 *
 * @throws Error with a sentence for the user when it cannot start, or has lost its lease
 */
export async function runController(
  settings: ControllerSettings,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const connection = await connect(settings.kubeconfig);
  const client = new KubeClient(connection);
  await checkReachable(client, signal);
  const clock = systemClock;
  const caches = createCaches();
  const informers = createInformers(caches, {
    ...settings,
    client,
    clock,
    onProblem: (err) => log.warn({ err }, "the API server cannot be watched; trying again"),
  });
  const queue = new WorkQueue({
    clock,
    minIntervalMs: PASS_INTERVAL_MS,
    retryFirstMs: RETRY_FIRST_MS,
    retryMostMs: RETRY_MOST_MS,
  });
  const slots = new RolloutSlots(settings.maxConcurrentRollouts, () =>
    countRolling(caches, clock.now() - settings.rolloutTimeoutMs),
  );
  connectToQueue(caches, queue, slots);

  const elector = new LeaderElector({
    client,
    clock,
    namespace: settings.namespace,
    name: LEASE_NAME,
    identity: settings.identity,
    onProblem: (err) => log.warn({ err }, "the lease cannot be renewed; trying again"),
  });
  const assertMayWrite = () => elector.assertHeld();
  const events = new EventRecorder({
    client,
    clock,
    controller: "pipes.clouddb.dev/pipe-scaling-controller",
    instance: settings.identity,
    assertMayWrite,
    onLost: ({ reason, regarding }, err) =>
      log.warn({ err, reason, name: regarding.name }, "an event was lost"),
  });
  const reconciler = new Reconciler({
    ...settings,
    client,
    caches,
    clock,
    slots,
    log,
    events,
    assertMayWrite,
  });
  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  const ops = await startOpsServer({
    host: settings.host,
    port: settings.opsPort,
    metrics,
    readiness: () =>
      informers.every((each) => each.isSynced)
        ? { ready: true }
        : { ready: false, problem: "the caches are not filled yet" },
  });
  log.info({ opsUrl: urlOf(ops), server: client.server, identity: settings.identity }, "listening");

  const stopping = new AbortController();
  const running = AbortSignal.any([signal, stopping.signal]);
  const watching = Promise.all(informers.map((each) => each.run(running)));
  try {
    await allSynced(informers, running);
    const wasLost = await elector.run(running, async (leading) => {
      log.info("leading");
      await runWorkers(
        {
          queue,
          concurrency: CONCURRENCY,
          reconcile: (serviceId) => reconciler.reconcile(serviceId),
          onFailure: (serviceId, err, expected) =>
            log[expected ? "debug" : "error"]({ serviceId, err }, "a pass failed; trying again"),
        },
        leading,
      );
    });
    if (wasLost && !signal.aborted)
      throw new LeadershipLostError("the lease was lost to another controller: ending, to start anew");
  } finally {
    stopping.abort();
    await watching;
    await client.close();
    ops.close();
    ops.closeAllConnections();
  }
}

/** Resolves when all caches are filled, or the signal is aborted. */
async function allSynced(informers: readonly Informer[], signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([Promise.all(informers.map((each) => each.synced)), aborted]);
}
