import { IGNORE_WINDOW_ANNOTATION, PIPE_SCALINGS } from "../../crd/names.ts";
import { option } from "../../settings/option.ts";
import { durationMs } from "../../settings/values.ts";
import { outputOption, programCommand } from "../options.ts";
import { printOne } from "../output.ts";
import { recordsCommand } from "./command.ts";
import { SERVICES } from "./kinds.ts";
import { serviceArgument } from "./options.ts";
import { retryOnConflict, withKnownOutcome } from "./retry.ts";
import { requireScaling } from "./scaling.ts";

/** Time in which rollouts may start outside the rollout window, unless an admin gives another one. */
const DEFAULT_MS = 2 * 3_600_000;

/** The annotation of a PipeScaling that lets its rollouts start at any time for a while. */
export function ignoredWindow(nowMs: number, forMs = DEFAULT_MS): Record<string, string> {
  return { [IGNORE_WINDOW_ANNOTATION]: new Date(nowMs + forMs).toISOString() };
}

export const openWindow = recordsCommand({
  name: "admin service open-window",
  summary: "let the rollouts of a service start now, although its rollout window is closed",
  details:
    "Rollouts that wait for the window start at once. Rollouts that are in progress when the time of --for ends\n" +
    "continue.",
  examples: ["admin service open-window <uuid>", "admin service open-window <uuid> --for 30m"],
  options: {
    ...serviceArgument,
    for: option(durationMs("1m", "168h"), {
      placeholder: "duration",
      description: "time span in which rollouts can start, such as 30m",
      default: `${DEFAULT_MS / 3_600_000}h`,
      flagOnly: true,
    }),
    ...outputOption,
  },
  async run(records, { service: id, for: forMs, output }, io) {
    const service = await SERVICES.require(records, id);
    const watch = programCommand(records.place, `status ${id} --watch`);
    const annotations = ignoredWindow(records.clock.now(), forMs);
    await retryOnConflict(`The PipeScaling of service ${id}`, async () => {
      const scaling = await requireScaling(records, service, "no rollout waits");
      await withKnownOutcome(
        records.change(PIPE_SCALINGS, scaling, { metadata: { annotations } }),
        `The rollouts of service ${id} may be allowed to start already: see \`${watch}\`. You can run the command again, which only sets the time again`,
      );
    });
    const { name, namespace } = service;
    printOne(io, output, { id, name, namespace, openUntil: annotations[IGNORE_WINDOW_ANNOTATION] });
    io.err(`To watch the rescale: ${watch}\n`);
  },
});
