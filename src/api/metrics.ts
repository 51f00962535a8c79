import { Gauge, Histogram, type Registry } from "prom-client";
import { type Count, Tally } from "../telemetry/tally.ts";
import type { CompletedRequest } from "./middleware/completed-request.ts";
import { DROP_REASONS, type DropReason } from "./server/connections.ts";

/** Most answers come from the caches in less than a millisecond; a call to the cluster takes at most 5 s. */
const REQUEST_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** A client may send any word as a method: those that it has no business with are one. */
const METHODS = new Set(["GET", "HEAD", "PATCH", "DELETE", "POST", "PUT", "OPTIONS"]);

/** How far a cache can be believed. */
export interface CacheState {
  readonly resource: string;
  /** Empty for all. */
  readonly namespace: string;
  readonly isSynced: boolean;
  /** Since the last proof that it is fresh. */
  readonly ageMs: number;
  /** How many of its objects cannot be read. */
  readonly malformed: number;
}

interface RouteSeries {
  readonly observeSeconds: (seconds: number) => void;
  readonly count: (status: number) => void;
}

/** What the API tells Prometheus. Every label has a bounded set of values: none is a client's own text. */
export class ApiMetrics {
  readonly #registry: Registry;
  readonly #requests: Tally<"method" | "route" | "code">;
  readonly #duration: Histogram<"method" | "route">;
  readonly #byRoute = new Map<string, Map<string, RouteSeries>>();
  readonly #authentications: Record<"accepted" | "absent" | "refused" | "unknown", Count>;
  readonly #limits: Record<"key" | "source", Count>;
  readonly #drops: ReadonlyMap<DropReason, Count>;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#requests = new Tally({
      registry,
      name: "pipe_scaling_http_requests_total",
      help: "Requests answered. route is the template, or none where it did not come to that.",
      labels: ["method", "route", "code"],
    });
    this.#duration = new Histogram({
      name: "pipe_scaling_http_request_duration_seconds",
      help: "From the end of a request's headers until its answer was written.",
      labelNames: ["method", "route"],
      buckets: REQUEST_SECONDS,
      registers: [registry],
    });
    const authentications = new Tally({
      registry,
      name: "pipe_scaling_authentications_total",
      help: "Requests by what came of their credentials; unknown while the keys are not known well enough.",
      labels: ["result"],
    });
    this.#authentications = {
      accepted: authentications.series({ result: "accepted" }),
      absent: authentications.series({ result: "absent" }),
      refused: authentications.series({ result: "refused" }),
      unknown: authentications.series({ result: "unknown" }),
    };
    const limits = new Tally({
      registry,
      name: "pipe_scaling_limit_hits_total",
      help: "Requests answered 429, by the limit: of a key, or of a source's failed authentications.",
      labels: ["limit"],
    });
    const drops = new Tally({
      registry,
      name: "pipe_scaling_connections_dropped_total",
      help: "Connections closed or refused at a limit: idle_evicted for an idle one that made room for a new one, source_limit and connection_limit for a new one that found no room.",
      labels: ["reason"],
    });
    this.#drops = new Map(DROP_REASONS.map((reason) => [reason, drops.series({ reason })]));
    this.#limits = { key: limits.series({ limit: "key" }), source: limits.series({ limit: "source" }) };
  }

  requestCompleted({ request, context, route = "none", status, durationMs }: CompletedRequest): void {
    const { key } = context;
    const series = this.#seriesOf(methodOf(request), route);
    series.observeSeconds(durationMs / 1000);
    series.count(status);
    // Who is not known by then was not asked for credentials, or was turned away for them.
    if (key !== undefined) {
      this.#authentications.accepted();
      if (status === 429) this.#limits.key();
    } else if (status === 401) {
      this.#authentications[request.headers.authorization === undefined ? "absent" : "refused"]();
    } else if (status === 429) {
      this.#authentications.refused();
      this.#limits.source();
    } else if (status === 503) this.#authentications.unknown();
  }

  /** Something that was not a valid request got a response. */
  malformedRequest(status: number): void {
    this.#seriesOf("none", "none").count(status);
  }

  connectionDropped(reason: DropReason): void {
    this.#drops.get(reason)?.();
  }

  /** Shows on each scrape how the caches are then. */
  watchCaches(states: () => readonly CacheState[]): void {
    const labelNames = ["resource", "namespace"] as const;
    const registers = [this.#registry];
    new Gauge({
      name: "pipe_scaling_cache_synced",
      help: "Whether what is cached of a kind has been read from the cluster once; namespace is empty for all.",
      labelNames,
      registers,
      collect() {
        for (const { isSynced, ...of } of states()) this.set(labelsOf(of), isSynced ? 1 : 0);
      },
    });
    new Gauge({
      name: "pipe_scaling_cache_age_seconds",
      help: "Time since the cluster last proved the cache to be fresh, which it does once a minute.",
      labelNames,
      registers,
      collect() {
        for (const { isSynced, ageMs, ...of } of states()) if (isSynced) this.set(labelsOf(of), ageMs / 1000);
      },
    });
    new Gauge({
      name: "pipe_scaling_malformed_records",
      help: "Keys and records that cannot be read, and fail what they are about; the log names them.",
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
    const codes = new Map<number, Count>();
    const child = this.#duration.labels({ method, route });
    const series: RouteSeries = {
      observeSeconds: (seconds) => child.observe(seconds),
      count: (status) => {
        const count = codes.get(status) ?? this.#requests.series({ method, route, code: String(status) });
        codes.set(status, count);
        count();
      },
    };
    byMethod.set(method, series);
    return series;
  }
}

function methodOf({ method }: CompletedRequest["request"]): string {
  return METHODS.has(method) ? method : "other";
}

function labelsOf({ resource, namespace }: Pick<CacheState, "resource" | "namespace">) {
  return { resource, namespace };
}
