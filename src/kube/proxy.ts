import { KubeConfigError } from "./errors.ts";
import { isLoopback } from "./loopback.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface HttpProxy {
  readonly url: URL;
  /** Hosts that bypass the proxy, as in `NO_PROXY`. */
  readonly noProxy: string;
}

const PROXY_RULE =
  "it must be an http:// or https:// URL, and special characters in the user name or password must be percent-encoded, for example % as %25 and # as %23";

/**
 * Returns the proxy in the environment for a server. Loopback addresses bypass it, and so do servers without TLS,
 * because the proxy could read and change all requests and responses.
 *
 * @returns `undefined` if no proxy is set or the server bypasses it
 * @throws KubeConfigError
 */
export function proxyFromEnvironment(env: Environment, server: URL): HttpProxy | undefined {
  const text = env["https_proxy"] || env["HTTPS_PROXY"] || "";
  if (text === "" || server.protocol !== "https:" || isLoopback(server.hostname)) return undefined;
  // Like curl and kubectl, accept an address without a scheme.
  const url = parseProxyUrl(text.includes("://") ? text : `http://${text}`);
  // The message does not repeat the value, which can contain a password.
  if (!url) throw new KubeConfigError(`HTTPS_PROXY is not a valid proxy URL: ${PROXY_RULE}.`);
  return { url, noProxy: env["no_proxy"] || env["NO_PROXY"] || "" };
}

/**
 * Returns the proxy in a kubeconfig for its cluster.
 *
 * @param origin the kubeconfig, as the subject of a sentence
 * @throws KubeConfigError
 */
export function proxyFromKubeconfig(proxyUrl: string, server: URL, origin: string): HttpProxy {
  const url = parseProxyUrl(proxyUrl);
  if (!url) {
    throw new KubeConfigError(`${origin} has an invalid proxy-url: ${PROXY_RULE}.`);
  }
  if (server.protocol !== "https:") {
    throw new KubeConfigError(
      `${origin} has a proxy-url for a server without TLS, so the proxy could read and change everything: set server to an https:// URL.`,
    );
  }
  return { url, noProxy: "" };
}

function parseProxyUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  try {
    decodeURIComponent(`${url.username}${url.password}`);
    return url;
  } catch {
    return undefined;
  }
}
