import { option, UsageError } from "../../settings/option.ts";
import { durationMs, onOff } from "../../settings/values.ts";

/** Of a command that shows how a rescale stands, or with these how it goes on. */
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
