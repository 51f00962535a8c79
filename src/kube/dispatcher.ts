import { type Dispatcher, EnvHttpProxyAgent, Pool } from "undici";
import type { HttpProxy } from "./proxy.ts";

export type ConnectOptions = Exclude<Pool.Options["connect"], CallableFunction | undefined>;

type ConnectionOptions = Pick<
  Pool.Options,
  "connections" | "bodyTimeout" | "keepAliveTimeout" | "maxResponseSize"
> & {
  readonly connect: ConnectOptions;
};

/** Limit for connecting to a proxy, and again for opening the tunnel. */
const PROXY_TIMEOUT_MS = 5000;

/**
 * Keep-alive connections to one server.
 *
 * @param onProxied is called when a connection is about to be opened through the proxy, which `noProxy` can prevent
 */
export function openDispatcher(
  origin: string,
  proxy: HttpProxy | undefined,
  options: ConnectionOptions,
  onProxied: (proxy: URL) => void = () => undefined,
): Dispatcher {
  // HTTP/2 costs three times the CPU in undici, and its streams throw errors that cannot be caught when their
  // connections are destroyed.
  const shared = { ...options, allowH2: false };
  if (!proxy) return new Pool(origin, shared);
  const { url, noProxy } = proxy;
  return new EnvHttpProxyAgent({
    ...shared,
    requestTls: options.connect,
    proxyTls: { timeout: PROXY_TIMEOUT_MS },
    // Not `undefined`, for which undici would read the environment of the process.
    httpProxy: "",
    httpsProxy: url.href,
    noProxy,
    clientFactory: (proxyOrigin, given) =>
      new Pool(proxyOrigin, {
        ...given,
        connectTimeout: PROXY_TIMEOUT_MS,
        headersTimeout: PROXY_TIMEOUT_MS,
      }).compose((dispatch) => (request, handler) => {
        onProxied(url);
        return dispatch(request, handler);
      }),
  });
}
