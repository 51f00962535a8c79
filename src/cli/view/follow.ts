import { type Clock, systemClock } from "../../runtime/clock.ts";
import { EXIT_DONE, EXIT_TIMEOUT, EXIT_UNHEALTHY } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type Display, LiveView } from "./live-view.ts";
import { PlainView } from "./plain-view.ts";
import type { RescaleState, RescaleView } from "./rescale-view.ts";
import { roughly } from "./time.ts";

/** What a source tells: how the rescale stands, or, in a sentence, why that is not known at present. */
export type News = { readonly view: RescaleView } | { readonly trouble: string };

export interface FollowOptions {
  /** Without it the watch goes on until the outcome. */
  readonly timeoutMs?: number | undefined;
  readonly clock?: Clock;
}

/** The outcomes, and how the command ends with each. */
const OUTCOMES: ReadonlyMap<RescaleState, number> = new Map([
  ["scaled", EXIT_DONE],
  ["failed", EXIT_UNHEALTHY],
  ["suspended", EXIT_UNHEALTHY],
]);

type FollowIo = Pick<Io, "out" | "err" | "terminal" | "signal">;

/** For who follows by standard error, while standard output is left to the outcome for programs. */
export function besideOutput({ err, signal, terminal }: FollowIo): FollowIo {
  return { out: err, err, signal, terminal: { ...terminal, output: false } };
}

/**
 * Shows how a rescale goes on until its outcome: drawn in place on a terminal, line by line elsewhere.
 *
 * @param source ends never by itself, and goes on by itself after trouble
 * @returns the exit code
 * @throws what the source throws, and the reason of `io.signal` once that is aborted; the terminal is as it
 *   was found in either case
 */
export async function follow(
  io: FollowIo,
  source: AsyncIterable<News>,
  { timeoutMs, clock = systemClock }: FollowOptions = {},
): Promise<number> {
  const display: Display = io.terminal.output
    ? new LiveView({ out: io.out, ...io.terminal }, clock)
    : new PlainView(io.out, clock);
  const news = source[Symbol.asyncIterator]();
  const ending = Promise.withResolvers<typeof EXIT_TIMEOUT>();
  const onAbort = () => ending.reject(io.signal.reason);
  if (io.signal.aborted) onAbort();
  io.signal.addEventListener("abort", onAbort);
  // While it waits to try again nothing else may be there that keeps the process alive.
  const timer = setTimeout(() => ending.resolve(EXIT_TIMEOUT), timeoutMs ?? FOREVER_MS);
  const over = new AbortController();
  let exitCode: number;
  try {
    exitCode = await Promise.race([untilOutcome(news, display, over.signal), ending.promise]);
  } finally {
    over.abort();
    clearTimeout(timer);
    io.signal.removeEventListener("abort", onAbort);
    display.end();
    // Not waited for: it may be waiting itself, for news that nobody wants any more.
    void news.return?.();
  }
  if (exitCode === EXIT_TIMEOUT && timeoutMs !== undefined) {
    io.err(`The watch ended after ${roughly(timeoutMs)}, before the outcome; what was begun goes on.\n`);
  }
  return exitCode;
}

/** As long as a timer can wait: 24 days. */
const FOREVER_MS = 2 ** 31 - 1;

async function untilOutcome(news: AsyncIterator<News>, display: Display, over: AbortSignal): Promise<number> {
  for (;;) {
    const { done, value } = await news.next();
    if (over.aborted) return EXIT_TIMEOUT;
    if (done) throw new Error("a source of news has ended before the outcome");
    if ("trouble" in value) display.trouble(value.trouble);
    else {
      display.show(value.view);
      const exitCode = OUTCOMES.get(value.view.state);
      if (exitCode !== undefined) return exitCode;
    }
  }
}

/** The exit code of a look at where a rescale stands, which need not be its outcome. */
export function exitCodeOf({ state }: Pick<RescaleView, "state">): number {
  return OUTCOMES.get(state) ?? EXIT_DONE;
}
