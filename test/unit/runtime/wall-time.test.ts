import { expect, it } from "vitest";
import { WallTime } from "../../../src/runtime/wall-time.ts";

it("a moment has the same time at each look, although the two clocks do not tick together", () => {
  let monotonicMs = 10;
  const wallTime = new WallTime({
    monotonic: () => monotonicMs,
    now: () => Math.floor(1000.4 + monotonicMs),
  });
  const times = [0.1, 0.7, 0.3, 0.9].map((laterMs) => {
    monotonicMs += laterMs;
    return wallTime.of(5);
  });
  expect(new Set(times)).toHaveLength(1);
});

it("the time of a moment follows a jump of the clock", () => {
  let nowMs = 1000;
  const wallTime = new WallTime({ monotonic: () => 10, now: () => nowMs });
  expect(wallTime.of(5)).toBe(995);
  nowMs += 60_000;
  expect(wallTime.of(5)).toBe(60_995);
});
