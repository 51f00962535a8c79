import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Pace } from "../../../src/runtime/pace.ts";

describe("a pace", () => {
  it("allows a burst, and then a steady rate", () => {
    const pace = new Pace(10, 3);
    expect([1, 2, 3, 4, 5].map(() => pace.delay(1000))).toEqual([0, 0, 0, 100, 200]);
    expect(pace.delay(1200)).toBe(100);
    expect(pace.delay(9000)).toBe(0);
  });

  it("tells how many turns are free, and a turn that is given back is free again", () => {
    const pace = new Pace(10, 3);
    expect(pace.free(1000)).toBe(3);
    pace.delay(1000);
    pace.delay(1000);
    expect(pace.free(1000)).toBe(1);
    pace.delay(1000);
    expect([pace.free(1000), pace.free(1099), pace.free(1100), pace.free(1250)]).toEqual([0, 0, 1, 2]);
    pace.giveBack();
    expect(pace.free(1000)).toBe(1);
    for (let times = 0; times < 9; times += 1) pace.giveBack();
    expect(pace.free(1000)).toBe(3);
  });

  it("has as many free turns as calls without a delay", () => {
    const amounts = { rate: fc.integer({ min: 1, max: 100 }), burst: fc.integer({ min: 1, max: 20 }) };
    const gaps = fc.array(fc.integer({ min: 0, max: 500 }), { maxLength: 50 });
    fc.assert(
      fc.property(fc.record({ ...amounts, gaps }), ({ rate, burst, gaps }) => {
        const pace = new Pace(rate, burst);
        let now = 0;
        for (const gap of gaps) {
          now += gap;
          if (gap % 2 === 0) pace.delay(now);
        }
        const free = pace.free(now);
        const delays = Array.from({ length: free + 1 }, () => pace.delay(now));
        expect(delays.filter((delay) => delay > 0.01)).toHaveLength(1);
      }),
    );
  });

  it("never allows more calls in a period than the burst and the rate", () => {
    const waits = fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 20 }),
        waits,
        (rate, burst, gaps) => {
          const pace = new Pace(rate, burst);
          let now = 0;
          const turns = gaps
            .map((gap) => {
              now += gap;
              return now + pace.delay(now);
            })
            .toSorted((a, b) => a - b);
          for (const [first, from] of turns.entries()) {
            for (const [last, until] of turns.entries()) {
              if (last < first) continue;
              const allowed = burst + ((until - from) * rate) / 1000;
              expect(last - first + 1).toBeLessThanOrEqual(Math.floor(allowed + 1e-6));
            }
          }
        },
      ),
    );
  });
});
