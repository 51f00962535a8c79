import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { elapsedMs } from "../../../src/runtime/elapsed.ts";

describe("the time that has elapsed since a stored time", () => {
  it("is the difference from now", () => {
    expect(elapsedMs(1000, 5000)).toBe(4000);
  });

  it("is 0 if the stored time is in the future or cannot be parsed", () => {
    expect(elapsedMs(9000, 5000)).toBe(0);
    expect(elapsedMs(Number.NaN, 5000)).toBe(0);
  });

  it("is finite and never negative", () => {
    const time = fc.oneof(fc.integer({ min: 0, max: 4e12 }), fc.constant(Number.NaN));
    fc.assert(
      fc.property(time, fc.integer({ min: 0, max: 4e12 }), (stamp, now) => {
        const elapsed = elapsedMs(stamp, now);
        expect(Number.isFinite(elapsed)).toBe(true);
        expect(elapsed).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
