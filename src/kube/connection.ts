import { existsSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { Pool } from "undici";
import { KubeConfigError } from "./errors.ts";

/** How long a token read from a file or an exec plugin is used before it is asked for again. */
const CREDENTIALS_FRESH_MS = 10_000;

/** Watches hold a connection each for minutes, so there must be room beside them. */
const MAX_CONNECTIONS = 128;

/**
 * Where the API server is and how to prove who we are. One pool of keep-alive connections serves
 * all calls: the client library would open a TLS connection for each (kubernetes-facts.md).
 */
export interface Connection {
  readonly server: string;
  readonly pool: Pool;
  authorization(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * @param kubeconfig path of a kubeconfig; without one, the Pod's own ServiceAccount or the user's default
 * @throws KubeConfigError
 */
export async function connect(kubeconfig: string | undefined): Promise<Connection> {
  const config = loadKubeConfig(kubeconfig);
  const cluster = config.getCurrentCluster();
  if (!cluster?.server) {
    throw new KubeConfigError(
      `${describe(kubeconfig)} names no cluster: set current-context to a context that does.`,
    );
  }
  const server = serverUrl(cluster.server, describe(kubeconfig));
  const tls = await credentials(config, describe(kubeconfig));
  const pool = new Pool(server.origin, {
    connections: MAX_CONNECTIONS,
    bodyTimeout: 0,
    // Through undici HTTP/2 costs three times the CPU (kubernetes-facts.md), and its streams, cut off by the
    // pool's end, throw errors that nobody can catch.
    allowH2: false,
    connect: {
      timeout: 5000,
      ...(tls.ca === undefined ? {} : { ca: tls.ca }),
      ...(tls.cert === undefined ? {} : { cert: tls.cert }),
      ...(tls.key === undefined ? {} : { key: tls.key }),
      ...(tls.servername === undefined ? {} : { servername: tls.servername }),
      ...(tls.rejectUnauthorized === undefined ? {} : { rejectUnauthorized: tls.rejectUnauthorized }),
    },
  });
  let cached = { at: performance.now(), value: authorizationOf(tls) };
  return {
    server: server.href.replace(/\/$/, ""),
    pool,
    async authorization() {
      if (performance.now() - cached.at > CREDENTIALS_FRESH_MS) {
        cached = {
          at: performance.now(),
          value: authorizationOf(await credentials(config, describe(kubeconfig))),
        };
      }
      return cached.value;
    },
    close: () => pool.destroy(),
  };
}

function describe(kubeconfig: string | undefined): string {
  return kubeconfig === undefined ? "The default kubeconfig" : `The kubeconfig ${kubeconfig}`;
}

function loadKubeConfig(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfig !== undefined && !existsSync(kubeconfig)) {
    throw new KubeConfigError(
      `The kubeconfig ${kubeconfig} does not exist: give the path of one with --kubeconfig or PIPE_SCALING_KUBECONFIG.`,
    );
  }
  try {
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
  } catch (cause) {
    throw new KubeConfigError(
      `${describe(kubeconfig)} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
  return config;
}

function serverUrl(text: string, origin: string): URL {
  if (!URL.canParse(text))
    throw new KubeConfigError(`${origin} has "${text}" as server, which is not a URL.`);
  return new URL(text);
}

/** Reads the certificates and tokens that the kubeconfig names, and runs its exec plugin if it has one. */
async function credentials(config: KubeConfig, origin: string): Promise<RequestOptions> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new KubeConfigError(`${origin} has credentials that cannot be used: ${why}`, { cause });
  }
  return options;
}

function authorizationOf(options: RequestOptions): string | undefined {
  if (typeof options.auth === "string") return `Basic ${Buffer.from(options.auth).toString("base64")}`;
  const headers = options.headers;
  if (headers === undefined || Array.isArray(headers)) return undefined;
  const value = "Authorization" in headers ? headers["Authorization"] : undefined;
  return typeof value === "string" ? value : undefined;
}
