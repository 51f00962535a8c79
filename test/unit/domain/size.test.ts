import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  allSizes,
  cpuMillicoresFor,
  formatSize,
  memoryGibFor,
  parseSize,
  type Size,
  sizeOfCores,
  smaller,
  smallestSizeWith,
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

  it("that owners chose are limited in both CPU and memory, and only as much as necessary", () => {
    const chosen = fc.record<Size>({
      cpuMillicores: fc.integer({ min: 1, max: 48_000 }),
      memoryGib: fc.integer({ min: 1, max: 192 }),
    });
    fc.assert(
      fc.property(chosen, size, (each, maximum) => {
        const limited = smaller(each, maximum);
        expect([each.cpuMillicores, maximum.cpuMillicores]).toContain(limited.cpuMillicores);
        expect([each.memoryGib, maximum.memoryGib]).toContain(limited.memoryGib);
        for (const most of [each, maximum]) {
          expect(limited.cpuMillicores).toBeLessThanOrEqual(most.cpuMillicores);
          expect(limited.memoryGib).toBeLessThanOrEqual(most.memoryGib);
        }
        expect(smaller(maximum, each)).toEqual(limited);
      }),
    );
  });

  it("include the smallest one with some CPU and memory, unless no size is large enough", () => {
    const amount = (most: number) => fc.double({ min: 0, max: most, noNaN: true });
    fc.assert(
      fc.property(amount(130_000), amount(520), (cpuMillicores, memoryGib) => {
        const isEnough = (each: Size) => each.cpuMillicores >= cpuMillicores && each.memoryGib >= memoryGib;
        expect(smallestSizeWith(cpuMillicores, memoryGib)).toEqual(allSizes().find(isEnough));
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
