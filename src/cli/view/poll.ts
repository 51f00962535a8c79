import { setTimeout } from "node:timers/promises";
import { sentenceFor } from "../failure.ts";
import type { Row } from "../output.ts";
import type { RescaleView } from "./rescale-view.ts";

/** One step of a watch: the rescale, or why it cannot be read at the moment. */
export type Update = { readonly view: RescaleView } | { readonly problem: string };

export interface Reading {
  /** `undefined` while the response may be out of date. */
  readonly view: RescaleView | undefined;
  /** The rescale for programs. */
  readonly data?: Row;
}

export interface PollOptions {
  readonly read: () => Promise<Reading>;
  /** Minimum delay before the next attempt; `undefined` if the error is final. */
  readonly retryAfterMs: (error: unknown) => number | undefined;
  readonly intervalMs: number;
  /** Rejects once the signal is aborted. */
  readonly wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}

const MAX_INTERVAL_MS = 10_000;

/**
 * Reads a rescale repeatedly until the consumer stops or the signal is aborted. Transient errors are reported as
 * problems and retried with increasing delays, also at the first read: every command has called the same server before,
 * so a connection error does not mean a wrong address.
 */
export async function* poll(options: PollOptions, signal: AbortSignal): AsyncGenerator<Update> {
  const { read, retryAfterMs, intervalMs, wait = waitFor } = options;
  for (let failures = 0; ; ) {
    let pauseMs = intervalMs;
    try {
      const { view } = await read();
      failures = 0;
      if (view) yield { view };
    } catch (error) {
      const retryMs = retryAfterMs(error);
      if (retryMs === undefined || !(error instanceof Error)) throw error;
      failures += 1;
      pauseMs = Math.max(retryMs, Math.min(intervalMs * failures, MAX_INTERVAL_MS));
      yield { problem: `${sentenceFor(error) ?? error.message} Trying again.` };
    }
    await wait(pauseMs, signal);
  }
}

/** Rejects once the signal is aborted, with its reason as the cause. */
export function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return setTimeout(ms, undefined, { signal });
}
