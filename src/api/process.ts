import { once } from "node:events";
import { type Server, validateHeaderValue } from "node:http";
import { isIPv6 } from "node:net";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Tiers } from "../domain/tier.ts";
import { KubeClient } from "../kube/client.ts";
import { connect } from "../kube/connection.ts";
import { checkReachable } from "../kube/reachable.ts";
import { systemClock } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/log.ts";
import { listen, type Readiness, startOpsServer } from "../telemetry/ops-server.ts";
import { Answers } from "./answers.ts";
import { createApp } from "./app.ts";
import { Caches } from "./caches.ts";
import { ScalingWriter } from "./scaling-writer.ts";
import { createApiServer } from "./server.ts";
import { readTransport, type TransportSettings } from "./transport.ts";

export interface ApiSettings extends TransportSettings {
  /** Path; without one, the Pod's own ServiceAccount or the user's default. */
  readonly kubeconfig: string | undefined;
  /** Namespace of the records. */
  readonly namespace: string;
  /** Namespaces of pipes; all when empty. */
  readonly pipeNamespaces: readonly string[];
  /** 0 for any free one. */
  readonly port: number;
  readonly opsPort: number;
  /** Shown to whoever is asked for credentials. */
  readonly realm?: string | undefined;
  readonly tiers: Tiers;
}

const DEFAULT_REALM = "pipe-scaling";

/** Requests in flight get this long to finish: less than a Pod's usual grace of 30 s. */
const DRAIN_MS = 25_000;

/**
 * The API from start to end: serves until the signal is aborted, lets the requests in flight finish, and
 * resolves. A cluster that is lost later does not end it; that shows in the log and on `/readyz`.
 *
 * @throws Error with a sentence for the user when it cannot start
 */
export async function runApi(settings: ApiSettings, log: Logger, signal: AbortSignal): Promise<void> {
  const { host, namespace, pipeNamespaces, tiers, realm = DEFAULT_REALM } = settings;
  const tls = readTransport(settings);
  requireHeaderText(realm);
  const clock = systemClock;
  const client = new KubeClient(await connect(settings.kubeconfig));
  await checkReachable(client, signal);
  const caches = new Caches({ client, namespace, pipeNamespaces, clock, log });
  const answers = new Answers({ log, clock, draining: () => signal.aborted });
  const writer = new ScalingWriter(client);
  const listener = createApp({ caches, writer, tiers, answers, clock, log, realm });

  const metrics = new Registry();
  collectDefaultMetrics({ register: metrics });
  const readiness = () => readinessOf(caches, signal);
  const watching = new AbortController();
  const servers: Server[] = [];
  let watches: Promise<void> | undefined;
  try {
    const ops = await startOpsServer({ host, port: settings.opsPort, metrics, readiness });
    servers.push(ops);
    const api = await listen(createApiServer({ listener, answers, clock, tls }), host, settings.port);
    servers.unshift(api);
    watches = caches.run(watching.signal);
    log.info({ url: url(tls ? "https" : "http", host, api), opsUrl: url("http", host, ops) }, "listening");
    if (!signal.aborted) await once(signal, "abort");
    log.info("draining");
  } finally {
    // The API first: its last answers still need the caches, and the operations port tells about them.
    for (const server of servers) await drain(server);
    watching.abort();
    await watches;
    await client.close();
  }
  log.info("stopped");
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

async function drain(server: Server): Promise<void> {
  const cancel = systemClock.after(DRAIN_MS, () => server.closeAllConnections());
  const closed = once(server, "close");
  server.close();
  await closed;
  cancel();
}

function url(scheme: string, host: string, server: Server): string {
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `${scheme}://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
