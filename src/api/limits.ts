import { Buckets } from "./buckets.ts";
import type { Bucket, Quota } from "./gcra.ts";
import { Problem } from "./problem.ts";

export interface LimitSettings {
  /** Requests of one key in a window, which is also the burst; 0 for no limit. */
  readonly rateLimit?: number | undefined;
  /** At most 55 s: clients of this family of APIs give up on a reset that is further away. */
  readonly rateWindowMs?: number | undefined;
  /** Failed authentications of one source in a window; 0 for no limit. */
  readonly failedLogins?: number | undefined;
}

/**
 * `failedLogins` is what a key may send, so that a client with an outdated secret that keeps to the pace is
 * still told 401, which is final, and not 429, which it would repeat. Secrets are random, so that guessing
 * them at any such pace is hopeless; the limit is for those that somebody chose, and for scanners.
 */
const DEFAULTS = { rateLimit: 10, rateWindowMs: 10_000, failedLogins: 10 } as const;

/** More keys than one process serves in a window: those beyond would be refused. */
const KEYS = 65_536;

/** Failed authentications from more sources than these are answered 429 at once; a bucket is some 150 bytes. */
const SOURCES = 16_384;

/** A quota with what is said of it. */
interface Policy extends Quota {
  /** An RFC 9651 string. */
  readonly name: string;
  /** Header fields that are the same in every answer about it, as `writeHead` takes them. */
  readonly fields: readonly string[];
  readonly refusal: string;
}

export type LimitedBucket = Bucket<Policy>;

/** Limits are per process, and `undefined` is the bucket of whom they do not limit. */
export class Limits {
  readonly #keys: Buckets<Policy> | undefined;
  readonly #sources: Buckets<Policy> | undefined;

  /**
   * For answers that no bucket was asked about: no key, no credentials, a key from an address that may not
   * know how much it is used, a path outside /v1, what the parser refused. Clients find the headers on
   * every answer (api-contract, part 2), and these say what is so: the limit, and that it cost nothing.
   * `RateLimit` is about somebody's share, so it is not among them.
   */
  readonly uncharged: readonly string[];

  constructor(settings: LimitSettings = {}) {
    const {
      rateLimit = DEFAULTS.rateLimit,
      rateWindowMs: windowMs = DEFAULTS.rateWindowMs,
      failedLogins = DEFAULTS.failedLogins,
    } = settings;
    const ofKeys = policy("key", rateLimit, windowMs, "Too many requests with this key");
    const ofSources = policy(
      "failed-logins",
      failedLogins,
      windowMs,
      "Too many failed authentications from this address",
    );
    this.#keys = ofKeys && new Buckets(ofKeys, KEYS);
    this.#sources = ofSources && new Buckets(ofSources, SOURCES);
    this.uncharged = ofKeys
      ? [...ofKeys.fields, "X-RateLimit-Remaining", String(rateLimit), "X-RateLimit-Reset", "0"]
      : [];
  }

  ofKey(key: string, now: number): LimitedBucket | undefined {
    return this.#keys?.of(key, now);
  }

  /** The bucket of failed authentications. */
  ofSource(source: string, now: number): LimitedBucket | undefined {
    return this.#sources?.of(source, now);
  }
}

/**
 * Adds what the caller has left at this moment. The two families count differently: `X-RateLimit-Reset` is
 * when the bucket is full, `t` how long no more than `r` requests will be admitted, which is what makes it
 * agree with `Retry-After` (draft-ietf-httpapi-ratelimit-headers-11, sections 4.1.2 and 6).
 */
export function pushLimitFields(headers: string[], bucket: LimitedBucket, now: number): void {
  const { name, fields } = bucket.quota;
  const remaining = String(bucket.remaining(now));
  const reset = String(seconds(bucket.msUntilFull(now)));
  headers.push(...fields, "X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset);
  headers.push("RateLimit", `${name};r=${remaining};t=${seconds(bucket.msUntilNext(now))}`);
}

export function tooMany(bucket: LimitedBucket, now: number): Problem {
  const wait = String(seconds(bucket.msUntilNext(now)));
  return new Problem(429, `${bucket.quota.refusal}: try again in ${wait} s.`, {
    headers: ["Retry-After", wait],
  });
}

function policy(name: string, requests: number, windowMs: number, refusal: string): Policy | undefined {
  if (requests === 0) return undefined;
  const limit = String(requests);
  const fields = [
    "X-RateLimit-Limit",
    limit,
    "RateLimit-Policy",
    `"${name}";q=${limit};w=${seconds(windowMs)}`,
  ];
  return { name: `"${name}"`, requests, windowMs, fields, refusal };
}

/** Whole, as both families want them, and never too few. */
function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
