import { randomBytes } from "node:crypto";
import { accessSync, constants } from "node:fs";
import { hostname } from "node:os";
import * as z from "zod";
import { clusterOptions } from "./cli/common-options.ts";
import { option } from "./cli/option.ts";
import { readTiers, tiersFileOption } from "./cli/records/tiers.ts";
import {
  addressOrCidr,
  durationMs,
  listOf,
  namespaceName,
  nonEmptyText,
  oneOf,
  onOff,
  port,
  wholeNumber,
  written,
} from "./cli/values.ts";
import { isLoopback } from "./kube/loopback.ts";
import { LOG_LEVELS } from "./telemetry/log.ts";

const readableFile = written("it must be a file that can be read", (path) => {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return undefined;
  }
});

const collectorUrl = written(
  "it must be the address of a collector, such as http://otel-collector.observability:4318, without /v1/traces at its end",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    if (url.search || url.hash || /\/v1\/traces\/?$/.test(url.pathname)) return undefined;
    return url.href.replace(/\/+$/, "");
  },
);

/** Of characters that a URL has as they are, and none that a client would resolve (RFC 3986, sections 2.3, 5.2.4). */
const PATH_ALIAS = /^(?!\.{1,2}=)([-\w.~]+)=([-\w.~]+)$/;

const pathAlias = written(
  "each of its values must be alias=segment, both of letters, digits and -._~",
  (text): [alias: string, segment: string] | undefined => {
    const [, alias, segment] = PATH_ALIAS.exec(text) ?? [];
    return alias !== undefined && segment !== undefined ? [alias, segment] : undefined;
  },
);

const pathAliases = listOf(pathAlias).transform((pairs, context): ReadonlyMap<string, string> => {
  const aliases = new Map(pairs);
  if (aliases.size === pairs.length) return aliases;
  context.addIssue({ code: "custom", message: "no alias may come twice" });
  return z.NEVER;
});

const processOptions = {
  pipeNamespaces: option(listOf(namespaceName).optional(), {
    placeholder: "names",
    description: "namespaces where pipes run, with commas between; without it all",
    list: true,
  }),
  ...tiersFileOption,
  otlpEndpoint: option(collectorUrl.optional(), {
    placeholder: "url",
    description:
      "collector of traces that takes OTLP over HTTP, without /v1/traces; without it nothing is traced",
  }),
  logLevel: option(oneOf(...LOG_LEVELS), {
    placeholder: "level",
    description: `how much is logged: ${LOG_LEVELS.join(", ")}`,
    default: "info",
  }),
};

const host = nonEmptyText;

function opsPort(standard: string) {
  return option(port, {
    placeholder: "number",
    description: "port of /metrics, /healthz and /readyz; 0 for a free one",
    default: standard,
  });
}

