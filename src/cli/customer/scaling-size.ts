import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  cpuMillicoresFor,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
  type Size,
  sizeOfCores,
} from "../../domain/size.ts";
import { option, UsageError } from "../../settings/option.ts";
import { integer, written } from "../../settings/values.ts";

const cores = integer(CPU_MINIMUM_MILLICORES / 1000, CPU_MAXIMUM_MILLICORES / 1000);

const memoryGb = written(
  `it must be a whole number from ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB}, a multiple of ${MEMORY_STEP_GIB}`,
  (text) => {
    const value = Number(text);
    const isAllowed =
      value >= MEMORY_MINIMUM_GIB && value <= MEMORY_MAXIMUM_GIB && value % MEMORY_STEP_GIB === 0;
    return /^\d{1,3}$/.test(text) && isAllowed ? value : undefined;
  },
);

export const sizeOptions = {
  cores: option(cores.optional(), { placeholder: "number", description: "CPU cores of each replica" }),
  memoryGb: option(memoryGb.optional(), {
    placeholder: "number",
    description: "memory of each replica, in GiB",
  }),
};

/** @throws UsageError where there is none, or two that do not go together */
export function sizeFrom(cores: number | undefined, memoryGb: number | undefined): Size {
  const byCores = cores === undefined ? undefined : sizeOfCores(cores);
  const byMemory =
    memoryGb === undefined ? undefined : { cpuMillicores: cpuMillicoresFor(memoryGb), memoryGib: memoryGb };
  if (byCores && byMemory && byCores.memoryGib !== byMemory.memoryGib) {
    throw new UsageError(
      `--cores ${cores} goes with --memory-gb ${byCores.memoryGib}, and --memory-gb ${memoryGb} with --cores ${byMemory.cpuMillicores / 1000}: give one of the two.`,
    );
  }
  const size = byCores ?? byMemory;
  if (size) return size;
  throw new UsageError("No size is given: give --cores, or --memory-gb.");
}
