import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boostAt } from "../../../src/domain/boost.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";

const HOUR_MS = 3_600_000;
const size = sizeOfCores(16);
const instants = fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2034, 0) });

describe("a boost", () => {
  it("is in effect at every time before its end, and at no time from then on", () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: 1, max: 400 * 24 * HOUR_MS }), (untilMs, ms) => {
        const boost = { size, untilMs };
        expect(boostAt(boost, untilMs - ms)).toBe(boost);
        expect(boostAt(boost, untilMs)).toBeUndefined();
        expect(boostAt(boost, untilMs + ms)).toBeUndefined();
      }),
    );
  });

  it("ends earlier by a clock that is ahead, later by one that is behind, and once by each", () => {
    const clockErrors = fc.integer({ min: -HOUR_MS, max: HOUR_MS });
    fc.assert(
      fc.property(instants, clockErrors, (untilMs, errorMs) => {
        const boost = { size, untilMs };
        const isInEffect = (atMs: number) => boostAt(boost, atMs + errorMs) !== undefined;
        const endMs = untilMs - errorMs;
        const times = [-2 * HOUR_MS, -1, 0, 1, 2 * HOUR_MS].map((ms) => endMs + ms);
        expect(times.map(isInEffect)).toEqual([true, true, false, false, false]);
      }),
    );
  });

  it("is never in effect if its end cannot be parsed", () => {
    const boost = { size, untilMs: Date.parse("tomorrow") };
    fc.assert(
      fc.property(instants, (atMs) => {
        expect(boostAt(boost, atMs)).toBeUndefined();
      }),
    );
  });
});
