import { accessSync, constants } from "node:fs";
import { isLoopback } from "../kube/loopback.ts";
import { option, UsageError, type Values } from "./option.ts";
import { pathAliases } from "./path-aliases.ts";
import { opsPort, processSettings } from "./process.ts";
import { requireDefaultsWithin } from "./sizes.ts";
import { readTiers } from "./tiers.ts";
import { addressOrCidr, durationMs, integer, listOf, onOff, port, written } from "./values.ts";

const readableFile = written("it must be a readable file", (path) => {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return undefined;
  }
});

const rateLimitSettings = {
  rateLimit: option(integer(0, 10_000), {
    placeholder: "number",
    description: "requests allowed per API key and window, counted by each process; 0 for no limit",
    default: "10",
  }),
  failedLogins: option(integer(0, 10_000), {
    placeholder: "number",
    description:
      "failed authentications allowed per client address (IPv6: per /64) and window; after that the response is 429 instead of 401; 0 for no limit",
    default: "10",
  }),
  // Clients of this family of APIs do not wait for a reset that is more than a minute away.
  rateWindowMs: option(durationMs("1s", "55s"), {
    placeholder: "duration",
    description: "window of the request limit and the failed-login limit",
    default: "10s",
  }),
};

export type RateLimitSettings = Values<typeof rateLimitSettings>;

const tlsSettings = {
  tlsCert: option(readableFile.optional(), {
    placeholder: "file",
    description: "PEM certificate chain for HTTPS; requires --tls-key",
    chart: false,
  }),
  tlsKey: option(readableFile.optional(), {
    placeholder: "file",
    description: "PEM private key of the certificate",
    chart: false,
  }),
  plainHttp: option(onOff, {
    description: "TLS is terminated in front of this process; allow plain HTTP on any address",
    default: "false",
    chart: false,
  }),
};

export type TlsSettings = Values<typeof tlsSettings> & { readonly host: string };

export const apiSettings = {
  ...processSettings,
  port: option(port, {
    placeholder: "number",
    description: "port of the API; 0 for any free port",
    default: "8080",
    chart: false,
  }),
  opsPort: opsPort("9090"),
  ...tlsSettings,
  trustedProxies: option(listOf(addressOrCidr).optional(), {
    placeholder: "cidrs",
    description:
      "addresses and CIDRs of proxies whose X-Forwarded-For is trusted; if empty, clients behind a proxy all have the address of the proxy",
    list: true,
  }),
  pathAliases: option(pathAliases.optional(), {
    placeholder: "pairs",
    description: "alternative names of path segments, as alias=segment, such as scaling=pipesCdcScaling",
    list: true,
    chart: {
      default: {},
      description:
        "alternative names of path segments, as `alias: segment`, such as `scaling: pipesCdcScaling`",
    },
  }),
  ...rateLimitSettings,
  disableDocsPage: option(onOff, {
    description:
      "do not serve /docs, the page that shows the OpenAPI document; the document itself stays at /openapi.json",
    default: "false",
  }),
  maxBoostMs: option(durationMs("1m", "8760h"), {
    placeholder: "duration",
    description: "maximum time between the request for a boost and its end",
    default: "720h",
  }),
  maxCacheAgeMs: option(durationMs("2m", "24h"), {
    placeholder: "duration",
    description:
      "maximum age of the caches that serve reads while the API server is unreachable; until then, a key that is revoked meanwhile still works",
    default: "5m",
  }),
  // The maximum exceeds the longest idle timeout of a common HTTP load balancer, 4,000 s on AWS.
  keepAliveMs: option(durationMs("5s", "2h"), {
    placeholder: "duration",
    description:
      "time that a connection may wait for its next request before it is closed; must be longer than the idle timeout of the load balancer, which otherwise sends requests on closed connections",
    default: "75s",
  }),
  drainDelayMs: option(durationMs("0s", "15s"), {
    placeholder: "duration",
    description:
      "time between a termination signal and the rejection of new connections, so that load balancers can remove the process",
    default: "0s",
    chart: { default: "5s" },
  }),
};

export type ApiSettings = Omit<ReturnType<typeof toApiSettings>, "logLevel">;

/** @throws UsageError if the settings do not fit together, or the tiers file is invalid */
export function toApiSettings(values: Values<typeof apiSettings>) {
  requireEncryption(values);
  requireTwoPorts(values);
  const { tiersFile, ...settings } = values;
  const pipeNamespaces: readonly string[] = values.pipeNamespaces ?? [];
  const trustedProxies: readonly string[] = values.trustedProxies ?? [];
  const aliases: ReadonlyMap<string, string> = values.pathAliases ?? new Map();
  const tiers = readTiers(tiersFile);
  requireDefaultsWithin(values.maximumCores, tiers);
  return { ...settings, pipeNamespaces, trustedProxies, pathAliases: aliases, tiers };
}

function requireTwoPorts({
  port: own,
  opsPort: ops,
}: Pick<Values<typeof apiSettings>, "port" | "opsPort">): void {
  if (own !== ops || own === 0) return;
  throw new UsageError(
    `--port (or PIPE_SCALING_PORT) and --ops-port (or PIPE_SCALING_OPS_PORT) are both ${own}: set one of them to another port.`,
  );
}

/** Every request contains a secret, so plain HTTP on an address other than loopback needs a setting that allows it. */
function requireEncryption({ host, plainHttp, tlsCert, tlsKey }: TlsSettings): void {
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new UsageError(
      "--tls-cert (or PIPE_SCALING_TLS_CERT) and --tls-key (or PIPE_SCALING_TLS_KEY) must be set together: set both or neither.",
    );
  }
  if (tlsCert !== undefined || plainHttp || isLoopback(host)) return;
  throw new UsageError(
    `--host (or PIPE_SCALING_HOST) is ${JSON.stringify(host)}, and API keys would cross the network unencrypted: set --tls-cert and --tls-key, or --plain-http (or PIPE_SCALING_PLAIN_HTTP=true) if TLS is terminated in front of this process.`,
  );
}
