import { KubeConfigError } from "./errors.ts";
import { isLoopback } from "./loopback.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** How a server is reached: directly, by one proxy, or by the one that is for it by the usual variables. */
export type Route =
  | { readonly type: "direct" }
  | { readonly type: "proxy"; readonly url: string }
  | { readonly type: "environment"; readonly httpsProxy: string; readonly noProxy: string };

export const DIRECT: Route = { type: "direct" };

/**
 * By HTTPS_PROXY and NO_PROXY, in capitals or not, as other tools read them: to this machine itself no proxy is the way. HTTP_PROXY is not: who speaks to a
 * server without TLS is beside it, and a proxy would read the credentials.
 *
 * @throws KubeConfigError
 */
export function routeOf(env: Environment, origin: string): Route {
  const text = env["https_proxy"] ?? env["HTTPS_PROXY"] ?? "";
  const noProxy = env["no_proxy"] ?? env["NO_PROXY"] ?? "";
  if (text === "" || isLoopback(new URL(origin).hostname)) return DIRECT;
  // As curl reads it.
  const httpsProxy = text.includes("://") ? text : `http://${text}`;
  // It may have a password: what it is is not repeated.
  if (!isProxyUrl(httpsProxy))
    throw new KubeConfigError(`HTTPS_PROXY is no address of a proxy: ${PROXY_RULE}.`);
  return { type: "environment", httpsProxy, noProxy };
}

export const PROXY_RULE = "it must be one that begins with http:// or socks5://";

export function isProxyUrl(text: string): boolean {
  return /^(http|socks5):\/\//.test(text) && URL.canParse(text);
}
