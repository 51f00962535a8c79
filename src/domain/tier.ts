import type { Boost } from "./boost.ts";
import { DEFAULT_MAXIMUM_CORES, type Size, sameSize, sizeOfCores, smaller } from "./size.ts";

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

/** The sources of a desired size: the request, a boost, the default of the tier, or the maximum of the tier. */
export const SIZE_SOURCES = ["Spec", "Boost", "TierDefault", "TierLimit"] as const;

type SizeSource = (typeof SIZE_SOURCES)[number];

export interface DesiredSize {
  readonly size: Size;
  readonly source: SizeSource;
}

/**
 * Returns the size of the boost, or else the requested one, or else the tier's default, but at most the tier's maximum.
 *
 * @param boost only while it is in effect
 */
export function desiredSize(requested: Size | undefined, tier: Tier, boost?: Boost): DesiredSize {
  const wanted = boost?.size ?? requested ?? tier.defaultSize;
  const size = smaller(wanted, tier.maximumSize);
  if (!sameSize(size, wanted)) return { size, source: "TierLimit" };
  if (boost) return { size, source: "Boost" };
  return { size, source: requested ? "Spec" : "TierDefault" };
}
