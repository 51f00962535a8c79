import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { CompletedRequest } from "./middleware/completed-request.ts";
import { DROP_REASONS, type DropReason } from "./server/connections.ts";

/** Most responses come from the caches within a millisecond; a call to the cluster takes at most 5 s. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A client may send any text as the method; all other methods share one label value. */
const METHODS = new Set(["GET", "HEAD", "PATCH", "DELETE", "POST", "PUT", "OPTIONS"]);

/** The state of the cache of one resource. */
export interface CacheState {
  readonly resource: string;
  /** Empty if the cache covers all namespaces. */
  readonly namespace: string;
  readonly isSynced: boolean;
  /** Since the cluster last confirmed that the cache is current. */
  readonly ageMs: number;
  /** The number of cached objects that cannot be read. */
  readonly malformed: number;
}

/** The children of the request metrics for one method and route, created once. */
interface RouteSeries {
  readonly duration: Histogram.Internal<"method" | "route">;
  readonly requests: (status: number) => Counter.Internal;
}

/** The part of a completed request that the metrics depend on. */
interface CountedRequest extends Pick<CompletedRequest, "route" | "status" | "durationMs"> {
  readonly request: Pick<CompletedRequest["request"], "method" | "headers">;
  readonly context: { readonly key: object | undefined };
}

/** The metrics of the API. Every label has a bounded set of values, and no value is text from a client. */
export class ApiMetrics {
  readonly #registry: Registry;
  readonly #requests: Counter<"method" | "route" | "code">;
  readonly #duration: Histogram<"method" | "route">;
  readonly #byRoute = new Map<string, Map<string, RouteSeries>>();
  readonly #authentications: Record<"accepted" | "absent" | "refused" | "unknown", Counter.Internal>;
  readonly #limits: Record<"key" | "source", Counter.Internal>;
  readonly #drops: Counter<"reason">;
  readonly #certificateExpiry: Gauge;

  constructor(registry: Registry) {
    this.#registry = registry;
    const registers = [registry];
    this.#requests = new Counter({
      name: "pipe_scaling_http_requests_total",
      help: "HTTP requests by method, route template and status code; route is none if the request was rejected before routing.",
      labelNames: ["method", "route", "code"],
      registers,
    });
    this.#duration = new Histogram({
      name: "pipe_scaling_http_request_duration_seconds",
      help: "Time from the end of the request headers until the response was written, in seconds.",
      labelNames: ["method", "route"],
      buckets: REQUEST_SECONDS,
      registers,
    });
    const authentications = new Counter({
      name: "pipe_scaling_authentications_total",
      help: "Requests by the result of authentication; unknown means that the API keys were not available or too old.",
      labelNames: ["result"],
      registers,
    });
    this.#authentications = {
      accepted: authentications.labels("accepted"),
      absent: authentications.labels("absent"),
      refused: authentications.labels("refused"),
      unknown: authentications.labels("unknown"),
    };
    const limits = new Counter({
      name: "pipe_scaling_limit_hits_total",
      help: "Requests rejected with 429, by limit: requests of a key (key) or failed authentications of a client address (source).",
      labelNames: ["limit"],
      registers,
    });
    this.#limits = { key: limits.labels("key"), source: limits.labels("source") };
    this.#drops = new Counter({
      name: "pipe_scaling_connections_dropped_total",
      help: "Connections closed at a connection limit: evicted (closed in favor of a new connection), source_limit or connection_limit (new connection refused).",
      labelNames: ["reason"],
      registers,
    });
    this.#certificateExpiry = new Gauge({
      name: "pipe_scaling_certificate_expiration_timestamp_seconds",
      help: "Time at which the TLS certificate of the API expires, in seconds since the Unix epoch; +Inf with plain HTTP.",
      registers,
    });
    this.#certificateExpiry.set(Number.POSITIVE_INFINITY);
    // A series that exists from the start shows its first increase as an increase.
    for (const reason of DROP_REASONS) this.#drops.inc({ reason }, 0);
    for (const series of [...Object.values(this.#authentications), ...Object.values(this.#limits)])
      series.inc(0);
  }

  requestCompleted({ request, context, route = "none", status, durationMs }: CountedRequest): void {
    const { key } = context;
    const series = this.#seriesOf(methodOf(request), route);
    series.duration.observe(durationMs / 1000);
    series.requests(status).inc();
    // Without a key, the request needed no credentials, or was rejected because of them.
    if (key !== undefined) {
      this.#authentications.accepted.inc();
      if (status === 429) this.#limits.key.inc();
    } else if (status === 401) {
      this.#authentications[request.headers.authorization === undefined ? "absent" : "refused"].inc();
    } else if (status === 429) {
      this.#authentications.refused.inc();
      this.#limits.source.inc();
    } else if (status === 503) this.#authentications.unknown.inc();
  }

  /** Counts a response to bytes that were not a valid HTTP request. */
  malformedRequest(status: number): void {
    this.#seriesOf("none", "none").requests(status).inc();
  }

  connectionDropped(reason: DropReason): void {
    this.#drops.inc({ reason });
  }

  certificateInstalled(expiresAt: Date): void {
    this.#certificateExpiry.set(expiresAt.getTime() / 1000);
  }

  /** Reports the state of the caches at each scrape. */
  watchCaches(states: () => readonly CacheState[]): void {
    const labelNames = ["resource", "namespace"] as const;
    const registers = [this.#registry];
    new Gauge({
      name: "pipe_scaling_cache_synced",
      help: "1 if the cache of the resource has been filled from the cluster, otherwise 0; namespace is empty if it covers all namespaces.",
      labelNames,
      registers,
      collect() {
        for (const { isSynced, ...of } of states()) this.set(labelsOf(of), isSynced ? 1 : 0);
      },
    });
    new Gauge({
      name: "pipe_scaling_cache_age_seconds",
      help: "Time since the API server last confirmed that the cache is current, in seconds; normally at most 60.",
      labelNames,
      registers,
      collect() {
        for (const { isSynced, ageMs, ...of } of states()) if (isSynced) this.set(labelsOf(of), ageMs / 1000);
      },
    });
    new Gauge({
      name: "pipe_scaling_malformed_records",
      help: "Malformed API keys and records; the log names them.",
      labelNames,
      registers,
      collect() {
        for (const { malformed, ...of } of states()) this.set(labelsOf(of), malformed);
      },
    });
  }

  #seriesOf(method: string, route: string): RouteSeries {
    const byMethod = this.#byRoute.get(route) ?? new Map<string, RouteSeries>();
    this.#byRoute.set(route, byMethod);
    const known = byMethod.get(method);
    if (known) return known;
    const byStatus = new Map<number, Counter.Internal>();
    const series: RouteSeries = {
      duration: this.#duration.labels(method, route),
      requests: (status) => {
        const requests = byStatus.get(status) ?? this.#requests.labels(method, route, String(status));
        byStatus.set(status, requests);
        return requests;
      },
    };
    byMethod.set(method, series);
    return series;
  }
}

function methodOf({ method }: CountedRequest["request"]): string {
  return METHODS.has(method) ? method : "other";
}

function labelsOf({ resource, namespace }: Pick<CacheState, "resource" | "namespace">) {
  return { resource, namespace };
}
