import { createHash } from "node:crypto";
import { rateLimitKey } from "../http/rate-limit-key.ts";
import type { KubeClient } from "../kube/client.ts";
import { Deadline } from "../kube/deadline.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { Semaphore } from "../kube/semaphore.ts";
import type { Logger } from "./log.ts";

const TOKEN_REVIEWS: Resource = { apiVersion: "authentication.k8s.io/v1", plural: "tokenreviews" };
const ACCESS_REVIEWS: Resource = { apiVersion: "authorization.k8s.io/v1", plural: "subjectaccessreviews" };

/** The non-resource URL and verb that Prometheus also needs for the metrics of the API server. */
const READ_METRICS = { path: "/metrics", verb: "get" };

/** A revoked token keeps working for at most this time. */
const ALLOWED_MS = 60_000;

/** Short, because a permission that was just granted should take effect soon. */
const DENIED_MS = 10_000;

/** Maximum number of cached outcomes of allowed tokens, and again of denied ones. */
const MAX_CACHED = 100;

/** Maximum number of tokens in review at a time, and again of those that were allowed before; the others wait. */
const MAX_REVIEWS = 4;

/** Maximum number of tokens that are in review or wait for it. For other new ones, the result is `unknown`. */
const MAX_WAITING = 100;

/** Maximum number of these from one source, so that a flood from one pod leaves places for Prometheus. */
const MAX_WAITING_PER_SOURCE = 10;

/** Time limit for both reviews of a token, including the wait. A scrape times out after 10 s by default. */
const REVIEW_MS = 8000;

/** `unknown` if the API server did not decide, or too many tokens wait for a review. */
export type Access = "allowed" | "unauthenticated" | "forbidden" | "unknown";

export interface AccessControl {
  /** Decides about a request from its Authorization header. The address of its client limits what waits. */
  check(authorization: string | undefined, address: string | undefined): Promise<Access>;
}

export interface MetricsAccessSettings {
  readonly metricsAuthentication: boolean;
}

export interface MetricsAccessOptions {
  readonly client: Pick<KubeClient, "json">;
  /** Milliseconds that never decrease. */
  readonly monotonic: () => number;
  readonly log: Logger;
}

/** Returns undefined if everyone may read the metrics. */
export function metricsAccess(
  { metricsAuthentication }: MetricsAccessSettings,
  options: MetricsAccessOptions,
): AccessControl | undefined {
  return metricsAuthentication ? new MetricsAccess(options) : undefined;
}

/**
 * Lets a request read the metrics if the API server authenticates its bearer token (TokenReview) and authorizes the
 * user (SubjectAccessReview), as controller-runtime does with `WithAuthenticationAndAuthorization`.
 *
 * Outcomes are cached for a short time, by the hash of the token. Allowed and denied tokens are cached separately,
 * so that a flood of invalid tokens cannot evict the token of Prometheus. It cannot keep the next review of that token
 * waiting either: tokens that were allowed before wait only for each other. New tokens of one source take only some of
 * the places. Failed reviews are not cached. Requests with the same token share one review.
 */
class MetricsAccess implements AccessControl {
  readonly #options: MetricsAccessOptions;
  readonly #allowed: Outcomes;
  readonly #denied: Outcomes;
  readonly #running = new Map<string, { readonly source: string; readonly access: Promise<Access> }>();
  readonly #reviews = new Semaphore(MAX_REVIEWS);
  /** For tokens that were allowed before. */
  readonly #renewals = new Semaphore(MAX_REVIEWS);
  #isFailing = false;

  constructor(options: MetricsAccessOptions) {
    this.#options = options;
    this.#allowed = new Outcomes(ALLOWED_MS, options.monotonic);
    this.#denied = new Outcomes(DENIED_MS, options.monotonic);
  }

