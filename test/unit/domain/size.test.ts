import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  cpuMillicoresFor,
  formatSize,
  memoryGibFor,
  parseSize,
  sizeOfCores,
} from "../../../src/domain/size.ts";

const size = fc.integer({ min: 1, max: 24 }).map(sizeOfCores);

describe("sizes", () => {
  it("have 4 GiB per core, in both directions", () => {
    fc.assert(
      fc.property(size, ({ cpuMillicores, memoryGib }) => {
        expect(memoryGibFor(cpuMillicores)).toBe(memoryGib);
        expect(cpuMillicoresFor(memoryGib)).toBe(cpuMillicores);
      }),
    );
  });

  it("survive a round trip through the text of an annotation", () => {
    fc.assert(
      fc.property(size, (each) => {
        expect(parseSize(formatSize(each))).toEqual(each);
      }),
    );
    for (const text of ["", "4000m", "4/16Gi", "4000m/16Gi ", "4000.0m/16Gi", "-1m/4Gi"]) {
      expect(parseSize(text)).toBeUndefined();
    }
  });
});
