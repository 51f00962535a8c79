import { once } from "node:events";
import { type Server, validateHeaderValue } from "node:http";
import { isIPv6 } from "node:net";
import { hostname } from "node:os";
import { Server as TlsServer } from "node:tls";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Tiers } from "../domain/tier.ts";
import { KubeClient } from "../kube/client.ts";
import { connect } from "../kube/connection.ts";
import { checkReachable } from "../kube/reachable.ts";
import { type Clock, pause, systemClock } from "../runtime/clock.ts";
import { clusterMetrics } from "../telemetry/cluster-metrics.ts";
import type { Logger } from "../telemetry/log.ts";
import { listen, type Readiness, startOpsServer } from "../telemetry/ops-server.ts";
import { startTracing, type TracingSettings } from "../telemetry/tracing.ts";
import { Answers } from "./answers.ts";
import { createApp } from "./app.ts";
import { Caches } from "./caches.ts";
import { followCertificate } from "./certificate.ts";
import { ClientAddresses, type ProxySettings } from "./client-address.ts";
import { Drain } from "./drain.ts";
import { isServing } from "./exchange.ts";
import { KeyUsageWriter } from "./key-usage-writer.ts";
import { type LimitSettings, Limits } from "./limits.ts";
import { ApiMetrics } from "./metrics.ts";
import { RecordWriter } from "./record-writer.ts";
import type { PathAliases } from "./routes.ts";
import { ScalingWriter } from "./scaling-writer.ts";
import { createApiServer, TIMEOUTS } from "./server.ts";
import { readTransport, type TlsFiles, type TransportSettings } from "./transport.ts";

export interface ApiSettings extends TransportSettings, LimitSettings, ProxySettings, TracingSettings {
  /** Path; without one, the user's default or the pod's service account. */
  readonly kubeconfig: string | undefined;
  /** Namespace of the records. */
  readonly namespace: string;
  /** Namespaces of pipes; all when empty. */
  readonly pipeNamespaces: readonly string[];
  /** 0 for any free one. */
  readonly port: number;
  readonly opsPort: number;
  /** How old what is known of the cluster may be before reads are refused; 5 minutes if absent. */
  readonly maxCacheAgeMs?: number | undefined;
  /** Shown to whoever is asked for credentials. */
  readonly realm?: string | undefined;
  readonly pathAliases?: PathAliases | undefined;
  /** How long new connections are still taken after the signal; 0 if absent. */
  readonly drainDelayMs?: number;
  readonly tiers: Tiers;
}

const DEFAULT_REALM = "pipe-scaling";

/** From the signal to the last answer: less than a Pod's usual grace of 30 s, which KeyUsageWriter ends in. */
const ENDING_MS = 25_000;

/**
 * The API from start to end: serves until the signal is aborted, lets the requests in flight finish, and
 * resolves. A cluster that is lost later does not end it; that shows in the log and on `/readyz`.
 *
 * @throws Error with a sentence for the user when it cannot start
 */
export async function runApi(settings: ApiSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const { host, namespace, pipeNamespaces, tiers, realm = DEFAULT_REALM, drainDelayMs = 0 } = settings;
  const { maxCacheAgeMs: maxAgeMs } = settings;
  const tls = readTransport(settings);
  requireHeaderText(realm);
  const limits = new Limits(settings);
  const addresses = new ClientAddresses(settings);
  const clock = systemClock;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const metrics = new ApiMetrics(registry);
  const client = new KubeClient(await connect(settings.kubeconfig), clusterMetrics(registry));
  await checkReachable(client, signal);
  const caches = new Caches({ client, namespace, pipeNamespaces, maxAgeMs, clock, log });
  metrics.watchCaches(() => caches.states());
  const tracing = await startTracing(settings, "pipe-scaling-api", hostname(), log);
  const draining = () => signal.aborted;
  const answers = new Answers({ log, clock, draining, limits, metrics, tellSpan: tracing.tell });
  const writer = new ScalingWriter(client);
  const recordWriter = new RecordWriter(client, namespace);
  const keyUsageWriter = new KeyUsageWriter({ caches, client, namespace, clock, log });
  const listener = createApp({
    caches,
    writer,
    recordWriter,
    tiers,
    answers,
    clock,
    log,
    realm,
    limits,
    addresses,
    pathAliases: settings.pathAliases,
  });

  const server = createApiServer({ listener, answers, clock, tls, addresses });
  const drain = new Drain(server);
  const serving = new AbortController();
  const background: Promise<void>[] = [];
  let ops: Server | undefined;
  try {
    const readiness = () => readinessOf(caches, signal);
    ops = await startOpsServer({ host, port: settings.opsPort, metrics: registry, readiness });
    await listen(server, host, settings.port);
    background.push(caches.run(serving.signal), keyUsageWriter.run(serving.signal));
    if (tls) background.push(followTlsFiles({ settings, served: tls, server, clock, log }, serving.signal));
    log.info({ url: url(tls ? "https" : "http", host, server), opsUrl: url("http", host, ops) }, "listening");
    if (!signal.aborted) await once(signal, "abort");
    log.info({ drainDelayMs }, "draining");
    await pause(clock, drainDelayMs, serving.signal);
  } finally {
    // The API first: its last answers still need the caches, and the operations port tells about them.
    if (server.listening) {
      await drain.run({ clock, ...TIMEOUTS, mostMs: ENDING_MS - drainDelayMs, isServing });
    }
    ops?.close();
    ops?.closeAllConnections();
    serving.abort();
    await Promise.all(background);
    await tracing.end();
    await client.close();
  }
  log.info("stopped");
}

interface TlsOptions {
  readonly settings: TransportSettings;
  readonly served: TlsFiles;
  readonly server: Server;
  readonly clock: Clock;
  readonly log: Logger;
}

function followTlsFiles({ settings, server, ...options }: TlsOptions, signal: AbortSignal): Promise<void> {
  return followCertificate(
    {
      ...options,
      read: () => readTransport(settings) ?? options.served,
      install: (files) => {
        if (server instanceof TlsServer) server.setSecureContext(files);
      },
    },
    signal,
  );
}

function requireHeaderText(realm: string): void {
  try {
    validateHeaderValue("WWW-Authenticate", realm);
  } catch (cause) {
    throw new Error(
      `The realm ${JSON.stringify(realm)} has characters that HTTP does not allow in a header.`,
      {
        cause,
      },
    );
  }
}

function readinessOf(caches: Caches, signal: AbortSignal): Readiness {
  if (signal.aborted) return { ready: false, problem: "draining" };
  const missing = caches.notSynced();
  return missing.length === 0
    ? { ready: true }
    : { ready: false, problem: `not read from the cluster yet: ${missing.join(", ")}` };
}

function url(scheme: string, host: string, server: Server): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `${scheme}://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