  async check(authorization: string | undefined, address: string | undefined): Promise<Access> {
    const token = bearerToken(authorization);
    if (token === undefined) return "unauthenticated";
    const key = createHash("sha256").update(token).digest("base64");
    const known = this.#allowed.get(key) ?? this.#denied.get(key) ?? this.#running.get(key)?.access;
    if (known !== undefined) return await known;
    const isRenewal = this.#allowed.has(key);
    const source = rateLimitKey(address);
    if (!isRenewal && this.#isFull(source)) return "unknown";
    const reviews = isRenewal ? this.#renewals : this.#reviews;
    const access = this.#decide(token, key, reviews).finally(() => this.#running.delete(key));
    this.#running.set(key, { source, access });
    return await access;
  }

  #isFull(source: string): boolean {
    const ofSource = [...this.#running.values()].filter((running) => running.source === source);
    return this.#running.size >= MAX_WAITING || ofSource.length >= MAX_WAITING_PER_SOURCE;
  }

  async #decide(token: string, key: string, reviews: Semaphore): Promise<Access> {
    const { log } = this.#options;
    const deadline = new Deadline(REVIEW_MS, undefined);
    try {
      const access = await this.#review(token, reviews, deadline.signal);
      (access === "allowed" ? this.#allowed : this.#denied).set(key, access);
      this.#isFailing = false;
      return access;
    } catch (err) {
      // Once, because every request would repeat it.
      if (!this.#isFailing) log.warn({ err }, "the token of a request for the metrics cannot be reviewed");
      this.#isFailing = true;
      return "unknown";
    } finally {
      deadline.end();
    }
  }

  async #review(token: string, reviews: Semaphore, signal: AbortSignal): Promise<Access> {
    const release = await reviews.acquire(signal);
    try {
      const user = await this.#authenticate(token, signal);
      if (user === undefined) return "unauthenticated";
      return (await this.#isAuthorized(user, signal)) ? "allowed" : "forbidden";
    } finally {
      release();
    }
  }

  async #authenticate(token: string, signal: AbortSignal): Promise<User | undefined> {
    const { status } = await this.#create<TokenReview>(TOKEN_REVIEWS, "TokenReview", { token }, signal);
    // `status.error` is ignored, because the API server also sets it for an invalid token.
    if (status?.authenticated !== true) return undefined;
    if (!status.user?.username) throw new Error("the TokenReview has no user name");
    return status.user;
  }

  async #isAuthorized({ username, uid, groups, extra }: User, signal: AbortSignal): Promise<boolean> {
    const spec = { user: username, uid, groups, extra, nonResourceAttributes: READ_METRICS };
    const { status } = await this.#create<AccessReview>(ACCESS_REVIEWS, "SubjectAccessReview", spec, signal);
    return status?.allowed === true;
  }

  #create<T>(resource: Resource, kind: string, spec: object, signal: AbortSignal): Promise<T> {
    const { apiVersion } = resource;
    const path = collectionPath(resource, undefined);
    return this.#options.client.json<T>({ method: "POST", path, body: { apiVersion, kind, spec }, signal });
  }
}

interface User {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

interface TokenReview {
  readonly status?: { readonly authenticated?: boolean; readonly user?: User };
}

interface AccessReview {
  readonly status?: { readonly allowed?: boolean };
}

/** RFC 6750, section 2.1; the name of a scheme is case-insensitive. */
function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +([^ ]+) *$/i.exec(authorization ?? "")?.[1];
}

/** The outcomes of a limited number of tokens, each for a limited time. The oldest outcome is evicted first. */
class Outcomes {
  readonly #maxAgeMs: number;
  readonly #monotonic: () => number;
  /** Outcomes by the hash of the token, oldest first. */
  readonly #entries = new Map<string, { readonly access: Access; readonly at: number }>();

  constructor(maxAgeMs: number, monotonic: () => number) {
    this.#maxAgeMs = maxAgeMs;
    this.#monotonic = monotonic;
  }

  get(key: string): Access | undefined {
    const entry = this.#entries.get(key);
    return entry && this.#monotonic() - entry.at < this.#maxAgeMs ? entry.access : undefined;
  }

  /** Returns true also for an outcome that is too old. */
  has(key: string): boolean {
    return this.#entries.has(key);
  }

  set(key: string, access: Access): void {
    this.#entries.delete(key);
    this.#entries.set(key, { access, at: this.#monotonic() });
    const [oldest] = this.#entries.keys();
    if (oldest !== undefined && this.#entries.size > MAX_CACHED) this.#entries.delete(oldest);
  }
}
