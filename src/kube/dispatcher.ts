import { type Dispatcher, Pool, ProxyAgent } from "undici";
import type { Route } from "./route.ts";

type ConnectionOptions = Pick<Pool.Options, "connections" | "bodyTimeout" | "maxResponseSize" | "allowH2"> & {
  readonly connect: Exclude<Pool.Options["connect"], CallableFunction | undefined>;
};

/** Until a proxy is connected to, and again until it has made the tunnel: a request waits for both, whatever its signal. */
const PROXY_MS = 5000;

/** Keep-alive connections to one server. */
export function dispatcherTo(origin: string, route: Route, options: ConnectionOptions): Dispatcher {
  if (route === undefined) return new Pool(origin, options);
  return new ProxyAgent({
    ...options,
    uri: route.href,
    requestTls: options.connect,
    proxyTls: { timeout: PROXY_MS },
    clientFactory: (proxy, given) =>
      new Pool(proxy, { ...given, connectTimeout: PROXY_MS, headersTimeout: PROXY_MS }),
  });
}
