import { expect, it, vi } from "vitest";
import { memoized, shared } from "../../../src/kube/memoized.ts";

it("computes the result only once for the same arguments", () => {
  const compute = vi.fn((first: string, second?: string) => ({ first, second }));
  const cached = memoized(compute);
  expect(cached("a", "b")).toBe(cached("a", "b"));
  expect(cached("a"), "fewer arguments").not.toBe(cached("a", "b"));
  expect(cached("ab"), "the same characters").not.toBe(cached("a", "b"));
  expect(compute).toHaveBeenCalledTimes(3);
});

it("keeps a bounded number of results", () => {
  const compute = vi.fn((value: number) => ({ value }));
  const cached = memoized(compute);
  for (let value = 0; value < 1000; value += 1) cached(value);
  cached(0);
  expect(compute).toHaveBeenCalledTimes(1001);
});

it("equal values are one value, so that thousands of objects share them", () => {
  const resources = () => ({ requests: { cpu: "1" } });
  expect(shared(resources())).toBe(shared(resources()));
  expect(shared(resources())).toEqual(resources());
  expect([shared("a"), shared(undefined)]).toEqual(["a", undefined]);
});
