import * as z from "zod";
import { describeSize, type Size } from "../../domain/size.ts";
import { type CommandGroup, defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { EXIT_DONE } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type Format, printData, printOne } from "../output.ts";
import { requireWatch, watchOptions } from "../view/watch-options.ts";
import { accessOptions, organizationOption, profileFlag } from "./access.ts";
import { size as sizeAnswer, toSize } from "./answers.ts";
import { withApi } from "./api.ts";
import { organizationId, servicePath } from "./places.ts";
import { followScaling } from "./scaling-follow.ts";
import { showScaling } from "./scaling-show.ts";
import { sizeFrom, sizeOptions } from "./scaling-size.ts";
import { serviceArgument } from "./service-argument.ts";

const get = defineCommand({
  name: "get",
  summary: "show the size of a service's pipes, and how far a rescale has come",
  details:
    "Ends with 3 where the rescale has failed or is suspended. With --watch and json or yaml the lines about its\n" +
    "way go to standard error, and the outcome to standard output.",
  examples: [
    "scaling get <uuid>",
    "scaling get <uuid> --watch --timeout 15m",
    "scaling get <uuid> --output json",
  ],
  arguments: serviceArgument,
  options: z.object({ ...watchOptions, ...organizationOption, ...outputOption, ...accessOptions }),
  async run({ service, watch, timeout: timeoutMs, organization, output, ...access }, io) {
    requireWatch(watch, timeoutMs);
    return await withApi(access, io, async (api) => {
      const place = { api, service, path: pathOf(await organizationId(api, organization), service) };
      if (!watch) return await showScaling(io, place, output);
      return await followScaling(io, { ...place, asked: undefined }, { output, timeoutMs });
    });
  },
});

const set = defineCommand({
  name: "set",
  summary: "change the size of all pipes of a service",
  details:
    "Cores and memory go together, 4 GiB for each core, so one of them is enough. The API accepts the size at\n" +
    "once; until every pipe has it takes some minutes, which --watch shows. Interrupting that stops nothing.",
  examples: [
    "scaling set <uuid> --cores 4 --watch",
    "scaling set <uuid> --memory-gb 32",
    "scaling set <uuid> --cores 4 --watch --timeout 15m --output json",
  ],
  arguments: serviceArgument,
  options: z.object({
    ...sizeOptions,
    ...watchOptions,
    ...organizationOption,
    ...outputOption,
    ...accessOptions,
  }),
  async run({ service, cores, memoryGb, watch, timeout: timeoutMs, organization, output, ...access }, io) {
    requireWatch(watch, timeoutMs);
    const body = sizeFields(sizeFrom(cores, memoryGb));
    return await withApi(access, io, async (api) => {
      const path = pathOf(await organizationId(api, organization), service);
      const { requestId, result } = await api.ask({ method: "PATCH", path, body }, sizeAnswer);
      const size = toSize(result);
      if (!watch) {
        showAccepted(io, output, {
          service,
          size,
          requestId,
          watched: `${service} --watch${profileFlag(api.access)}`,
        });
        return EXIT_DONE;
      }
      io.err(`Accepted: ${describeSize(size)} (request ${requestId}).\n`);
      return await followScaling(
        io,
        { api, path, service, asked: { size, requestId } },
        { output, timeoutMs },
      );
    });
  },
});

interface Accepted {
  readonly service: string;
  readonly size: Size;
  readonly requestId: string;
  /** The words of a command that watches it. */
  readonly watched: string;
}

function showAccepted(io: Io, output: Format, { service, size, requestId, watched }: Accepted): void {
  if (output === "table") printOne(io, output, { service, accepted: describeSize(size), requestId });
  else printData(io, output, { service, ...sizeFields(size), requestId });
  io.err(`Until every pipe has it takes some minutes: see \`pipe-scaling scaling get ${watched}\`.\n`);
}

/** As the API has them. */
function sizeFields({ cpuMillicores, memoryGib }: Size) {
  return { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib };
}

function pathOf(organization: string, service: string): string {
  return `${servicePath(organization, service)}/pipesCdcScaling`;
}

export const scaling: CommandGroup = {
  name: "scaling",
  summary: "show and change the size of a service's pipes, by the HTTP API",
  commands: [get, set],
};
