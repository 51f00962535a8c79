import { rateLimitKey } from "../../../http/rate-limit-key.ts";
import type { Quota, TokenBucket } from "../../../runtime/token-bucket.ts";
import type { RateLimitSettings } from "../../../settings/api.ts";
import { apiError } from "../../errors.ts";
import type { RequestContext } from "../request-context.ts";
import { Buckets } from "./buckets.ts";

/** More keys than one process serves in a window; further keys would be rejected. */
const MAX_KEYS = 65_536;

/** Failed authentications from further sources immediately get a 429; a bucket takes about 150 bytes. */
const MAX_SOURCES = 16_384;

/** A quota and its texts. */
interface Policy extends Quota {
  /** An RFC 9651 string. */
  readonly name: string;
  /** The header fields that are the same in every response, names and values in turn. */
  readonly fields: readonly string[];
  readonly refusal: "KeyTooFast" | "AddressTooFast";
}

/** The limits of this process: requests per key, and failed authentications per source address. */
export class RateLimits {
  readonly #keys: Buckets<Policy> | undefined;
  readonly #sources: Buckets<Policy> | undefined;

  /**
   * Fields of a response that no bucket was charged for, such as one to a request without credentials or from a
   * forbidden address. Clients expect the headers on every response, so these show the whole limit as unused.
   */
  readonly uncharged: readonly string[];

  constructor({ rateLimit, rateWindowMs: windowMs, failedLogins }: RateLimitSettings) {
    const perKey = policy("key", rateLimit, windowMs, "KeyTooFast");
    const perSource = policy("failed-logins", failedLogins, windowMs, "AddressTooFast");
    this.#keys = perKey && new Buckets(perKey, MAX_KEYS);
    this.#sources = perSource && new Buckets(perSource, MAX_SOURCES);
    this.uncharged = perKey
      ? [...perKey.fields, "X-RateLimit-Remaining", String(rateLimit), "X-RateLimit-Reset", "0"]
      : [];
  }

  /** @param secretName identifies the key, even after its Secret changes */
  ofKey(secretName: string, now: number): TokenBucket<Policy> | undefined {
    return this.#keys?.of(secretName, now);
  }

  ofSource(clientIp: string | undefined, now: number): TokenBucket<Policy> | undefined {
    return this.#sources?.of(rateLimitKey(clientIp), now);
  }
}

/**
 * Charges a request to its key.
 *
 * @param now monotonic, in milliseconds
 * @returns a 429 if the quota of the key is exhausted
 */
export function chargeKey(
  context: RequestContext,
  secretName: string,
  limits: RateLimits,
  now: number,
): Error | undefined {
  return charge(context, limits.ofKey(secretName, now), now);
}

/**
 * Charges a failed authentication to the source address, after the credentials were verified: valid ones always pass,
 * and failures of every kind cost the same.
 *
 * @param now monotonic, in milliseconds
 * @returns a 429 if the quota of the source is exhausted
 */
export function chargeFailedAuthentication(
  context: RequestContext,
  limits: RateLimits,
  now: number,
): Error | undefined {
  return charge(context, limits.ofSource(context.clientIp, now), now);
}

function charge(
  context: RequestContext,
  bucket: TokenBucket<Policy> | undefined,
  now: number,
): Error | undefined {
  if (!bucket) return undefined;
  const isAdmitted = bucket.take(now);
  context.rateLimitFields = fieldsOf(bucket, now);
  if (isAdmitted) return undefined;
  const wait = String(seconds(bucket.msUntilNext(now)));
  return apiError(bucket.quota.refusal, wait).with({ headers: { "Retry-After": wait } });
}

/**
 * The two families of fields differ: `X-RateLimit-Reset` is the time until the bucket is full, and `t` is the time in
 * which at most `r` requests are admitted, so `t` equals `Retry-After` (draft-ietf-httpapi-ratelimit-headers-11,
 * sections 4.1.2 and 6).
 */
function fieldsOf(bucket: TokenBucket<Policy>, now: number): string[] {
  const { name, fields } = bucket.quota;
  const remaining = String(bucket.remaining(now));
  return [
    ...fields,
    "X-RateLimit-Remaining",
    remaining,
    "X-RateLimit-Reset",
    String(seconds(bucket.msUntilFull(now))),
    "RateLimit",
    `${name};r=${remaining};t=${seconds(bucket.msUntilNext(now))}`,
  ];
}

function policy(
  name: string,
  requests: number,
  windowMs: number,
  refusal: Policy["refusal"],
): Policy | undefined {
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

/** Whole seconds, as both families of fields require, rounded up. */
function seconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
