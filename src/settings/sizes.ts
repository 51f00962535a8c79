import { CPU_MAXIMUM_MILLICORES, DEFAULT_MAXIMUM_CORES, describeSize, sizeOfCores } from "../domain/size.ts";
import type { Tiers } from "../domain/tier.ts";
import { option, UsageError } from "./option.ts";
import { integer } from "./values.ts";

/** A setting of both processes; the chart value is `sizes.maximumCores`. */
export const sizeSettings = {
  maximumCores: option(integer(1, CPU_MAXIMUM_MILLICORES / 1000), {
    placeholder: "number",
    description:
      "CPU cores of the largest size that can be requested; a tier can allow less. A smaller number resizes no pipe: services with a larger size keep it",
    default: String(DEFAULT_MAXIMUM_CORES),
    chart: false,
  }),
};

/** @throws UsageError if the default size of a tier is above the largest size */
export function requireDefaultsWithin(maximumCores: number, tiers: Tiers): void {
  const { cpuMillicores } = sizeOfCores(maximumCores);
  for (const { name, defaultSize } of tiers.values()) {
    if (defaultSize.cpuMillicores <= cpuMillicores) continue;
    throw new UsageError(
      `--maximum-cores (or PIPE_SCALING_MAXIMUM_CORES) is ${maximumCores}, but the default size of the tier ${name} is ${describeSize(defaultSize)}: set at least ${defaultSize.cpuMillicores / 1000}, or lower that default.`,
    );
  }
}
