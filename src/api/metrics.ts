import { Counter, Gauge, type Registry } from "prom-client";
import { DROP_REASONS, type DropReason } from "../http/connections.ts";
import type { CompletedRequest } from "./middleware/completed-request.ts";
import { RequestMetrics } from "./request-metrics.ts";

/** Node accepts dozens of methods; those that are not listed here share one label value. */
const METHODS = new Set(["GET", "HEAD", "PATCH", "DELETE", "POST", "PUT", "OPTIONS"]);

/** The state of the cache of one resource. */
export interface CacheState {
  readonly resource: string;
  /** Empty if the cache covers all namespaces. */
  readonly namespace: string;
  readonly isSynced: boolean;
  /** Since the cluster last confirmed that the cache is current, or since the start of the process if it never has. */
  readonly ageMs: number;
  /** The number of malformed objects in the cache. */
  readonly malformed: number;
}

/** The part of a completed request that the metrics depend on. */
interface CountedRequest extends Pick<CompletedRequest, "route" | "status" | "durationMs"> {
  readonly request: Pick<CompletedRequest["request"], "method" | "headers">;
  readonly context: { readonly key: object | undefined; readonly isNotYet: boolean };
}

/** The metrics of the API. Every label has a bounded set of values, and no value is text from a client. */
export class ApiMetrics {
  readonly #registry: Registry;
  readonly #requests: RequestMetrics;
  readonly #authentications = { accepted: 0, absent: 0, refused: 0, unknown: 0 };
  readonly #limits = { key: 0, source: 0 };
  readonly #notYet: Counter;
  readonly #drops: Counter<"reason">;
  readonly #certificateExpiry: Gauge;

  constructor(registry: Registry) {
    this.#registry = registry;
    const registers = [registry];
    this.#requests = new RequestMetrics(registry);
    const authentications = this.#authentications;
    new Counter({
      name: "pipe_scaling_authentications_total",
      help: "Requests by the result of authentication; unknown means that the caches of keys and records were not filled yet or too old.",
      labelNames: ["result"],
      registers,
      collect() {
        this.reset();
        for (const [result, count] of Object.entries(authentications)) this.inc({ result }, count);
      },
    });
    const limits = this.#limits;
    new Counter({
      name: "pipe_scaling_limit_hits_total",
      help: "Requests rejected with 429, by limit: requests of a key (key) or failed authentications of a client address (source).",
      labelNames: ["limit"],
      registers,
      collect() {
        this.reset();
        for (const [limit, count] of Object.entries(limits)) this.inc({ limit }, count);
      },
    });
    this.#notYet = new Counter({
      name: "pipe_scaling_size_not_reached_total",
      help: "Requests for the size of a service that got 503 because its pipes have had no common size yet; the API did not fail.",
      registers,
    });
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
  }

  requestCompleted({ request, context, route = "none", status, durationMs }: CountedRequest): void {
    const { key } = context;
    this.#requests.observe(methodOf(request), route, status, durationMs);
    if (context.isNotYet) this.#notYet.inc();
    // Without a key, the request needed no credentials, or was rejected before or by authentication.
    if (key !== undefined) {
      this.#authentications.accepted += 1;
      if (status === 429) this.#limits.key += 1;
    } else if (status === 401) {
      this.#authentications[request.headers.authorization === undefined ? "absent" : "refused"] += 1;
    } else if (status === 429) {
      this.#authentications.refused += 1;
      this.#limits.source += 1;
    } else if (status === 503) this.#authentications.unknown += 1;
  }

  /** Counts a response to a malformed or incomplete request. */
  malformedRequest(status: number): void {
    this.#requests.count("none", "none", status);
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
      help: "Time since the API server last confirmed that the cache is current, or since the start of the process if it never has, in seconds; normally at most 60.",
      labelNames,
      registers,
      collect() {
        for (const { ageMs, ...of } of states()) this.set(labelsOf(of), ageMs / 1000);
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
}

function methodOf({ method }: CountedRequest["request"]): string {
  return METHODS.has(method) ? method : "other";
}

function labelsOf({ resource, namespace }: Pick<CacheState, "resource" | "namespace">) {
  return { resource, namespace };
}
