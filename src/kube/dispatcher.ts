import { type Dispatcher, EnvHttpProxyAgent, Pool, ProxyAgent } from "undici";
import type { Route } from "./route.ts";

type ConnectionOptions = Pick<Pool.Options, "connections" | "bodyTimeout" | "maxResponseSize" | "allowH2"> & {
  readonly connect: Exclude<Pool.Options["connect"], CallableFunction | undefined>;
};

/** Keep-alive connections to one server. */
export function dispatcherTo(origin: string, route: Route, options: ConnectionOptions): Dispatcher {
  const proxied = { ...options, requestTls: options.connect };
  switch (route.type) {
    case "direct":
      return new Pool(origin, options);
    case "proxy":
      return new ProxyAgent({ ...proxied, uri: route.url });
    case "environment": {
      const { httpsProxy, noProxy } = route;
      return new EnvHttpProxyAgent({ ...proxied, httpProxy: "", httpsProxy, noProxy });
    }
  }
}
