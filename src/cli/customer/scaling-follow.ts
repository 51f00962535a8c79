import { systemClock } from "../../runtime/clock.ts";
import type { Io } from "../io.ts";
import { type Format, printData } from "../output.ts";
import { besideOutput, follow } from "../view/follow.ts";
import { profileFlag } from "./access.ts";
import { ScalingWatch, type ScalingWatchOptions } from "./scaling-watch.ts";
import { wait } from "./wait.ts";

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
  const { err, signal } = io;
  const isForPeople = output === "table";
  const watch = new ScalingWatch({ ...place, clock: systemClock, wait });
  const ending = new AbortController();
  try {
    return await follow(isForPeople ? io : besideOutput(io), watch.news(ending.signal), { timeoutMs });
  } finally {
    // While it waits to ask again, nobody waits for that.
    ending.abort();
    if (!isForPeople && watch.last) printData(io, output, { service: place.service, ...watch.last });
    if (signal.aborted && place.asked) {
      err(
        `What was asked for goes on: see \`pipe-scaling scaling get ${place.service} --watch${profileFlag(place.api.access)}\`.\n`,
      );
    }
  }
}