export const apiOptions = z
  .object({
    ...clusterOptions,
    host: option(host, {
      placeholder: "address",
      description: "address to listen on; other than loopback only with TLS, or with --plain-http",
      default: "127.0.0.1",
    }),
    port: option(port, {
      placeholder: "number",
      description: "port of the API; 0 for a free one",
      default: "8080",
    }),
    opsPort: opsPort("9090"),
    tlsCert: option(readableFile.optional(), {
      placeholder: "file",
      description: "certificate chain for HTTPS, in PEM; goes with --tls-key",
    }),
    tlsKey: option(readableFile.optional(), {
      placeholder: "file",
      description: "private key of the certificate, in PEM",
    }),
    plainHttp: option(onOff, {
      description: "TLS ends before this process: plain HTTP is fine on any address",
      default: "false",
    }),
    trustedProxies: option(listOf(addressOrCidr).optional(), {
      placeholder: "cidrs",
      description:
        "addresses and CIDRs of proxies whose X-Forwarded-For is believed, with commas between; without it none",
      list: true,
    }),
    pathAliases: option(pathAliases.optional(), {
      placeholder: "pairs",
      description:
        "other names for segments of the API's paths, as alias=segment with commas between, such as scaling=pipesCdcScaling; without it none",
      list: true,
    }),
    rateLimit: option(wholeNumber(0, 10_000), {
      placeholder: "number",
      description: "how many requests a key may send in a window; 0 for no limit",
      default: "10",
    }),
    failedLogins: option(wholeNumber(0, 10_000), {
      placeholder: "number",
      description:
        "how many authentications may fail in a window from one address, or one IPv6 /64, before they are answered 429 in place of 401; 0 for no limit",
      default: "10",
    }),
    rateWindow: option(durationMs("1s", "55s"), {
      placeholder: "duration",
      description: "the window of both limits",
      default: "10s",
    }),
    maxCacheAge: option(durationMs("2m", "24h"), {
      placeholder: "duration",
      description:
        "how long reads are answered while the cluster cannot be reached, which is also how long a key that is revoked meanwhile can be used",
      default: "5m",
    }),
    drainDelay: option(durationMs("0s", "15s"), {
      placeholder: "duration",
      description:
        "how long it still takes new connections once it is told to stop, for load balancers to look elsewhere",
      default: "0s",
    }),
    ...processOptions,
  })
  .superRefine(({ host, plainHttp, tlsCert, tlsKey }, context) => {
    if ((tlsCert === undefined) !== (tlsKey === undefined)) {
      context.addIssue({
        code: "custom",
        message:
          "--tls-cert (or PIPE_SCALING_TLS_CERT) and --tls-key (or PIPE_SCALING_TLS_KEY) go together: give both, or neither.",
      });
    } else if (tlsCert === undefined && !plainHttp && !isLoopback(host)) {
      context.addIssue({
        code: "custom",
        message: `--host (or PIPE_SCALING_HOST) is ${JSON.stringify(host)}, and keys would cross the network in clear: give --tls-cert and --tls-key, or, if TLS ends before this process, --plain-http (or PIPE_SCALING_PLAIN_HTTP=true).`,
      });
    }
  });

export const controllerOptions = z.object({
  ...clusterOptions,
  host: option(host, {
    placeholder: "address",
    description: "address that the operations port listens on",
    default: "127.0.0.1",
  }),
  opsPort: opsPort("9091"),
  identity: option(nonEmptyText.optional(), {
    placeholder: "text",
    description: "name by which it holds the lease; without it the host's name and something random",
  }),
  rolloutTimeout: option(durationMs("1s", "24h"), {
    placeholder: "duration",
    description: "how long a pipe may take to come up with its new size before it is rolled back",
    default: "15m",
  }),
  dryRun: option(onOff, {
    description: "print what it would do first, and end; nothing is written and no lease is asked for",
    default: "false",
  }),
  maxConcurrentRollouts: option(wholeNumber(1, 10_000), {
    placeholder: "number",
    description: "how many pipes may be on their way to a new size at once, over all services",
    default: "50",
  }),
  ...processOptions,
});

export function apiSettings(values: z.output<typeof apiOptions>) {
  const { host, port, opsPort, plainHttp, tlsCert, tlsKey, drainDelay: drainDelayMs } = values;
  const { trustedProxies = [], rateLimit, failedLogins, rateWindow: rateWindowMs } = values;
  const pathAliases: ReadonlyMap<string, string> = values.pathAliases ?? new Map();
  const { maxCacheAge: maxCacheAgeMs } = values;
  const limits = { trustedProxies, rateLimit, failedLogins, rateWindowMs };
  const listening = { host, port, opsPort, plainHttp, tlsCert, tlsKey, drainDelayMs };
  return { ...shared(values), ...listening, pathAliases, maxCacheAgeMs, ...limits };
}

export function controllerSettings(values: z.output<typeof controllerOptions>) {
  const { host, opsPort, maxConcurrentRollouts, rolloutTimeout: rolloutTimeoutMs } = values;
  const identity = values.identity ?? `${hostname()}-${randomBytes(4).toString("hex")}`;
  return { ...shared(values), host, opsPort, identity, maxConcurrentRollouts, rolloutTimeoutMs };
}

function shared(values: z.output<typeof apiOptions> | z.output<typeof controllerOptions>) {
  const { kubeconfig, namespace, pipeNamespaces = [], tiersFile, otlpEndpoint } = values;
  return {
    kubeconfig,
    namespace,
    pipeNamespaces: [...new Set(pipeNamespaces)],
    otlpEndpoint,
    tiers: readTiers(tiersFile),
  };
}
