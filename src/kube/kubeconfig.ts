import { existsSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { KubeConfigError, messageOf } from "./errors.ts";

/** A cluster, with the credentials for it. */
export interface ClusterConfig {
  /** The source of this configuration, as the subject of a sentence. */
  readonly origin: string;
  readonly server: URL;
  /** The kubeconfig's `proxy-url`. */
  readonly proxyUrl: string | undefined;
  /** True for the service account of the pod that this process runs in. */
  readonly isInCluster: boolean;
  /**
   * Reads token and certificate files again, and runs the exec plugin if its last credentials have expired.
   *
   * @throws KubeConfigError
   */
  readCredentials(): Promise<Credentials>;
}

export interface Credentials {
  readonly tls: TlsOptions;
  /** `Authorization` and `Impersonate-User`, if the kubeconfig has them. */
  readonly headers: Readonly<Record<string, string>>;
}

export type TlsOptions = Pick<RequestOptions, "ca" | "cert" | "key" | "servername" | "rejectUnauthorized">;

/** Names of contexts that the client library generates. */
const IN_CLUSTER_CONTEXT = "inClusterContext";
const FALLBACK_CONTEXT = "loaded-context";

const HOW_TO_NAME_ONE = "set --kubeconfig or PIPE_SCALING_KUBECONFIG to the path of one";

/**
 * @param path of a kubeconfig; without one, as for kubectl: `KUBECONFIG`, `~/.kube/config`, or the pod's service
 * account, in this order
 * @throws KubeConfigError
 */
export function loadClusterConfig(path: string | undefined): ClusterConfig {
  const config = load(path);
  const isInCluster = path === undefined && config.getCurrentContext() === IN_CLUSTER_CONTEXT;
  const origin = isInCluster ? "The pod's service account" : kubeconfigOrigin(path);
  const cluster = config.getCurrentCluster();
  if (!cluster?.server) {
    throw new KubeConfigError(`${origin} names no cluster: set current-context to a context that does.`);
  }
  const { server, proxyUrl } = cluster;
  if (!URL.canParse(server)) {
    throw new KubeConfigError(`${origin} has "${server}" as server, which is not a URL.`);
  }
  const readCredentials = () => credentialsIn(config, origin);
  return { origin, server: new URL(server), proxyUrl, isInCluster, readCredentials };
}

function load(path: string | undefined): KubeConfig {
  if (path !== undefined && !existsSync(path)) {
    throw new KubeConfigError(`The kubeconfig ${path} does not exist: ${HOW_TO_NAME_ONE}.`);
  }
  const config = new KubeConfig();
  try {
    if (path === undefined) config.loadFromDefault();
    else config.loadFromFile(path);
  } catch (cause) {
    throw new KubeConfigError(`${kubeconfigOrigin(path)} cannot be read: ${messageOf(cause)}`, { cause });
  }
  // The library falls back to localhost, which is never intended.
  if (path === undefined && config.getCurrentContext() === FALLBACK_CONTEXT) {
    throw new KubeConfigError(`No kubeconfig was found: ${HOW_TO_NAME_ONE}.`);
  }
  return config;
}

function kubeconfigOrigin(path: string | undefined): string {
  return path === undefined ? "The default kubeconfig" : `The kubeconfig ${path}`;
}

async function credentialsIn(config: KubeConfig, origin: string): Promise<Credentials> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    throw unusableCredentials(origin, cause);
  }
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return { tls: { ca, cert, key, servername, rejectUnauthorized }, headers: headersOf(options) };
}

export function unusableCredentials(origin: string, cause: unknown): KubeConfigError {
  return new KubeConfigError(`${origin} has unusable credentials: ${messageOf(cause)}`, { cause });
}

function headersOf({ auth, headers = {} }: RequestOptions): Record<string, string> {
  const basic = auth ? [["Authorization", `Basic ${Buffer.from(auth).toString("base64")}`] as const] : [];
  // A token file can end with a line break, which no header may contain.
  const given = Object.entries(headers).map(([name, value]) => [name, String(value).trim()] as const);
  return Object.fromEntries([...given, ...basic]);
}
