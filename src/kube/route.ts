import { KubeConfigError } from "./errors.ts";
import { isLoopback } from "./loopback.ts";
import { isExcepted } from "./no-proxy.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy on the way to a server; `undefined` for none. */
export type Route = URL | undefined;

/**
 * By HTTPS_PROXY and NO_PROXY, in capitals or not. There is no proxy on the way to this machine itself, and none to
 * a server without TLS: it could read the credentials.
 *
 * @throws KubeConfigError
 */
export function routeOf(env: Environment, server: URL): Route {
  const text = env["https_proxy"] || env["HTTPS_PROXY"] || "";
  const noProxy = env["no_proxy"] || env["NO_PROXY"] || "";
  if (text === "" || server.protocol !== "https:" || isLoopback(server.hostname)) return undefined;
  if (isExcepted(noProxy, server)) return undefined;
  // As curl reads it.
  const proxy = proxyUrl(text.includes("://") ? text : `http://${text}`);
  // It may have a password: what it is is not repeated.
  if (!proxy) throw new KubeConfigError(`HTTPS_PROXY is no address of a proxy: ${PROXY_RULE}.`);
  return proxy;
}

export const PROXY_RULE =
  "it must be one that begins with http:// or https://, and % in a password must be written as %25";

export function proxyUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  try {
    decodeURIComponent(`${url.username}${url.password}`);
    return url;
  } catch {
    return undefined;
  }
}
