import { once } from "node:events";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { EXIT_DONE, EXIT_TIMEOUT, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type Format, printData, type Row } from "../output.ts";
import { type PollOptions, poll, type Update } from "./poll.ts";
import { frame, plainLines } from "./render.ts";
import type { RescaleState, RescaleView } from "./rescale-view.ts";
import { broken, labeled, painter, printable } from "./text.ts";
import { roughly, stopwatch } from "./time.ts";

const EXIT_CODES: ReadonlyMap<RescaleState, number> = new Map([
  ["scaled", EXIT_DONE],
  ["failed", EXIT_UNHEALTHY],
  ["suspended", EXIT_UNHEALTHY],
]);

type WatchClock = Pick<Clock, "now" | "monotonic">;

type FollowIo = Pick<Io, "out" | "err" | "terminal" | "signal">;

/** Returns the exit code for a rescale in this state, which is 0 while there is no outcome. */
export function exitCodeOf({ state }: Pick<RescaleView, "state">): number {
  return EXIT_CODES.get(state) ?? EXIT_DONE;
}

/**
 * Polls a rescale until its outcome. With json or yaml the progress goes to standard error as plain lines, and
 * standard output has only the last state, for programs. The times in the rescale are compared with `clock`, because the
 * clock of this machine can be wrong.
 */
export async function watch(
  io: FollowIo,
  output: Format,
  options: PollOptions,
  { timeoutMs, clock }: { readonly timeoutMs: number | undefined; readonly clock: Pick<Clock, "now"> },
): Promise<number> {
  const limits = { timeoutMs, clock: { ...systemClock, now: () => clock.now() } };
  if (output === "table") return await follow(io, (end) => poll(options, end), limits);
  const { err, signal, terminal } = io;
  const onStderr = { out: err, err, signal, terminal: { ...terminal, output: false } };
  let last: Row | undefined;
  const read = async () => {
    const reading = await options.read();
    last = reading.data ?? last;
    return reading;
  };
  try {
    return await follow(onStderr, (end) => poll({ ...options, read }, end), limits);
  } finally {
    if (last) printData(io, output, last);
  }
}

/**
 * Shows a rescale until its outcome, or for `timeoutMs`: redrawn in place on a terminal, line by line elsewhere.
 *
 * @returns the exit code
 * @param source never ends by itself
 * @throws the errors of the source, and the reason of `io.signal` once it is aborted
 */
export async function follow(
  io: FollowIo,
  source: (signal: AbortSignal) => AsyncGenerator<Update>,
  { timeoutMs, clock }: { readonly timeoutMs?: number | undefined; readonly clock: WatchClock },
): Promise<number> {
  const display = io.terminal.output ? liveDisplay(io, clock) : plainDisplay(io, clock);
  const timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const end = timeout ? AbortSignal.any([io.signal, timeout]) : io.signal;
  try {
    // The source may be waiting for a response when the watch ends.
    return await Promise.race([showUntilOutcome(source(end), display, end), rejectionBy(end)]);
  } catch (error) {
    if (!timeout?.aborted || io.signal.aborted) throw error;
  }
  io.err(`The watch timed out after ${roughly(timeoutMs ?? 0)}; the rescale continues.\n`);
  return EXIT_TIMEOUT;
}

/** Rejects with the reason of the signal once it is aborted. */
async function rejectionBy(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}

async function showUntilOutcome(
  updates: AsyncGenerator<Update>,
  display: Display,
  end: AbortSignal,
): Promise<number> {
  for await (const update of updates) {
    end.throwIfAborted();
    display(update);
    const exitCode = "view" in update ? EXIT_CODES.get(update.view.state) : undefined;
    if (exitCode !== undefined) return exitCode;
  }
  throw new Error("the updates ended before the outcome");
}

type Display = (update: Update) => void;

/** Prints the lines that the update before did not have, each with the elapsed time. */
function plainDisplay({ out }: FollowIo, clock: WatchClock): Display {
  const startedAt = clock.monotonic();
  let printed: readonly string[] = [];
  let hasProblem = false;
  const print = (line: string) => out(`${stopwatch(clock.monotonic() - startedAt)}  ${line}\n`);
  return (update) => {
    const isProblem = "problem" in update;
    if (isProblem !== hasProblem) print(isProblem ? printable(update.problem) : "connected again");
    hasProblem = isProblem;
    if (isProblem) return;
    const lines = plainLines(update.view, clock.now());
    for (const line of lines) if (!printed.includes(line)) print(line);
    printed = lines;
  };
}

const CLEAR_BELOW = "\u001b[J";

/** Redraws the lines in place at each update. The cursor stays below them. */
function liveDisplay({ out, terminal }: FollowIo, clock: WatchClock): Display {
  const paint = painter({ terminal });
  let view: RescaleView | undefined;
  let drawnRows = 0;
  return (update) => {
    if ("view" in update) view = update.view;
    const columns = terminal.columns();
    const shown = view ? frame(view, clock.now(), { columns, paint }) : [];
    const problems = "problem" in update ? labeled("", update.problem, columns) : [];
    const lines = [...shown, ...problems.map((line) => paint("yellow", line))]
      .flatMap((line) => broken(line, columns))
      .slice(1 - terminal.rows());
    const up = drawnRows === 0 ? "" : `\u001b[${drawnRows}A`;
    out(`${up}\r${CLEAR_BELOW}${lines.map((line) => `${line}\n`).join("")}`);
    drawnRows = lines.length;
  };
}
