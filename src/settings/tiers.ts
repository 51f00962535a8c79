import { BUILT_IN_TIERS, type Tiers } from "../domain/tier.ts";
import { messageOf } from "../kube/errors.ts";
import { readTiersFile } from "../records/tiers-file.ts";
import { option, UsageError } from "./option.ts";
import { nonEmptyText } from "./values.ts";

export const tiersFileSetting = {
  tiersFile: option(nonEmptyText.optional(), {
    placeholder: "file",
    description: "YAML file with the tiers of organizations; replaces the built-in tiers",
    chart: false,
  }),
};

/** @throws UsageError if the file is invalid */
export function readTiers(file: string | undefined): Tiers {
  if (file === undefined) return BUILT_IN_TIERS;
  try {
    return readTiersFile(file);
  } catch (cause) {
    const why = messageOf(cause);
    throw new UsageError(`--tiers-file (or PIPE_SCALING_TIERS_FILE) cannot be used: ${why}`, { cause });
  }
}
