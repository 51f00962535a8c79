import * as z from "zod";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  cpuMillicoresFor,
  describeSize,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
  type Size,
  sizeOfCores,
} from "../../domain/size.ts";
import { option, UsageError } from "../../settings/option.ts";
import { integer, written } from "../../settings/values.ts";
import type { CommandGroup } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { EXIT_DONE } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type Format, printData, printList, printOne, type Row } from "../output.ts";
import { exitCodeOf, watch } from "../view/follow.ts";
import { requireWatch, watchOptions } from "../view/watch-options.ts";
import { organizationOption, profileFlag, serviceArgument } from "./access.ts";
import { apiCommand, servicePath } from "./command.ts";
import { type Progress, progress, sizeFields, toSize } from "./responses.ts";
import { ScalingWatch, type ScalingWatchOptions, stateOf } from "./scaling-watch.ts";

const get = apiCommand({
  name: "get",
  summary: "show the size of a service's pipes, and the progress of a rescale",
  details:
    "Exits with 3 if the rescale failed or is suspended. With --watch and json or yaml the progress goes to\n" +
    "standard error, and the outcome to standard output.",
  examples: [
    "scaling get <uuid>",
    "scaling get <uuid> --watch --timeout 15m",
    "scaling get <uuid> --output json",
  ],
  arguments: serviceArgument,
  options: z.object({ ...watchOptions, ...organizationOption, ...outputOption }),
  check: ({ watch, timeout }) => requireWatch(watch, timeout),
  async run(api, { service, watch: isWatch, timeout, organization, output }, io) {
    const path = `${await servicePath(api, { service, organization })}/pipesCdcScaling`;
    if (isWatch) return await watchScaling(io, { api, path, service, requested: undefined }, output, timeout);
    const { result } = await api.request({ method: "GET", path: `${path}/progress` }, progress);
    if (output === "table") printProgress(io, service, result);
    else printData(io, output, { service, ...result });
    return exitCodeOf({ state: stateOf(result) });
  },
});

const cores = integer(CPU_MINIMUM_MILLICORES / 1000, CPU_MAXIMUM_MILLICORES / 1000);

const memoryGb = written(
  `it must be a whole number from ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB}, a multiple of ${MEMORY_STEP_GIB}`,
  (text) => {
    const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
    const isInRange = value >= MEMORY_MINIMUM_GIB && value <= MEMORY_MAXIMUM_GIB;
    return isInRange && value % MEMORY_STEP_GIB === 0 ? value : undefined;
  },
);

const set = apiCommand({
  name: "set",
  summary: "change the size of all pipes of a service",
  details:
    "Cores and memory go together, 4 GiB for each core, so one of them is enough. The API accepts the size at\n" +
    "once; the rescale takes some minutes. --watch shows the progress. Ctrl-C ends the watch, not the rescale.",
  examples: [
    "scaling set <uuid> --cores 4 --watch",
    "scaling set <uuid> --memory-gb 32",
    "scaling set <uuid> --cores 4 --watch --timeout 15m --output json",
  ],
  arguments: serviceArgument,
  options: z.object({
    cores: option(cores.optional(), { placeholder: "number", description: "CPU cores of each replica" }),
    memoryGb: option(memoryGb.optional(), {
      placeholder: "number",
      description: "memory of each replica, in GiB",
    }),
    ...watchOptions,
    ...organizationOption,
    ...outputOption,
  }),
  check({ cores, memoryGb, watch, timeout }) {
    requireWatch(watch, timeout);
    sizeFrom(cores, memoryGb);
  },
  async run(api, { service, cores, memoryGb, watch: isWatch, timeout, organization, output }, io) {
    const { cpuMillicores, memoryGib } = sizeFrom(cores, memoryGb);
    const body = { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib };
    const path = `${await servicePath(api, { service, organization })}/pipesCdcScaling`;
    const { requestId, result } = await api.request({ method: "PATCH", path, body }, sizeFields);
    const size = toSize(result);
    if (isWatch) {
      io.err(`Accepted: ${describeSize(size)} (request ${requestId}).\n`);
      return await watchScaling(io, { api, path, service, requested: { size, requestId } }, output, timeout);
    }
    if (output === "table") printOne(io, output, { service, accepted: describeSize(size), requestId });
    else printData(io, output, { service, ...result, requestId });
    io.err(`The rescale takes some minutes. To watch it: ${watchCommand(api, service)}\n`);
    return EXIT_DONE;
  },
});

function watchCommand({ access }: ScalingWatchOptions["api"], service: string): string {
  return `pipe-scaling scaling get ${service} --watch${profileFlag(access)}`;
}

/** @throws UsageError if there is no size, or two that do not match */
function sizeFrom(cores: number | undefined, memoryGb: number | undefined): Size {
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
  throw new UsageError("No size is given: give --cores or --memory-gb.");
}

async function watchScaling(
  io: Io,
  options: ScalingWatchOptions,
  output: Format,
  timeoutMs: number | undefined,
): Promise<number> {
  const { api, service, requested } = options;
  const scaling = new ScalingWatch(options);
  try {
    return await watch(io, output, scaling.pollOptions, timeoutMs);
  } finally {
    if (output !== "table" && scaling.last) printData(io, output, { service, ...scaling.last });
    if (io.signal.aborted && requested) {
      io.err(`The rescale goes on. To watch it: ${watchCommand(api, service)}\n`);
    }
  }
}

function printProgress(io: Io, service: string, of: Progress): void {
  const { state, reason, message, desired, effective, pipes, failures, fallbacks = [] } = of;
  const { requestId, startedAt, completedAt } = of;
  printOne(io, "table", {
    ...{ service, state, reason, message },
    desired: desired && describeSize(toSize(desired)),
    source: desired?.source,
    effective: effective && describeSize(toSize(effective)),
    pipes: pipes && `${pipes.updated}/${pipes.total}`,
    ...(pipes?.inPlace ? { inPlace: pipes.inPlace } : {}),
    ...{ requestId, startedAt, completedAt },
  });
  printTable(io, ["pipe", "reason", "attempts", "at", "message"], failures);
  printTable(io, ["pipe", "restartedBecause", "message"], fallbacks.map(fallbackRow));
}

function fallbackRow({ pipe, reason, message }: NonNullable<Progress["fallbacks"]>[number]) {
  return { pipe, restartedBecause: reason, message };
}

function printTable(io: Io, columns: readonly string[], rows: readonly Row[]): void {
  if (rows.length === 0) return;
  io.out("\n");
  printList(io, "table", columns, rows);
}

export const scaling: CommandGroup = {
  name: "scaling",
  summary: "show and change the size of a service's pipes",
  commands: [get, set],
};
