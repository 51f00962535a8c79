import { LOG_LEVELS } from "../telemetry/log.ts";
import { clusterSettings } from "./cluster.ts";
import { option } from "./option.ts";
import { sizeSettings } from "./sizes.ts";
import { tiersFileSetting } from "./tiers.ts";
import { listenAddress, listOf, namespaceName, oneOf, onOff, port, written } from "./values.ts";

const collectorUrl = written(
  "it must be the URL of a collector, such as http://otel-collector.observability:4318, without /v1/traces at the end",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    if (url.search || url.hash || /\/v1\/traces\/?$/.test(url.pathname)) return undefined;
    return url.href.replace(/\/+$/, "");
  },
);

/** The settings of both processes. In the chart, most are set once, outside `api.config` and `controller.config`. */
export const processSettings = {
  ...clusterSettings,
  pipeNamespaces: option(
    listOf(namespaceName)
      .transform((names) => [...new Set(names)])
      .optional(),
    {
      placeholder: "names",
      description: "namespaces of the pipes; all namespaces if empty",
      list: true,
      chart: false,
    },
  ),
  ...tiersFileSetting,
  ...sizeSettings,
  host: option(listenAddress, {
    placeholder: "address",
    description: "listen address; on any address other than loopback, the API requires TLS or --plain-http",
    default: "127.0.0.1",
    chart: false,
  }),
  metricsAuthentication: option(onOff, {
    description:
      "serve /metrics only to bearer tokens whose user may get the non-resource URL /metrics, as the API server decides",
    default: "false",
    chart: false,
  }),
  otlpEndpoint: option(collectorUrl.optional(), {
    placeholder: "url",
    description:
      "URL of a trace collector that accepts OTLP over HTTP, without /v1/traces; if empty, tracing is disabled",
    chart: false,
  }),
  logLevel: option(oneOf(...LOG_LEVELS), {
    placeholder: "level",
    description: `minimum log level: ${LOG_LEVELS.join(", ")}`,
    default: "info",
  }),
};

export function opsPort(standard: string) {
  return option(port, {
    placeholder: "number",
    description: "port of /metrics, /healthz and /readyz; 0 for any free port",
    default: standard,
    chart: false,
  });
}
