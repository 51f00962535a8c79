import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elapsedMs } from "../../src/runtime/elapsed.ts";

describe("the time that has elapsed since a stored time", () => {
  it("is the difference to now", () => {
    expect(elapsedMs(1000, 5000)).toBe(4000);
  });

  it("is 0 if the stored time is in the future", () => {
    expect(elapsedMs(9000, 5000)).toBe(0);
  });

  it("counts from the lower bound if the stored time is before it or cannot be parsed", () => {
    expect(elapsedMs(1000, 5000, 3000)).toBe(2000);
    expect(elapsedMs(Number.NaN, 5000, 3000)).toBe(2000);
  });

  it("is 0 if there is neither a stored time nor a lower bound", () => {
    expect(elapsedMs(Number.NaN, 5000)).toBe(0);
    expect(elapsedMs(Number.NaN, 5000, Number.NaN)).toBe(0);
  });

  it("is finite, never negative and never more than the time since the lower bound", () => {
    const time = fc.oneof(fc.integer({ min: 0, max: 4e12 }), fc.constant(Number.NaN));
    fc.assert(
      fc.property(
        time,
        fc.integer({ min: 0, max: 4e12 }),
        fc.integer({ min: 0, max: 4e12 }),
        (stamp, now, least) => {
          const elapsed = elapsedMs(stamp, now, least);
          expect(Number.isFinite(elapsed)).toBe(true);
          expect(elapsed).toBeGreaterThanOrEqual(0);
          expect(elapsed).toBeLessThanOrEqual(Math.max(0, now - least));
        },
      ),
    );
  });
});
