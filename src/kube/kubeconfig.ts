import { existsSync } from "node:fs";
import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import type { Access, Credentials } from "./access.ts";
import { KubeConfigError } from "./errors.ts";
import { type Environment, PROXY_RULE, proxyUrl, routeOf } from "./route.ts";

/**
 * @param path of a kubeconfig; without one, the user's default
 * @param env names the proxy to a cluster for which it names none
 * @throws KubeConfigError
 */
export function kubeconfigAccess(path: string | undefined, env: Environment): Access {
  const origin = path === undefined ? "The default kubeconfig" : `The kubeconfig ${path}`;
  const config = load(path, origin);
  const cluster = config.getCurrentCluster();
  if (!cluster?.server) {
    throw new KubeConfigError(`${origin} names no cluster: set current-context to a context that does.`);
  }
  const { server } = cluster;
  if (!URL.canParse(server))
    throw new KubeConfigError(`${origin} has "${server}" as server, which is not a URL.`);
  return {
    origin,
    server,
    route: cluster.proxyUrl ? ownRoute(cluster.proxyUrl, server, origin) : routeOf(env, new URL(server)),
    credentials: () => credentialsIn(config, origin),
  };
}

function ownRoute(text: string, server: string, origin: string): URL {
  const proxy = proxyUrl(text);
  if (!proxy)
    throw new KubeConfigError(`${origin} has a proxy-url that is no address of a proxy: ${PROXY_RULE}.`);
  if (server.startsWith("https:")) return proxy;
  throw new KubeConfigError(
    `${origin} has a proxy-url for a server without TLS: the proxy could read the credentials. Give the server an address that begins with https://.`,
  );
}

function load(path: string | undefined, origin: string): KubeConfig {
  const config = new KubeConfig();
  if (path !== undefined && !existsSync(path)) {
    throw new KubeConfigError(
      `The kubeconfig ${path} does not exist: give the path of one with --kubeconfig or PIPE_SCALING_KUBECONFIG.`,
    );
  }
  try {
    if (path === undefined) config.loadFromDefault();
    else config.loadFromFile(path);
  } catch (cause) {
    throw new KubeConfigError(
      `${origin} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
  return config;
}

/** Reads the certificates and tokens that the kubeconfig names, and runs its exec plugin if it has one. */
async function credentialsIn(config: KubeConfig, origin: string): Promise<Credentials> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new KubeConfigError(`${origin} has credentials that cannot be used: ${why}`, { cause });
  }
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return {
    ca: pem(ca),
    cert: pem(cert),
    key: pem(key),
    servername,
    rejectUnauthorized,
    authorization: authorizationOf(options),
  };
}

/** The library gives one text or buffer of each; Node would take more. */
function pem(value: RequestOptions["ca" | "key"]): string | Buffer | undefined {
  return typeof value === "string" || Buffer.isBuffer(value) ? value : undefined;
}

function authorizationOf({ auth, headers }: RequestOptions): string | undefined {
  if (typeof auth === "string") return `Basic ${Buffer.from(auth).toString("base64")}`;
  if (headers === undefined || Array.isArray(headers)) return undefined;
  const value = "Authorization" in headers ? headers["Authorization"] : undefined;
  return typeof value === "string" ? value : undefined;
}
