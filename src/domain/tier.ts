import { DEFAULT_MAXIMUM_CORES, type Size, sizeOfCores, smaller } from "./size.ts";

/** A tier: default and maximum size of the pipes of an organization. */
export interface Tier {
  readonly name: string;
  readonly defaultSize: Size;
  readonly maximumSize: Size;
}

export type Tiers = ReadonlyMap<string, Tier>;

const MAXIMUM = sizeOfCores(DEFAULT_MAXIMUM_CORES);

export const BUILT_IN_TIERS: Tiers = new Map(
  [
    { name: "basic", defaultSize: sizeOfCores(1), maximumSize: MAXIMUM },
    { name: "scale", defaultSize: sizeOfCores(2), maximumSize: MAXIMUM },
    { name: "enterprise", defaultSize: sizeOfCores(2), maximumSize: MAXIMUM },
  ].map((tier) => [tier.name, tier]),
);

/** The sources of a desired size: the request, the default of the tier, or the maximum of the tier. */
export const SIZE_SOURCES = ["Spec", "TierDefault", "TierLimit"] as const;

type SizeSource = (typeof SIZE_SOURCES)[number];

export interface DesiredSize {
  readonly size: Size;
  readonly source: SizeSource;
}

/** Returns the smaller of the requested size (or the tier's default) and the tier's maximum. */
export function desiredSize(requested: Size | undefined, tier: Tier): DesiredSize {
  const wanted = requested ?? tier.defaultSize;
  const size = smaller(wanted, tier.maximumSize);
  if (size !== wanted) return { size, source: "TierLimit" };
  return { size, source: requested ? "Spec" : "TierDefault" };
}
