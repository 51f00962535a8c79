import { type Clock, pause } from "./clock.ts";
import type { RetryBackoff } from "./retry-backoff.ts";

/**
 * An outage of the API server, shared by the watches of a process: the first watch that recovers ends the pauses of the
 * others. Otherwise, each could stay behind for up to 30 s, and decisions would mix its old objects with current ones.
 */
export class Outage {
  readonly #waiting = new Set<AbortController>();

  /** Resolves after the delay, or when the outage ends or the signal is aborted. @returns true if the outage ended */
  async pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<boolean> {
    const waiting = new AbortController();
    this.#waiting.add(waiting);
    try {
      await pause(clock, delayMs, AbortSignal.any([signal, waiting.signal]));
      return waiting.signal.aborted;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  /** Call it when a watch has recovered. */
  end(): void {
    for (const waiting of this.#waiting) waiting.abort();
  }
}

/** The pauses of one watch before its retries. */
export class OutagePauses {
  readonly #outage: Outage;
  readonly #clock: Clock;
  #isRecovering = false;
  /** Monotonic time at which the last pause would have ended, if it was cut short. */
  #plannedEnd = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, outage = new Outage()) {
    this.#clock = clock;
    this.#outage = outage;
  }

  /**
   * Pauses before a retry. If the early retry after a shortened pause fails, the next pause lasts only for the rest of
   * the shortened one: the early retry is additional, and the later retries keep their times.
   *
   * @param leastMs delay that the server requests, which is never cut short
   */
  async pause(backoff: RetryBackoff, leastMs: number, signal: AbortSignal): Promise<void> {
    this.#isRecovering = true;
    const now = this.#clock.monotonic();
    const restMs = this.#plannedEnd - now;
    this.#plannedEnd = Number.NEGATIVE_INFINITY;
    if (restMs > 0) return pause(this.#clock, Math.max(restMs, leastMs), signal);
    const delayMs = backoff.next(leastMs);
    const [isEarly] = await Promise.all([
      this.#outage.pause(this.#clock, delayMs, signal),
      pause(this.#clock, leastMs, signal),
    ]);
    if (isEarly) this.#plannedEnd = now + delayMs;
  }

  /** Call it when the API server has served a list or has begun a watch. */
  recovered(): void {
    if (this.#isRecovering) this.#outage.end();
    this.#isRecovering = false;
  }
}
