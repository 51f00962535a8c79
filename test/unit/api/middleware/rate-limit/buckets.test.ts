import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Buckets } from "../../../../../src/api/middleware/rate-limit/buckets.ts";
import { Bucket, type Quota } from "../../../../../src/api/middleware/rate-limit/gcra.ts";

const TEN = { requests: 10, windowMs: 10_000 };

const quotas = fc.record({
  requests: fc.integer({ min: 1, max: 12 }),
  windowMs: fc.integer({ min: 1, max: 5000 }),
});
/** Long enough for the buckets above to refill completely. */
const pauses = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 500 }), fc.integer({ min: 0, max: 6000 }));
const start = fc.integer({ min: 0, max: 10 ** 11 });

/** Finds two points in time between which more requests were allowed than a full bucket and its refill. */
function excess(admitted: readonly number[], { requests, windowMs }: Quota): unknown {
  for (const [first, from] of admitted.entries()) {
    for (const [last, to] of admitted.entries()) {
      const most = requests + Math.floor(((to - from) * requests) / windowMs);
      if (last >= first && last - first + 1 > most) return { from, to, admitted: last - first + 1, most };
    }
  }
  return undefined;
}

function drained(quota: Quota, times: number, now: number): Bucket {
  const bucket = new Bucket(quota);
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
    expect(new Bucket(TEN).msUntilNext(0)).toBe(1000);
    expect(drained(TEN, 1, 0).msUntilNext(400)).toBe(600);
    expect(drained(TEN, 10, 0).msUntilNext(400)).toBe(600);
  });
});

describe("any bucket", () => {
  it("allows at most its size plus the refill in any period", () => {
    fc.assert(
      fc.property(quotas, start, fc.array(pauses, { maxLength: 80 }), (quota, from, gaps) => {
        const bucket = new Bucket(quota);
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
        const bucket = new Bucket(quota);
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
        const bucket = new Bucket(quota);
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

describe("the buckets of many keys", () => {
  const callers = fc.constantFrom("a", "b", "c", "d", "e");
  const calls = fc.array(fc.tuple(callers, pauses), { maxLength: 150 });
  /** The pauses are in eighths of the window. */
  const paced = fc.array(fc.tuple(callers, fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 12 }))), {
    maxLength: 150,
  });

  it("are separate for each key, and kept until they are full", () => {
    fc.assert(
      fc.property(quotas, start, paced, (quota, from, sent) => {
        const buckets = new Buckets(quota, 5);
        const unbounded = new Map<string, Bucket>();
        let now = from;
        for (const [who, eighths] of sent) {
          now += Math.floor((eighths * quota.windowMs) / 8);
          const own = unbounded.get(who) ?? new Bucket(quota);
          unbounded.set(who, own);
          const bucket = buckets.of(who, now);
          expect(bucket.msUntilFull(now)).toBe(own.msUntilFull(now));
          expect(bucket.take(now)).toBe(own.take(now));
        }
      }),
    );
  });

  it("enforce limits in bounded memory even with too many keys", () => {
    fc.assert(
      fc.property(quotas, start, calls, (quota, from, sent) => {
        const buckets = new Buckets(quota, 2);
        const admitted = new Map<string, number[]>();
        let now = from;
        for (const [who, gap] of sent) {
          now += gap;
          if (buckets.of(who, now).take(now)) admitted.set(who, [...(admitted.get(who) ?? []), now]);
          expect(buckets.size).toBeLessThanOrEqual(4);
        }
        for (const moments of admitted.values()) expect(excess(moments, quota)).toBeUndefined();
      }),
    );
  });

  it.each([0, 2500, 5000, 7500, 10_000])(
    "are kept until they are full if they are drained at %i ms",
    (at) => {
      const buckets = new Buckets(TEN, 100);
      for (let now = 0; now < at + 10_000; now += 100) {
        buckets.of("neighbor", now);
        if (now === at) buckets.of("own", now).drain(now);
      }
      expect(buckets.of("own", at + 9900).msUntilFull(at + 9900)).toBe(100);
    },
  );

  it("are removed when they are full, at the latest after two windows without a request", () => {
    const buckets = new Buckets(TEN, 100);
    for (let i = 0; i < 50; i += 1) buckets.of(`early-${i}`, 0).take(0);
    buckets.of("late", 10_001);
    expect(buckets.size).toBe(51);
    buckets.of("late", 20_002);
    expect(buckets.size).toBe(1);
  });

  it("reject new keys while the table is full, so that a flood cannot reset the bucket of another key", () => {
    const buckets = new Buckets(TEN, 100);
    const victim = () => buckets.of("victim", 1).take(1);
    for (let i = 0; i < 10; i += 1) expect(victim()).toBe(true);
    const admitted = Array.from({ length: 1000 }, (_, at) => buckets.of(`flood-${at}`, 1).take(1));
    expect(admitted.filter(Boolean)).toHaveLength(99);
    expect(victim()).toBe(false);

    const refused = buckets.of("newcomer", 1);
    expect([refused.remaining(1), refused.msUntilFull(1), refused.msUntilNext(1)]).toEqual([0, 10_000, 1000]);
    expect(buckets.of("newcomer", 10_002).take(10_002)).toBe(true);
  });
});
