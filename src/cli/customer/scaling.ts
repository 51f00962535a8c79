import { toPipeScaling } from "../../api/resources/pipe-scaling/schema.ts";
import { sizeOf } from "../../crd/size-fields.ts";
import { describeSize } from "../../domain/size.ts";
import { outputOption, requireWatch, watchOptions } from "../options.ts";
import { printData, printOne, printTable } from "../output.ts";
import { exitCodeOf, watch } from "../view/follow.ts";
import { rowOfView } from "../view/rescale-view.ts";
import { followAccepted } from "./accepted.ts";
import { serviceArgument } from "./access.ts";
import { boost } from "./boost.ts";
import { apiCommand, servicePath } from "./command.ts";
import { progress, sizeFields } from "./responses.ts";
import { history, limits } from "./scaling-facts.ts";
import { viewOf, watchScaling } from "./scaling-watch.ts";
import { sizeFrom, sizeOptions } from "./size-options.ts";

const get = apiCommand({
  name: "scaling get",
  summary: "show the size of a service's pipes, and the progress of a rescale",
  details:
    "Exits with 3 if the rescale failed or is suspended. With --watch and json or yaml, the progress goes to\n" +
    "standard error, and the outcome to standard output.",
  examples: [
    "scaling get <uuid>",
    "scaling get <uuid> --watch --timeout 15m",
    "scaling get <uuid> --output json",
  ],
  options: { ...serviceArgument, ...watchOptions, ...outputOption },
  check: ({ watch, timeout }) => requireWatch(watch, timeout),
  async run(api, { service, watch: isWatch, timeout, output }, io) {
    const path = await servicePath(api, service, "pipesCdcScaling");
    const watched = { api, path, service, requested: undefined };
    if (isWatch) return await watch(io, output, watchScaling(watched), { timeoutMs: timeout, clock: api });
    const { result } = await api.request({ method: "GET", path: `${path}/progress` }, progress);
    const view = viewOf(service, result);
    if (output !== "table") {
      printData(io, output, { service, ...result });
      return exitCodeOf(view);
    }
    const { pipes, requestId, startedAt, completedAt, failures, fallbacks = [] } = result;
    const restarted = fallbacks.map(({ pipe, reason: restartedBecause, message }) => {
      return { pipe, restartedBecause, message };
    });
    printOne(io, output, {
      service,
      ...rowOfView(view),
      ...(pipes?.inPlace ? { inPlace: pipes.inPlace } : {}),
      requestId,
      startedAt,
      completedAt,
    });
    printTable(io, ["pipe", "reason", "attempts", "nextRetryAt", "message"], failures);
    printTable(io, ["pipe", "restartedBecause", "message"], restarted);
    return exitCodeOf(view);
  },
});

const set = apiCommand({
  name: "scaling set",
  summary: "change the size of all pipes of a service",
  details:
    "Memory is always 4 GiB for each core, so one of the two options is enough. The API accepts the size at\n" +
    "once; the rescale takes seconds in place, otherwise minutes. --watch shows the progress. Ctrl-C ends the\n" +
    "watch, not the rescale. During a boost, this changes the size after the boost.",
  examples: [
    "scaling set <uuid> --cores 4 --watch",
    "scaling set <uuid> --memory-gb 32",
    "scaling set <uuid> --cores 4 --watch --timeout 15m --output json",
  ],
  options: { ...serviceArgument, ...sizeOptions, ...watchOptions, ...outputOption },
  check({ cores, memoryGb, watch, timeout }) {
    requireWatch(watch, timeout);
    sizeFrom(cores, memoryGb);
  },
  async run(api, { service, cores, memoryGb, ...options }, io) {
    const path = await servicePath(api, service, "pipesCdcScaling");
    const body = toPipeScaling(sizeFrom(cores, memoryGb));
    const { requestId, result } = await api.request({ method: "PATCH", path, body }, sizeFields);
    const size = sizeOf(result);
    const requested = { size, requestId };
    const accepted = { service, path, requestId, text: describeSize(size), data: result, requested };
    return await followAccepted(api, accepted, options, io);
  },
});

export const scaling = [get, set, boost, limits, history];
