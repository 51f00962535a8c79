import fs from "node:fs";
import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { KubeConfigError, messageOf } from "./errors.ts";
import { ExecPlugin, PLUGIN_TIMEOUT_MS } from "./exec-plugin.ts";
import { type CurrentEntries, type KubeconfigUser, readKubeconfig } from "./kubeconfig-files.ts";
import type { Environment } from "./proxy.ts";

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
   * Reads token and certificate files again, and runs the exec plugin if its last credentials have expired or were
   * discarded. The plugin ends when the signal is aborted.
   *
   * @throws KubeConfigError
   */
  readCredentials(signal: AbortSignal): Promise<Credentials>;
}

export interface Credentials {
  readonly tls: TlsOptions;
  /** `Authorization` and `Impersonate-*`, if the kubeconfig has them. */
  readonly headers: RequestHeaders;
  /** Call it when the API server rejects the credentials: the next read runs the plugin again. Absent without one. */
  discard?(): void;
}

export type RequestHeaders = Readonly<Record<string, string | string[]>>;

export type TlsOptions = Pick<RequestOptions, "ca" | "cert" | "key" | "servername" | "rejectUnauthorized">;

const TOKEN_OF_POD = "/var/run/secrets/kubernetes.io/serviceaccount/token";

const HOW_TO_NAME_ONE = "set --kubeconfig or PIPE_SCALING_KUBECONFIG to the path of one";

export interface LoadOptions {
  /** Maximum time of a run of the exec plugin. */
  readonly pluginTimeoutMs?: number | undefined;
  /** Context of the kubeconfig; by default its current context. */
  readonly context?: string | undefined;
}

/**
 * @param path the kubeconfig; by default, as for kubectl, `KUBECONFIG`, `~/.kube/config`, or the service account of the
 *   pod, in this order
 * @throws KubeConfigError
 */
export function loadClusterConfig(
  path: string | undefined,
  { pluginTimeoutMs = PLUGIN_TIMEOUT_MS, context }: LoadOptions = {},
): ClusterConfig {
  const { env } = process;
  const entries = readKubeconfig(path, env, context);
  if (entries) return configOf(entries, env, pluginTimeoutMs);
  if (path !== undefined) {
    throw new KubeConfigError(`The kubeconfig ${path} does not exist: ${HOW_TO_NAME_ONE}.`);
  }
  const isInPod = env["KUBERNETES_SERVICE_HOST"] && env["KUBERNETES_SERVICE_PORT"];
  if (isInPod && context === undefined && fs.existsSync(TOKEN_OF_POD)) {
    return configOfPod();
  }
  const missing = env["KUBECONFIG"]
    ? `No file in KUBECONFIG (${env["KUBECONFIG"]}) exists`
    : "No kubeconfig was found";
  throw new KubeConfigError(`${missing}: ${HOW_TO_NAME_ONE}.`);
}

function configOfPod(): ClusterConfig {
  const library = new KubeConfig();
  library.loadFromCluster();
  const origin = "The pod's service account";
  const server = serverUrl(library.getCurrentCluster()?.server ?? "", origin);
  const read = async () => {
    const { tls, headers } = await credentialsIn(library);
    // The library keeps the token for a minute of wall-clock time, even after the server has rejected it.
    return { tls, headers: { ...headers, ...bearer(fs.readFileSync(TOKEN_OF_POD, "utf8").trim()) } };
  };
  const readCredentials = () => usable(origin, read);
  return { origin, server, proxyUrl: undefined, isInCluster: true, readCredentials };
}

function configOf(entries: CurrentEntries, env: Environment, pluginTimeoutMs: number): ClusterConfig {
  const { origin, cluster, user } = entries;
  const server = serverUrl(cluster.server, origin);
  const isSecure = server.protocol === "https:";
  const contradiction = contradictionIn(entries, isSecure);
  if (contradiction !== undefined) throw new KubeConfigError(`${origin} has ${contradiction}.`);
  const library = libraryConfig(entries);
  const plugin = user.exec ? new ExecPlugin(user.exec, cluster, env, pluginTimeoutMs) : undefined;
  const impersonation = impersonationOf(user);
  const read = async (signal: AbortSignal): Promise<Credentials> => {
    // Like kubectl, sends no credentials without TLS. If the server is a `kubectl proxy`, it adds those of its user.
    if (!isSecure) return { tls: {}, headers: impersonation };
    const { tls, headers } = await credentialsIn(library);
    const given = { ...headers, ...bearer(tokenInFile(user)), ...impersonation };
    if (!plugin || tls.cert || "Authorization" in given) return { tls, headers: given };
    const ofPlugin = await plugin.credentials(signal);
    const { token, clientCertificateData: cert, clientKeyData: key } = ofPlugin;
    return {
      tls: cert === undefined ? tls : { ...tls, cert, key },
      headers: { ...given, ...bearer(token) },
      discard: () => plugin.discard(ofPlugin),
    };
  };
  const readCredentials = (signal: AbortSignal) => usable(origin, () => read(signal), signal);
  return { origin, server, proxyUrl: cluster["proxy-url"], isInCluster: false, readCredentials };
}

