import { createSecureContext } from "node:tls";
import { isDeepStrictEqual } from "node:util";
import type { Dispatcher } from "undici";
import { abortable } from "./abortable.ts";
import { type ConnectOptions, openDispatcher } from "./dispatcher.ts";
import { KubeConfigError } from "./errors.ts";
import {
  type ClusterConfig,
  type Credentials,
  type LoadOptions,
  loadClusterConfig,
  type TlsOptions,
  unusableCredentials,
} from "./kubeconfig.ts";
import { type HttpProxy, proxyFromEnvironment, proxyFromKubeconfig } from "./proxy.ts";

/** Age at which credentials are read again. An exec plugin then runs only if they have expired or were rejected. */
const CREDENTIALS_FRESH_MS = 10_000;

/** Delay before credentials are read again after a failure or a rejection. */
const CREDENTIALS_RETRY_MS = 1000;

/** Maximum number of calls in flight; undici queues the others. */
export const MAX_CALL_CONNECTIONS = 128;

const CONNECT_TIMEOUT_MS = 5000;

/**
 * Less than the 90 s after which the API server closes idle connections, and usually enough until the next write of a
 * rollout.
 */
const KEEP_ALIVE_MS = 60_000;

/** Keep-alive connections: a new TLS connection for each call would cost fourteen times the CPU. */
interface Dispatchers {
  /** TLS options of all connections. */
  readonly tls: TlsOptions;
  readonly calls: Dispatcher;
  /** Watches hold a connection for minutes each, so they have connections of their own, without a limit. */
  readonly watches: Dispatcher;
}

/** The credentials and connections that requests use until the credentials are read again. */
export type Session = Dispatchers & Credentials;

/** Connections to one API server, with credentials that are kept up to date. */
export class Connection {
  readonly server: URL;
  /** The proxy that connections go through; undefined until the first one does. */
  proxyInUse: URL | undefined;
  readonly #config: ClusterConfig;
  readonly #proxy: HttpProxy | undefined;
  /** The last entry is in use; the entries before it finish their requests with older TLS options. */
  readonly #dispatchers: Dispatchers[] = [];
  #session: Promise<Session>;
  #staleAt = Number.POSITIVE_INFINITY;
  /** Ends the exec plugin that runs, if any. */
  readonly #closing = new AbortController();

  constructor(config: ClusterConfig, proxy: HttpProxy | undefined) {
    this.server = config.server;
    this.#config = config;
    this.#proxy = proxy;
    this.#session = this.#readSession();
    // The first request gets the error.
    this.#session.catch(() => undefined);
  }

  /** Opens more connections with the same credentials, so that an exec plugin runs once for all of them. */
  another(): Connection {
    return new Connection(this.#config, this.#proxy);
  }

  /**
   * Current credentials and connections. All requests share one read of the credentials.
   *
   * @throws KubeConfigError when the credentials cannot be read
   */
  session(): Promise<Session> {
    if (performance.now() >= this.#staleAt) {
      this.#staleAt = Number.POSITIVE_INFINITY;
      this.#session = this.#readSession();
    }
    return this.#session;
  }

  /** Call it when the API server rejects the credentials of a session: they are read again, once a second at most. */
  reject(session: Session): void {
    session.discard?.();
    this.#staleAt = Math.min(this.#staleAt, performance.now() + CREDENTIALS_RETRY_MS);
  }

  /** Ends all connections, and with them all requests in flight. */
  async close(): Promise<void> {
    this.#closing.abort(new KubeConfigError("The connection is closed."));
    await Promise.all(
      this.#dispatchers.flatMap(({ calls, watches }) => [calls.destroy(), watches.destroy()]),
    );
  }

  async #readSession(): Promise<Session> {
    try {
      const { signal } = this.#closing;
      const credentials = await abortable(this.#config.readCredentials(signal), signal);
      this.#staleAt = performance.now() + CREDENTIALS_FRESH_MS;
      return { ...credentials, ...this.#dispatchersFor(credentials.tls) };
    } catch (cause) {
      this.#staleAt = performance.now() + CREDENTIALS_RETRY_MS;
      throw cause;
    }
  }

  /** A connection cannot change its client certificate, so new certificates need new connections. */
  #dispatchersFor(tls: TlsOptions): Dispatchers {
    const current = this.#dispatchers.at(-1);
    if (current && (this.#closing.signal.aborted || isDeepStrictEqual(current.tls, tls))) return current;
    const connect = this.#connectOptions(tls);
    const opened = {
      tls,
      calls: this.#open(connect, MAX_CALL_CONNECTIONS),
      watches: this.#open(connect, null),
    };
    this.#dispatchers.push(opened);
    if (current) this.#retire(current);
    return opened;
  }

  /** Without a shared secure context, each connection would parse the certificates again, and keep them. */
  #connectOptions({ ca, cert, key, ...tls }: TlsOptions): ConnectOptions {
    try {
      return { timeout: CONNECT_TIMEOUT_MS, ...tls, secureContext: createSecureContext({ ca, cert, key }) };
    } catch (cause) {
      throw unusableCredentials(this.#config.origin, cause);
    }
  }

  #open(connect: ConnectOptions, connections: number | null): Dispatcher {
    return openDispatcher(
      this.server.origin,
      this.#proxy,
      { connections, bodyTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS, connect },
      (proxy) => {
        this.proxyInUse = proxy;
      },
    );
  }

  /** Requests in flight are completed first. */
  #retire(dispatchers: Dispatchers): void {
    const forget = () => {
      this.#dispatchers.splice(this.#dispatchers.indexOf(dispatchers), 1);
    };
    Promise.all([dispatchers.calls.close(), dispatchers.watches.close()]).then(forget, forget);
  }
}

/**
 * Reads a kubeconfig and its credentials. It does not call the API server.
 *
 * @param kubeconfig path; without one, the user's default or the pod's service account
 * @param signal ends the attempt, and an exec plugin that waits for a person to log in
 * @throws KubeConfigError; the reason of the signal
 */
export async function connect(
  kubeconfig: string | undefined,
  signal: AbortSignal = new AbortController().signal,
  options?: LoadOptions,
): Promise<Connection> {
  const config = loadClusterConfig(kubeconfig, options);
  const connection = new Connection(config, proxyOf(config));
  try {
    await abortable(connection.session(), signal);
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

function proxyOf({ server, proxyUrl, isInCluster, origin }: ClusterConfig): HttpProxy | undefined {
  if (proxyUrl) return proxyFromKubeconfig(proxyUrl, server, origin);
  // HTTPS_PROXY is for servers outside the cluster.
  if (isInCluster) return undefined;
  const { env } = process;
  return proxyFromEnvironment(env, server);
}
