import { BUILT_IN_TIERS, type Tiers } from "../domain/tier.ts";
import { readTiersFile } from "../records/tiers-file.ts";
import { option, UsageError } from "./option.ts";
import { nonEmptyText } from "./values.ts";

export const tiersFileSetting = {
  tiersFile: option(nonEmptyText.optional(), {
    placeholder: "file",
    description: "tiers of organizations, in YAML, in place of the built-in ones",
    chart: false,
  }),
};

/** @throws UsageError with what is wrong with the file */
export function readTiers(file: string | undefined): Tiers {
  if (file === undefined) return BUILT_IN_TIERS;
  try {
    return readTiersFile(file);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`--tiers-file (or PIPE_SCALING_TIERS_FILE) cannot be used: ${why}`, { cause });
  }
}
