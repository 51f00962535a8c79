import fc from "fast-check";
import { expect, it } from "vitest";
import { integersPattern } from "../../../src/settings/integers-pattern.ts";

const integer = fc.oneof(fc.nat(30), fc.nat(2000), fc.nat(100_000_000));

it("the pattern of a range matches a number if and only if it is in the range", () => {
  fc.assert(
    fc.property(integer, integer, integer, (a, b, other) => {
      const [least, most] = [Math.min(a, b), Math.max(a, b)];
      const pattern = new RegExp(`^(${integersPattern(least, most)})$`);
      for (const value of [other, least - 1, least, least + 1, most - 1, most, most + 1]) {
        expect(pattern.test(String(value)), `${value} in ${least} to ${most}`).toBe(
          value >= least && value <= most,
        );
      }
    }),
    { numRuns: 2000 },
  );
});

it("the pattern of a range does not match leading zeros", () => {
  expect(new RegExp(`^(${integersPattern(0, 15)})$`).test("07")).toBe(false);
});
