import { once } from "node:events";
import type { Server } from "node:http";
import { hostname } from "node:os";
import { Server as TlsServer } from "node:tls";
import { Registry } from "prom-client";
import { sizeOfCores } from "../domain/size.ts";
import { KubeClient } from "../kube/client.ts";
import { connect } from "../kube/connection.ts";
import { checkReachable, isTransient } from "../kube/reachable.ts";
import { type Clock, pause, systemClock } from "../runtime/clock.ts";
import type { ApiSettings, TlsSettings } from "../settings/api.ts";
import { expirationOf, readTlsFiles, type TlsFiles } from "../settings/tls-files.ts";
import { buildInfo } from "../telemetry/build-info.ts";
import { clusterMetrics } from "../telemetry/cluster-metrics.ts";
import { dropLog } from "../telemetry/drop-log.ts";
import type { Logger } from "../telemetry/log.ts";
import { metricsAccess } from "../telemetry/metrics-access.ts";
import { listen, type Readiness, startOpsServer, urlOf } from "../telemetry/ops-server.ts";
import { processMetrics } from "../telemetry/process-metrics.ts";
import { startTracing } from "../telemetry/tracing.ts";
import { createApp } from "./app.ts";
import { ClusterCache } from "./cluster/cluster-cache.ts";
import { KeyUsageWriter } from "./cluster/key-usage/writer.ts";
import { LiveReader } from "./cluster/live-reader.ts";
import { PipeScalingWriter } from "./cluster/pipe-scaling-writer.ts";
import { RecordWriter } from "./cluster/record-writer.ts";
import { WriteQueue } from "./cluster/write-queue.ts";
import { ApiMetrics } from "./metrics.ts";
import { TrustedProxies } from "./middleware/client-ip.ts";
import { RateLimits } from "./middleware/rate-limit/limits.ts";
import { reloadCertificate } from "./server/certificate-reload.ts";
import { shutDownGracefully } from "./server/graceful-shutdown.ts";
import { createHttpServer, TIMEOUTS } from "./server/http-server.ts";

/**
 * Maximum time from the signal to the last response. A pod has 30 s by default. After the last response, the last key
 * usage and the last spans take up to 3 s, concurrently, and the end of the process up to 3 s more (run-process.ts).
 */
const LAST_RESPONSE_MS = 21_000;

/**
 * Runs the API until the signal is aborted, completes the requests in flight, and resolves. While the cluster is
 * unreachable, the API keeps running and logs that. `/readyz` reports it only until the caches have been filled once.
 *
 * @throws Error with a sentence for the user when it cannot start
 */
export async function runApi(settings: ApiSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const { host, namespace, pipeNamespaces, maxCacheAgeMs: maxAgeMs, keepAliveMs, drainDelayMs } = settings;
  const tls = readTlsFiles(settings);
  const limits = new RateLimits(settings);
  const trustedProxies = new TrustedProxies(settings.trustedProxies);
  const clock = systemClock;
  const registry = new Registry();
  processMetrics(registry);
  buildInfo(registry);
  const metrics = new ApiMetrics(registry);
  const client = new KubeClient(await connect(settings.kubeconfig, signal), clusterMetrics(registry));
  await checkConfiguration(client, log, signal);
  const cache = new ClusterCache({ client, namespace, pipeNamespaces, maxAgeMs, clock, log });
  metrics.watchCaches(() => cache.states());
  const tracing = await startTracing(settings, "pipe-scaling-api", hostname(), log);
  const keyUsageWriter = new KeyUsageWriter({ cache, client, namespace, clock, log });
  const app = createApp({
    cache,
    clock,
    log,
    limits,
    trustedProxies,
    metrics,
    recordSpan: tracing.recordSpan,
    isShuttingDown: () => signal.aborted,
    tiers: settings.tiers,
    maximumSize: sizeOfCores(settings.maximumCores),
    pathAliases: settings.pathAliases,
    maxBoostMs: settings.maxBoostMs,
    disableDocsPage: settings.disableDocsPage,
    liveReader: new LiveReader(client),
    scalingWriter: new PipeScalingWriter(client),
    scalingWrites: new WriteQueue(clock),
    recordWriter: new RecordWriter(client, namespace),
    memberWrites: new WriteQueue(clock),
    backupWrites: new WriteQueue(clock),
  });

  const monotonic = () => clock.monotonic();
  const logDrop = dropLog({ log, monotonic, listener: "api" });
  const { server, connections } = createHttpServer({
    app,
    tls,
    clock,
    log,
    metrics,
    limits,
    timeouts: { ...TIMEOUTS, keepAliveMs },
    isTrustedProxy: (address) => trustedProxies.has(address),
    onDrop(reason, source) {
      metrics.connectionDropped(reason);
      logDrop(reason, source);
    },
  });
  const serving = new AbortController();
  const background: Promise<void>[] = [];
  let ops: Server | undefined;
  try {
    const readiness = () => readinessOf(cache, signal);
    const access = metricsAccess(settings, { client, monotonic, log });
    ops = await startOpsServer({
      host,
      port: settings.opsPort,
      metrics: registry,
      readiness,
      access,
      monotonic,
      log,
    });
    await listen(server, host, settings.port, log);
    background.push(cache.run(serving.signal), keyUsageWriter.run(serving.signal));
    if (tls) {
      metrics.certificateInstalled(expirationOf(tls));
      background.push(reloadTlsFiles({ settings, served: tls, server, metrics, clock, log }, serving.signal));
    }
    log.info({ url: urlOf(server, tls ? "https" : "http"), opsUrl: urlOf(ops) }, "listening");
    if (!signal.aborted) await once(signal, "abort");
    log.info({ drainDelayMs }, "draining");
    await pause(clock, drainDelayMs, serving.signal);
  } finally {
    // The server of the API closes first: the last responses need the caches, and the metrics on the operations port
    // include them.
    if (server.listening) {
      const maxMs = LAST_RESPONSE_MS - drainDelayMs;
      await shutDownGracefully({ server, connections, clock, headersMs: TIMEOUTS.headersMs, maxMs });
    }
    ops?.close();
    ops?.closeAllConnections();
    serving.abort();
    await Promise.all([...background, tracing.end()]);
    await client.close();
  }
  log.info("stopped");
}

/**
 * Fails if only a person can correct the connection to the cluster. An API server that does not respond, or is busy, is
 * only logged, because the caches retry. Until they are filled, requests with credentials get 503.
 */
async function checkConfiguration(client: KubeClient, log: Logger, signal: AbortSignal): Promise<void> {
  try {
    await checkReachable(client, signal);
  } catch (err) {
    if (!isTransient(err)) throw err;
    log.warn({ err }, "the API server does not respond; trying again");
  }
}

interface TlsReloadOptions {
  readonly settings: TlsSettings;
  readonly served: TlsFiles;
  readonly server: Server;
  readonly metrics: ApiMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

function reloadTlsFiles(
  { settings, server, metrics, ...options }: TlsReloadOptions,
  signal: AbortSignal,
): Promise<void> {
  return reloadCertificate(
    {
      ...options,
      read: () => readTlsFiles(settings) ?? options.served,
      install: (files) => {
        if (server instanceof TlsServer) server.setSecureContext(files);
        metrics.certificateInstalled(expirationOf(files));
      },
    },
    signal,
  );
}

function readinessOf(cache: ClusterCache, signal: AbortSignal): Readiness {
  if (signal.aborted) return { ready: false, problem: "draining" };
  const missing = cache.notSynced();
  return missing.length === 0
    ? { ready: true }
    : { ready: false, problem: `not read from the cluster yet: ${missing.join(", ")}` };
}
