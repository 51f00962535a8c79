import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Quota, TokenBucket } from "../../../src/runtime/token-bucket.ts";
import { excess, pauses, quotas } from "../../support/token-buckets.ts";

const TEN = { requests: 10, windowMs: 10_000 };

const start = fc.integer({ min: 0, max: 10 ** 11 });

function drained(quota: Quota, times: number, now: number): TokenBucket {
  const bucket = new TokenBucket(quota);
  for (let i = 0; i < times; i += 1) expect(bucket.take(now)).toBe(true);
  return bucket;
}

describe("a bucket of 10 requests per 10 s", () => {
  it("allows 10 requests immediately, and then one per second", () => {
    const bucket = drained(TEN, 10, 0);
    expect(bucket.take(0)).toBe(false);
    expect(bucket.take(999.9)).toBe(false);
    expect(bucket.take(1000)).toBe(true);
    expect(bucket.take(1000)).toBe(false);
    expect(bucket.take(3000)).toBe(true);
    expect(bucket.take(3000)).toBe(true);
    expect(bucket.take(3000)).toBe(false);
  });

  it("is full again after 10 s, and never exceeds its size", () => {
    const bucket = drained(TEN, 10, 0);
    expect(bucket.remaining(9999)).toBe(9);
    expect(bucket.remaining(10_000)).toBe(10);
    expect(bucket.remaining(10 ** 9)).toBe(10);
    expect(bucket.msUntilFull(10 ** 9)).toBe(0);
  });

  it("returns the time until its next token, even while it is full", () => {
    expect(new TokenBucket(TEN).msUntilNext(0)).toBe(1000);
    expect(drained(TEN, 1, 0).msUntilNext(400)).toBe(600);
    expect(drained(TEN, 10, 0).msUntilNext(400)).toBe(600);
  });
});

describe("any bucket", () => {
  it("allows at most its size plus the refill in any period", () => {
    fc.assert(
      fc.property(quotas, start, fc.array(pauses, { maxLength: 80 }), (quota, from, gaps) => {
        const bucket = new TokenBucket(quota);
        let now = from;
        const admitted = gaps.flatMap((gap) => {
          now += gap;
          return bucket.take(now) ? [now] : [];
        });
        expect(excess(admitted, quota)).toBeUndefined();
      }),
    );
  });

  it("allows exactly the reported number of remaining requests", () => {
    fc.assert(
      fc.property(quotas, start, fc.array(pauses, { maxLength: 40 }), (quota, from, gaps) => {
        const bucket = new TokenBucket(quota);
        let now = from;
        for (const gap of gaps) {
          now += gap;
          bucket.take(now);
        }
        const remaining = bucket.remaining(now);
        for (let i = 0; i < remaining; i += 1) expect(bucket.take(now)).toBe(true);
        expect(bucket.take(now)).toBe(false);
      }),
    );
  });

  it("is full, and has one more request, exactly at the reported times and within one window", () => {
    fc.assert(
      fc.property(quotas, start, fc.array(pauses, { maxLength: 40 }), (quota, from, gaps) => {
        const bucket = new TokenBucket(quota);
        let now = from;
        for (const gap of gaps) {
          now += gap;
          bucket.take(now);
        }
        const full = Math.ceil(bucket.msUntilFull(now));
        expect(full).toBeLessThanOrEqual(quota.windowMs);
        expect(bucket.remaining(now + full)).toBe(quota.requests);
        if (full > 0) expect(bucket.remaining(now + full - 1)).toBeLessThan(quota.requests);

        const remaining = bucket.remaining(now);
        const next = Math.ceil(bucket.msUntilNext(now));
        expect(next).toBeGreaterThan(0);
        if (remaining < quota.requests) expect(bucket.remaining(now + next)).toBeGreaterThan(remaining);
        expect(bucket.remaining(now + next - 1)).toBe(remaining);
      }),
    );
  });

  it("is not charged for rejected requests", () => {
    const bucket = drained(TEN, 10, 0);
    for (let now = 0; now < 1000; now += 1) expect(bucket.take(now)).toBe(false);
    expect(bucket.take(1000)).toBe(true);
  });
});

describe("reservations", () => {
  it("are a burst without a wait, and then a steady rate", () => {
    const bucket = new TokenBucket({ requests: 3, windowMs: 300 });
    expect([1, 2, 3, 4, 5].map(() => bucket.reserve(1000))).toEqual([0, 0, 0, 100, 200]);
    expect(bucket.remaining(1000)).toBe(0);
    expect(bucket.reserve(1200)).toBe(100);
    expect(bucket.reserve(9000)).toBe(0);
  });

  it("need no wait for exactly the remaining number of requests", () => {
    fc.assert(
      fc.property(quotas, start, fc.array(pauses, { maxLength: 50 }), (quota, from, gaps) => {
        const bucket = new TokenBucket(quota);
        let now = from;
        for (const gap of gaps) {
          now += gap;
          bucket.reserve(now);
        }
        const remaining = bucket.remaining(now);
        const waits = Array.from({ length: remaining + 1 }, () => bucket.reserve(now));
        expect(waits.filter((wait) => wait > 0)).toHaveLength(1);
      }),
    );
  });

  it("are at most the size of the bucket plus the refill in any period", () => {
    fc.assert(
      fc.property(quotas, start, fc.array(pauses, { maxLength: 80 }), (quota, from, gaps) => {
        const bucket = new TokenBucket(quota);
        let now = from;
        // In ticks, of which a millisecond has `requests`, because in milliseconds the times are no whole numbers.
        const turns = gaps.map((gap) => {
          now += gap;
          return Math.round((now + bucket.reserve(now)) * quota.requests);
        });
        expect(excess(turns, { ...quota, windowMs: quota.windowMs * quota.requests })).toBeUndefined();
      }),
    );
  });
});
