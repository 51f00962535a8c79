import { expect, it, vi } from "vitest";
import { memoized } from "../../../src/kube/memoized.ts";

it("computes the result only once for the same arguments", () => {
  const compute = vi.fn((first: string, second?: string) => ({ first, second }));
  const shared = memoized(compute);
  expect(shared("a", "b")).toBe(shared("a", "b"));
  expect(shared("a"), "fewer arguments").not.toBe(shared("a", "b"));
  expect(shared("ab"), "the same characters").not.toBe(shared("a", "b"));
  expect(compute).toHaveBeenCalledTimes(3);
});

it("keeps a bounded number of results", () => {
  const compute = vi.fn((value: number) => ({ value }));
  const shared = memoized(compute);
  for (let value = 0; value < 1000; value += 1) shared(value);
  shared(0);
  expect(compute).toHaveBeenCalledTimes(1001);
});
