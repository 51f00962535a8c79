import { Registry } from "prom-client";
import { type EndedCall, KubeClient } from "../kube/client.ts";
import { connect } from "../kube/connection.ts";
import { mayBeServed } from "../kube/discovery.ts";
import { VERTICAL_AUTOSCALERS } from "../kube/paths.ts";
import { checkReachable } from "../kube/reachable.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { allSynced, type Informer } from "../runtime/informer.ts";
import { LeadershipLostError } from "../runtime/leader.ts";
import { RestartRequiredError } from "../runtime/restart-required.ts";
import { retryUntilReachable } from "../runtime/retry-until-reachable.ts";
import { ServerClock } from "../runtime/server-clock.ts";
import { watchAges } from "../runtime/watch-ages.ts";
import type { ControllerSettings } from "../settings/controller.ts";
import { buildInfo } from "../telemetry/build-info.ts";
import { clusterMetrics } from "../telemetry/cluster-metrics.ts";
import type { Logger } from "../telemetry/log.ts";
import { metricsAccess } from "../telemetry/metrics-access.ts";
import { type Readiness, startOpsServer, urlOf } from "../telemetry/ops-server.ts";
import { processMetrics } from "../telemetry/process-metrics.ts";
import { startTracing } from "../telemetry/tracing.ts";
import { readinessOf } from "../telemetry/watch-readiness.ts";
import { findUnreadable, whenReadable } from "./observe/unreadable-namespaces.ts";
import { unreadableNamespaces } from "./report/metrics.ts";
import { type Controller, type SetupOptions, setup } from "./setup.ts";
import { TIMEOUTS, type Timeouts } from "./timeouts.ts";

export interface ControllerOverrides extends Pick<SetupOptions, "retryDelays"> {
  readonly timeouts?: Partial<Timeouts>;
  /** The clock of this machine; the controller adjusts it to the clock of the API server. */
  readonly clock?: Clock;
}

/**
 * Runs the controller until the signal is aborted.
 *
 * @param overrides for tests
 * @throws Error with a sentence for the user when it cannot start
 * @throws RestartRequiredError if the lease was lost, etcd was restored from an older snapshot, or a namespace that was
 *   left out can be read
 */
export async function runController(
  settings: ControllerSettings,
  log: Logger,
  signal: AbortSignal,
  { clock: machineClock = systemClock, timeouts, ...overrides }: ControllerOverrides = {},
): Promise<void> {
  const registry = new Registry();
  processMetrics(registry);
  buildInfo(registry);
  const clock = new ServerClock(machineClock, (correctionMs) => {
    const correctionSeconds = Math.round(correctionMs / 1000);
    log.warn({ correctionSeconds }, "this machine's clock is wrong: using the API server's time instead");
  });
  const countCall = clusterMetrics(registry);
  const onCall = (call: EndedCall) => {
    clock.observe(call);
    countCall(call);
  };
  const connection = await connect(settings.kubeconfig, signal);
  const client = new KubeClient(connection, onCall);
  const leaseClient = new KubeClient(connection.another(), onCall);
  const { recordSpan, end } = await startTracing(settings, "pipe-scaling-controller", settings.identity, log);
  try {
    const parts = { ...overrides, settings, client, leaseClient, clock, registry, log, recordSpan };
    await operate({ ...parts, timeouts: { ...TIMEOUTS, ...timeouts } }, signal);
  } finally {
    await end();
    await Promise.all([client.close(), leaseClient.close()]);
  }
}

/** The options of `setup` that are known before the API server responds. */
type Parts = Omit<SetupOptions, "verticalAutoscalers">;

async function operate(parts: Parts, signal: AbortSignal): Promise<void> {
  const { settings, client, clock, registry, log } = parts;
  let informers: readonly Informer[] = [];
  // The probes must get responses while the API server is unreachable, too.
  const ops = await startOpsServer({
    host: settings.host,
    port: settings.opsPort,
    metrics: registry,
    readiness: () => (informers.length === 0 ? UNREACHABLE : readinessOf(watchAges(informers, clock))),
    access: metricsAccess(settings, { client, monotonic: () => clock.monotonic(), log }),
    monotonic: () => clock.monotonic(),
    log,
  });
  log.info({ opsUrl: urlOf(ops), server: client.server, identity: settings.identity }, "listening");
  try {
    const { verticalAutoscalers, unreadable } = await firstCalls(parts, signal);
    for (const [namespace, err] of unreadable) log.warn({ namespace, err }, LEFT_OUT);
    unreadableNamespaces(registry, unreadable.size);
    const pipeNamespaces = settings.pipeNamespaces.filter((each) => !unreadable.has(each));
    const controller = setup({ ...parts, settings: { ...settings, pipeNamespaces }, verticalAutoscalers });
    ({ informers } = controller);
    await lead(controller, [...unreadable.keys()], parts, signal);
  } finally {
    ops.close();
    ops.closeAllConnections();
  }
}

const UNREACHABLE: Readiness = { ready: false, problem: "the API server has not responded yet" };

const LEFT_OUT = "the namespace cannot be read, so its pipes are not resized; trying again every minute";

/** Resolves when the API server responds, with facts that this process reads only once. */
function firstCalls({ settings, client, clock, log }: Parts, signal: AbortSignal) {
  const onProblem = (err: unknown) => log.warn({ err }, "the API server does not respond; trying again");
  const calls = async () => {
    await checkReachable(client, signal);
    return {
      /** The CRD of vertical autoscalers is installed, or that is unknown. */
      verticalAutoscalers: await mayBeServed(client, VERTICAL_AUTOSCALERS, signal),
      unreadable: await findUnreadable(client, settings.pipeNamespaces, signal),
    };
  };
  return retryUntilReachable(calls, { clock, onProblem }, signal);
}

/** Fills the caches, and works while this process holds the lease, and until one of the namespaces can be read. */
async function lead(
  { informers, elector, outdated, work }: Controller,
  unreadable: readonly string[],
  { client, clock, log, timeouts }: Parts,
  signal: AbortSignal,
): Promise<void> {
  const stopping = new AbortController();
  const readable = new AbortController();
  const running = AbortSignal.any([signal, outdated, readable.signal]);
  // The watches go on until the last commit has ended.
  const watched = AbortSignal.any([stopping.signal, outdated]);
  const watching = Promise.all(informers.map((each) => each.run(watched)));
  const retried = AbortSignal.any([running, stopping.signal]);
  const retrying = whenReadable(client, clock, unreadable, timeouts.unreadableMs, retried).then((found) => {
    if (found === undefined) return;
    readable.abort(new RestartRequiredError(`the namespace ${found} can be read now: restart required`));
  });
  try {
    await allSynced(informers, running);
    const wasLost = await elector.run(running, (leading) => {
      log.info("leading");
      return work(leading);
    });
    outdated.throwIfAborted();
    readable.signal.throwIfAborted();
    if (wasLost && !signal.aborted) {
      throw new LeadershipLostError("the lease was lost, and another process may hold it: restart required");
    }
  } finally {
    stopping.abort();
    await Promise.all([watching, retrying]);
  }
}
