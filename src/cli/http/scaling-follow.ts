import { systemClock } from "../../runtime/clock.ts";
import type { Io } from "../io.ts";
import { option, UsageError } from "../option.ts";
import { type Format, printData } from "../output.ts";
import { durationMs, onOff } from "../values.ts";
import { follow } from "../view/follow.ts";
import { wait } from "./api.ts";
import { ScalingWatch, type ScalingWatchOptions } from "./scaling-watch.ts";

export const watchOptions = {
  watch: option(onOff, { description: "go on until the outcome", default: "false" }),
  timeout: option(durationMs("1s", "24h").optional(), {
    placeholder: "duration",
    description: "with --watch: how long at most, such as 15m; without it until the outcome",
  }),
};

/** @throws UsageError */
export function requireWatch(watch: boolean, timeoutMs: number | undefined): void {
  if (timeoutMs !== undefined && !watch) throw new UsageError("--timeout goes with --watch.");
}

export interface Following {
  readonly output: Format;
  readonly timeoutMs: number | undefined;
}

/**
 * Shows how a rescale goes on until its outcome, which for programs is printed at the end.
 *
 * @returns the exit code
 */
export async function followScaling(
  io: Io,
  place: Pick<ScalingWatchOptions, "api" | "path" | "service" | "asked">,
  { output, timeoutMs }: Following,
): Promise<number> {
  const { err, signal, terminal } = io;
  const isForPeople = output === "table";
  const shown = isForPeople ? io : { out: err, err, signal, terminal: { ...terminal, output: false } };
  const watch = new ScalingWatch({ ...place, clock: systemClock, wait });
  const ending = new AbortController();
  try {
    return await follow(shown, watch.news(ending.signal), { timeoutMs });
  } finally {
    // While it waits to ask again, nobody waits for that.
    ending.abort();
    if (!isForPeople && watch.last) printData(io, output, { service: place.service, ...watch.last });
    if (signal.aborted && place.asked) {
      err(`What was asked for goes on: see \`pipe-scaling scaling get ${place.service} --watch\`.\n`);
    }
  }
}
