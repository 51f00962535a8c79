import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  cpuQuantity,
  memoryQuantity,
  parseQuantity,
  sameQuantity,
  sizeOfQuantities,
} from "../../../src/domain/quantity.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";

const size = fc.integer({ min: 1, max: 24 }).map(sizeOfCores);

describe("quantities", () => {
  it("convert to a size and back", () => {
    fc.assert(
      fc.property(size, (each) => {
        expect(sizeOfQuantities(cpuQuantity(each), memoryQuantity(each))).toEqual(each);
      }),
    );
    expect(sizeOfQuantities("4", "16384Mi")).toEqual(sizeOfCores(4));
    expect(sizeOfQuantities("1500u", "4Gi")).toBeUndefined();
    expect(sizeOfQuantities("1", "1G")).toBeUndefined();
    expect(sizeOfQuantities(undefined, "4Gi")).toBeUndefined();
  });

  it.each([
    ["1", "1000m"],
    ["4Gi", "4096Mi"],
    ["1e3", "1k"],
    ["0.5", "500m"],
    ["1E", "1e18"],
    [".5", "500m"],
    ["1.", "1"],
    ["12e-1", "1200m"],
    ["1Ki", "1024"],
  ])("%s equals %s", (a, b) => expect(sameQuantity(a, b)).toBe(true));

  it.each(["", ".", "abc", "1 Gi", "1GI", "0x10", "1e", "--1", "1ki"])("%j is not a quantity", (text) => {
    expect(parseQuantity(text)).toBeUndefined();
  });

  it("are exact at any length", () => {
    expect(sameQuantity("9007199254740993", "9007199254740992")).toBe(false);
  });
});
