import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { recordedDurations } from "../../support/longest-first.ts";

it("the page on tests lists 30 existing test files, the longest first", () => {
  const durations = recordedDurations();
  expect(durations.size).toBe(30);
  expect([...durations.keys()].filter((file) => !existsSync(file))).toEqual([]);
  const seconds = [...durations.values()];
  expect(seconds).toEqual(seconds.toSorted((a, b) => b - a));
});
