import type { Tiers } from "../../domain/tier.ts";
import { UsageError } from "../../settings/option.ts";

/** @throws UsageError with the tiers that there are */
export function checkTier(tier: string, tiers: Tiers): void {
  if (tiers.has(tier)) return;
  throw new UsageError(
    `--tier (or PIPE_SCALING_TIER) is ${JSON.stringify(tier)}, but it must be one of the tiers: ${[...tiers.keys()].join(", ")}.`,
  );
}
