import { until } from "../../api/resources/pipe-scaling/boost-schema.ts";
import { toPipeScaling } from "../../api/resources/pipe-scaling/schema.ts";
import { sizeOf } from "../../crd/size-fields.ts";
import { describeSize } from "../../domain/size.ts";
import { option, UsageError, type Values } from "../../settings/option.ts";
import { durationMs, onOff } from "../../settings/values.ts";
import type { Io } from "../io.ts";
import { outputOption, requireWatch, watchOptions } from "../options.ts";
import { printData, printOne } from "../output.ts";
import { describeBoost } from "../view/rescale-view.ts";
import { followAccepted } from "./accepted.ts";
import { serviceArgument } from "./access.ts";
import type { ApiClient } from "./client.ts";
import { apiCommand, servicePath } from "./command.ts";
import { bodyValue, boost as boostResult, nothing, progress } from "./responses.ts";
import { viewOf } from "./scaling-watch.ts";
import { sizeFrom, sizeOptions } from "./size-options.ts";

const options = {
  ...serviceArgument,
  ...sizeOptions,
  forMs: option(durationMs("1s", "8760h").optional(), {
    placeholder: "duration",
    description: "duration of the boost, such as 8h",
    flagOnly: true,
  }),
  until: option(bodyValue(until, String).optional(), {
    placeholder: "time",
    description: "end of the boost, such as 2026-01-31T20:00:00Z",
    flagOnly: true,
  }),
  end: option(onOff, { description: "end the boost now", default: "false", flagOnly: true }),
  ...watchOptions,
  ...outputOption,
};

type BoostValues = Values<typeof options>;

export const boost = apiCommand({
  name: "scaling boost",
  summary: "set a temporary size, for example for an initial load",
  details:
    "When the boost ends, the pipes return to the requested size without another command. A new boost\n" +
    "replaces the current one; --end ends it now. Without options, prints the current boost and the time left.",
  examples: [
    "scaling boost <uuid> --cores 16 --for 8h --watch",
    "scaling boost <uuid> --cores 16 --until 2026-01-31T20:00:00Z",
    "scaling boost <uuid>",
    "scaling boost <uuid> --end",
  ],
  options,
  check: requireOneUse,
  async run(api, values, io) {
    const path = await servicePath(api, values.service, "pipesCdcScaling");
    if (values.end) return await end(api, path, values, io);
    return isStart(values) ? await start(api, path, values, io) : await show(api, path, values, io);
  },
});

function isStart({ cores, memoryGb, forMs, until: end }: BoostValues): boolean {
  return [cores, memoryGb, forMs, end].some((each) => each !== undefined);
}

/** @throws UsageError for options that do not go together */
function requireOneUse(values: BoostValues): void {
  const { cores, memoryGb, forMs, until: at, watch, timeout } = values;
  requireWatch(watch, timeout);
  if (values.end) {
    if (!isStart(values)) return;
    throw new UsageError("--end ends the boost now and cannot be combined with a size, --for or --until.");
  }
  if (!isStart(values)) {
    if (!watch) return;
    throw new UsageError(
      "--watch needs a size or --end here. To follow any rescale, use `scaling get --watch`.",
    );
  }
  sizeFrom(cores, memoryGb);
  if ((forMs === undefined) !== (at === undefined)) return;
  throw new UsageError(
    at === undefined
      ? "Specify the end of the boost with --for, such as --for 8h, or with --until."
      : "--for and --until both set the end of the boost. Specify only one of the two.",
  );
}

async function start(api: ApiClient, path: string, values: BoostValues, io: Io): Promise<number> {
  const { service, cores, memoryGb, forMs = 0, until: at } = values;
  const end = at ?? new Date(api.now() + forMs).toISOString();
  const body = { ...toPipeScaling(sizeFrom(cores, memoryGb)), until: end };
  const request = { method: "PUT", path: `${path}/boost`, body } as const;
  const { requestId, result } = await api.request(request, boostResult);
  const size = sizeOf(result);
  const text = `${describeSize(size)} until ${result.until}`;
  const requested = { size, requestId, until: result.until };
  return await followAccepted(api, { service, path, requestId, text, data: result, requested }, values, io);
}

async function end(api: ApiClient, path: string, values: BoostValues, io: Io): Promise<number> {
  const { service } = values;
  const { requestId } = await api.request({ method: "DELETE", path: `${path}/boost` }, nothing);
  const text = "the end of the boost";
  const accepted = { service, path, requestId, text, data: {}, requested: undefined, hasEndedBoost: true };
  return await followAccepted(api, accepted, values, io);
}

async function show(api: ApiClient, path: string, { service, output }: BoostValues, io: Io): Promise<number> {
  const { result } = await api.request({ method: "GET", path: `${path}/progress` }, progress);
  const { boost: current } = viewOf(service, result);
  if (output !== "table")
    printData(io, output, { service, ...(result.boost ? { boost: result.boost } : {}) });
  else if (current) printOne(io, output, { service, boost: describeBoost(current) });
  const command = `pipe-scaling scaling boost ${service} --cores 16 --for 8h${api.access.flags}`;
  if (!current) io.err(`No boost is in effect. To start one: ${command}\n`);
  return 0;
}
