import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Buckets } from "../../../../../src/api/middleware/rate-limit/buckets.ts";
import { TokenBucket } from "../../../../../src/runtime/token-bucket.ts";
import { excess, pauses, quotas } from "../../../../support/token-buckets.ts";

const TEN = { requests: 10, windowMs: 10_000 };

const start = fc.integer({ min: 0, max: 10 ** 11 });

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
        const unbounded = new Map<string, TokenBucket>();
        let now = from;
        for (const [who, eighths] of sent) {
          now += Math.floor((eighths * quota.windowMs) / 8);
          const own = unbounded.get(who) ?? new TokenBucket(quota);
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
