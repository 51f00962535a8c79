import { describe, expect, it } from "vitest";
import { computeUnits } from "../../../src/domain/compute-units.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";

describe("compute units", () => {
  it("count one unit per 2 cores with 8 GiB, summed over all replicas", () => {
    expect(computeUnits(sizeOfCores(2), 1)).toBe(1);
    expect(computeUnits(sizeOfCores(1), 3)).toBe(1.5);
    expect(computeUnits(sizeOfCores(24), 2)).toBe(24);
  });
});