/** Like kubectl, accepts an address without a scheme, which is then one without TLS, or without a host. */
function serverUrl(server: string, origin: string): URL {
  const withScheme = server.includes("://") ? server : `http://${server}`;
  const url = withScheme.replace("://:", "://127.0.0.1:");
  if (URL.canParse(url)) return new URL(url);
  // The message does not repeat the value, which can contain a password.
  throw new KubeConfigError(`${origin} has a server that is not a URL.`);
}

/**
 * Returns the first contradiction that kubectl refuses too, as the object of "has". The request would otherwise act for
 * another user than intended, or not verify the server although it could.
 */
function contradictionIn({ cluster, user }: CurrentEntries, isSecure: boolean): string | undefined {
  const { token, tokenFile, username, password } = user;
  const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
  const authority = cluster["certificate-authority-data"] ?? cluster["certificate-authority"];
  const certificate = user["client-certificate-data"] ?? user["client-certificate"];
  const key = user["client-key-data"] ?? user["client-key"];
  const isPartOfUser = uid !== undefined || groups.length > 0 || Object.keys(extra).length > 0;
  const hasTwoUsers = token !== undefined && (username ?? password) !== undefined;
  // kubectl reads a token file only for a server with TLS.
  const hasOtherUserInFile = isSecure && tokenFile !== undefined && username !== undefined;
  const contradictions: readonly (readonly [boolean, string])[] = [
    [
      isPartOfUser && as === undefined,
      "as-uid, as-groups or as-user-extra without as: set as to the user to impersonate, or remove them",
    ],
    [hasTwoUsers || hasOtherUserInFile, "a token together with a username or a password: remove one of them"],
    [
      certificate !== undefined && key === undefined,
      "a client certificate without a key: set client-key or client-key-data",
    ],
    [
      Boolean(user.exec && user["auth-provider"]),
      "an exec plugin together with an auth-provider: remove one of them",
    ],
    [
      isSecure && authority !== undefined && cluster["insecure-skip-tls-verify"],
      "a certificate authority together with insecure-skip-tls-verify: remove one of them",
    ],
  ];
  return contradictions.find(([applies]) => applies)?.[1];
}

/** The part of the kubeconfig that the library reads as kubectl does. */
function libraryConfig({ cluster, user }: CurrentEntries): KubeConfig {
  const name = "current";
  const { "proxy-url": _, ...ofCluster } = cluster;
  const { exec: _exec, as: _as, ...ofUser } = user;
  const config = {
    clusters: [{ name, cluster: withoutFiles(ofCluster) }],
    users: [{ name, user: withoutFiles(ofUser) }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  };
  const library = new KubeConfig();
  library.loadFromString(JSON.stringify(config));
  return library;
}

/** Omits a file if the entry contains its data, because the library would prefer the file. */
function withoutFiles(entry: object): object {
  return Object.fromEntries(
    Object.entries(entry).filter(([key]) => Reflect.get(entry, `${key}-data`) === undefined),
  );
}

async function usable<T>(origin: string, read: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await read();
  } catch (cause) {
    signal?.throwIfAborted();
    throw unusableCredentials(origin, cause);
  }
}

export function unusableCredentials(origin: string, cause: unknown): KubeConfigError {
  return new KubeConfigError(`${origin} has unusable credentials: ${messageOf(cause)}`, { cause });
}

async function credentialsIn(library: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  await library.applyToHTTPSOptions(options);
  const { ca, cert, key, servername, rejectUnauthorized, auth, headers = {} } = options;
  const basic = auth ? [["Authorization", `Basic ${Buffer.from(auth).toString("base64")}`] as const] : [];
  // A token file can end with a line break, which no header may contain.
  const given = Object.entries(headers).map(([name, value]) => [name, String(value).trim()] as const);
  return {
    tls: { ca, cert, key, servername, rejectUnauthorized },
    headers: Object.fromEntries([...given, ...basic]),
  };
}

function bearer(token: string | undefined): RequestHeaders {
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
}

/**
 * Returns `undefined` if the kubeconfig names no file, or if the file cannot be read and the kubeconfig has a token to
 * use instead.
 */
function tokenInFile({ token, tokenFile }: KubeconfigUser): string | undefined {
  if (tokenFile === undefined) return undefined;
  try {
    return fs.readFileSync(tokenFile, "utf8").trim();
  } catch (cause) {
    if (token === undefined) throw cause;
    return undefined;
  }
}

function impersonationOf(user: KubeconfigUser): RequestHeaders {
  if (user.as === undefined) return {};
  const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
  const ofExtra = Object.entries(extra).map(([key, values]) => [`Impersonate-Extra-${escaped(key)}`, values]);
  return {
    "Impersonate-User": as,
    ...(uid === undefined ? {} : { "Impersonate-Uid": uid }),
    ...(groups.length === 0 ? {} : { "Impersonate-Group": groups }),
    ...Object.fromEntries(ofExtra),
  };
}

/** The API server decodes the key. A header name may contain only these characters (RFC 9110, token). */
function escaped(key: string): string {
  return key.replace(/[^!#$&'*+.^_`|~0-9A-Za-z-]/gu, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join(""),
  );
}
