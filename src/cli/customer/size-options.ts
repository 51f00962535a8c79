import { requestedFields } from "../../api/resources/pipe-scaling/schema.ts";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  cpuMillicoresFor,
  LARGEST,
  type Size,
  sizeOfCores,
} from "../../domain/size.ts";
import { option, UsageError } from "../../settings/option.ts";
import { integer } from "../../settings/values.ts";
import { bodyValue } from "./responses.ts";

/** A size on the command line. */
export const sizeOptions = {
  cores: option(integer(CPU_MINIMUM_MILLICORES / 1000, CPU_MAXIMUM_MILLICORES / 1000).optional(), {
    placeholder: "number",
    description: "CPU cores of each replica",
    flagOnly: true,
  }),
  memoryGb: option(bodyValue(requestedFields(LARGEST).replicaMemoryGb, Number).optional(), {
    placeholder: "number",
    description: "memory of each replica, in GiB",
    flagOnly: true,
  }),
};

/** @throws UsageError if there is no size, or two that do not match */
export function sizeFrom(cores: number | undefined, memoryGb: number | undefined): Size {
  const given = cores ?? (memoryGb === undefined ? undefined : cpuMillicoresFor(memoryGb) / 1000);
  if (given === undefined) throw new UsageError("Specify a size with --cores or --memory-gb.");
  const size = sizeOfCores(given);
  if (memoryGb === undefined || memoryGb === size.memoryGib) return size;
  throw new UsageError(
    `--cores ${cores} implies --memory-gb ${size.memoryGib}, not ${memoryGb}. Specify only one of the two.`,
  );
}
