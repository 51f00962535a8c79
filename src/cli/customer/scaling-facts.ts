import { sizeOf } from "../../crd/size-fields.ts";
import { describeSize } from "../../domain/size.ts";
import { outputOption } from "../options.ts";
import { HISTORY_COLUMNS, printData, printList, printOne } from "../output.ts";
import { serviceArgument } from "./access.ts";
import { apiCommand, servicePath } from "./command.ts";
import * as responses from "./responses.ts";

/*
 * Commands that read the sizes that can be requested for a service, and its last changes of size.
 */

export const limits = apiCommand({
  name: "scaling limits",
  summary: "show the sizes that can be requested for a service's pipes",
  details:
    "Also shows whether scaling is suspended. While the rollout window of the service is closed, shows whether\n" +
    "resizes with restarts or all resizes wait until it opens.",
  options: { ...serviceArgument, ...outputOption },
  async run(api, { service, output }, io) {
    const path = await servicePath(api, service, "pipesCdcScaling/limits");
    const { result } = await api.request({ method: "GET", path }, responses.limits);
    if (output !== "table") {
      printData(io, output, { service, ...result });
      return;
    }
    const { minimum, maximum, step, suspended, rolloutWindow } = result;
    const sizes = { minimum, maximum, step, default: result.default };
    const isClosed = rolloutWindow?.open === false;
    printOne(io, output, {
      service,
      ...Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, describeSize(sizeOf(size))])),
      suspended,
      ...(isClosed ? { resizesThatWait: rolloutWindow.appliesTo, until: rolloutWindow.opensAt } : {}),
    });
  },
});

export const history = apiCommand({
  name: "scaling history",
  summary: "list the last sizes of a service's pipes, newest first",
  options: { ...serviceArgument, ...outputOption },
  async run(api, { service, output }, io) {
    const path = await servicePath(api, service, "pipesCdcScaling/history");
    const { result } = await api.request({ method: "GET", path }, responses.history);
    const rows = result.map((entry) => ({ ...entry, size: describeSize(sizeOf(entry)) }));
    printList(io, output, HISTORY_COLUMNS, output === "table" ? rows : result);
  },
});
