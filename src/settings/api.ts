import { accessSync, constants } from "node:fs";
import * as z from "zod";
import { isLoopback } from "../kube/loopback.ts";
import { option } from "./option.ts";
import { pathAliases } from "./path-aliases.ts";
import { opsPort, processSettings } from "./process.ts";
import { readTiers } from "./tiers.ts";
import { addressOrCidr, durationMs, integer, listOf, onOff, port, written } from "./values.ts";

const readableFile = written("it must be a file that can be read", (path) => {
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
    description: "requests that a key may send in a window; 0 for no limit; each process counts by itself",
    default: "10",
  }),
  failedLogins: option(integer(0, 10_000), {
    placeholder: "number",
    description:
      "authentications that may fail in a window from one address, or one IPv6 /64, before the response is 429 instead of 401; 0 for no limit",
    default: "10",
  }),
  // Clients of this family of APIs give up on a reset that is more than a minute away.
  rateWindowMs: option(durationMs("1s", "55s"), {
    placeholder: "duration",
    description: "the window of both limits",
    default: "10s",
  }),
};

export type RateLimitSettings = z.output<z.ZodObject<typeof rateLimitSettings>>;

const tlsSettings = {
  tlsCert: option(readableFile.optional(), {
    placeholder: "file",
    description: "certificate chain for HTTPS, in PEM; goes with --tls-key",
    chart: false,
  }),
  tlsKey: option(readableFile.optional(), {
    placeholder: "file",
    description: "private key of the certificate, in PEM",
    chart: false,
  }),
  plainHttp: option(onOff, {
    description: "TLS ends before this process: plain HTTP is fine on any address",
    default: "false",
    chart: false,
  }),
};

export type TlsSettings = z.output<z.ZodObject<typeof tlsSettings>> & { readonly host: string };

export const apiSettings = z
  .object({
    ...processSettings,
    port: option(port, {
      placeholder: "number",
      description: "port of the API; 0 for a free one",
      default: "8080",
      chart: false,
    }),
    opsPort: opsPort("9090"),
    ...tlsSettings,
    trustedProxies: option(listOf(addressOrCidr).optional(), {
      placeholder: "cidrs",
      description:
        "addresses and CIDRs of the proxies in front whose X-Forwarded-For is trusted; without it none, and behind a proxy the addresses of clients are unknown",
      list: true,
    }),
    pathAliases: option(pathAliases.optional(), {
      placeholder: "pairs",
      description:
        "other names for segments of the API's paths, as alias and segment, such as scaling=pipesCdcScaling",
      list: true,
      chart: { default: {} },
    }),
    ...rateLimitSettings,
    maxCacheAgeMs: option(durationMs("2m", "24h"), {
      placeholder: "duration",
      description:
        "time for which reads are answered while the cluster cannot be reached, and a key that is revoked meanwhile still works",
      default: "5m",
    }),
    drainDelayMs: option(durationMs("0s", "15s"), {
      placeholder: "duration",
      description:
        "time for which it still accepts new connections after it was told to stop, so that load balancers can notice",
      default: "0s",
      chart: { default: "5s" },
    }),
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
        message: `--host (or PIPE_SCALING_HOST) is ${JSON.stringify(host)}, and keys would cross the network unencrypted: give --tls-cert and --tls-key, or, if TLS ends before this process, --plain-http (or PIPE_SCALING_PLAIN_HTTP=true).`,
      });
    }
  });

export type ApiSettings = Omit<ReturnType<typeof toApiSettings>, "logLevel">;

/** @throws UsageError with what is wrong with the tiers file */
export function toApiSettings(values: z.output<typeof apiSettings>) {
  const { tiersFile, ...settings } = values;
  const pipeNamespaces: readonly string[] = values.pipeNamespaces ?? [];
  const trustedProxies: readonly string[] = values.trustedProxies ?? [];
  const aliases: ReadonlyMap<string, string> = values.pathAliases ?? new Map();
  return { ...settings, pipeNamespaces, trustedProxies, pathAliases: aliases, tiers: readTiers(tiersFile) };
}
