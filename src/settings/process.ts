import { LOG_LEVELS } from "../telemetry/log.ts";
import { clusterSettings } from "./cluster.ts";
import { option } from "./option.ts";
import { tiersFileSetting } from "./tiers.ts";
import { listOf, namespaceName, nonEmptyText, oneOf, port, written } from "./values.ts";

const collectorUrl = written(
  "it must be the address of a collector, such as http://otel-collector.observability:4318, without /v1/traces at its end",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    if (url.search || url.hash || /\/v1\/traces\/?$/.test(url.pathname)) return undefined;
    return url.href.replace(/\/+$/, "");
  },
);

/** The settings of both processes. The chart has most of them in places of their own, because both share them. */
export const processSettings = {
  ...clusterSettings,
  pipeNamespaces: option(
    listOf(namespaceName)
      .transform((names) => [...new Set(names)])
      .optional(),
    {
      placeholder: "names",
      description: "namespaces of the pipes; without it all namespaces",
      list: true,
      chart: false,
    },
  ),
  ...tiersFileSetting,
  host: option(nonEmptyText, {
    placeholder: "address",
    description: "address to listen on; the API needs TLS or --plain-http for any but a loopback address",
    default: "127.0.0.1",
    chart: false,
  }),
  otlpEndpoint: option(collectorUrl.optional(), {
    placeholder: "url",
    description:
      "collector of traces that takes OTLP over HTTP, without /v1/traces; without it nothing is traced",
    chart: false,
  }),
  logLevel: option(oneOf(...LOG_LEVELS), {
    placeholder: "level",
    description: `lowest level of the log lines that are written: ${LOG_LEVELS.join(", ")}`,
    default: "info",
  }),
};

export function opsPort(standard: string) {
  return option(port, {
    placeholder: "number",
    description: "port of /metrics, /healthz and /readyz; 0 for a free one",
    default: standard,
    chart: false,
  });
}
