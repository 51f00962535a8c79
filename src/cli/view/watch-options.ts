import { option, UsageError } from "../../settings/option.ts";
import { durationMs, onOff } from "../../settings/values.ts";

/** Options of a command that shows the state of a rescale, to follow its progress. */
export const watchOptions = {
  watch: option(onOff, { description: "go on until the outcome", default: "false", flagOnly: true }),
  timeout: option(durationMs("1s", "24h").optional(), {
    placeholder: "duration",
    description: "with --watch: how long at most, such as 15m; without it until the outcome",
    flagOnly: true,
  }),
};

/** @throws UsageError */
export function requireWatch(watch: boolean, timeoutMs: number | undefined): void {
  if (timeoutMs !== undefined && !watch) throw new UsageError("--timeout goes with --watch.");
}
