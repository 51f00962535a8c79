import { describe, expect, it } from "vitest";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { BUILT_IN_TIERS, desiredSize } from "../../../src/domain/tier.ts";

describe("the desired size", () => {
  const tier = { name: "small", defaultSize: sizeOfCores(1), maximumSize: sizeOfCores(2) };
  it.each([
    [undefined, 1, "TierDefault"],
    [1, 1, "Spec"],
    [2, 2, "Spec"],
    [3, 2, "TierLimit"],
  ] as const)(
    "for %s requested cores in a tier with a maximum of 2 is %s, with the source %s",
    (requestedCores, cores, source) => {
      const requested = requestedCores === undefined ? undefined : sizeOfCores(requestedCores);
      expect(desiredSize(requested, tier)).toEqual({ size: sizeOfCores(cores), source });
    },
  );

  it.each([
    [undefined, 2, 2, "Boost"],
    [1, 2, 2, "Boost"],
    [2, 1, 1, "Boost"],
    [1, 3, 2, "TierLimit"],
  ] as const)(
    "for %s requested cores and a boost of %s is %s in a tier with a maximum of 2, with the source %s",
    (requestedCores, boostedCores, cores, source) => {
      const requested = requestedCores === undefined ? undefined : sizeOfCores(requestedCores);
      const boost = { size: sizeOfCores(boostedCores), untilMs: 1 };
      expect(desiredSize(requested, tier, boost)).toEqual({ size: sizeOfCores(cores), source });
    },
  );

  it("without a request is the published default size of each built-in tier", () => {
    const defaults = [...BUILT_IN_TIERS.values()].map((each) => [
      each.name,
      desiredSize(undefined, each).size.cpuMillicores,
    ]);
    expect(defaults).toEqual([
      ["basic", 1000],
      ["scale", 2000],
      ["enterprise", 2000],
    ]);
  });
});
