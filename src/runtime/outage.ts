import { type Clock, pause } from "./clock.ts";
import type { RetryBackoff } from "./retry-backoff.ts";

/**
 * An outage of the API server, as all watches of a process see it: the first one that recovers ends the pauses of the
 * others. Without that, each would wait for up to 30 s on its own, while what the others show is decided on.
 */
export class Outage {
  readonly #waiting = new Set<AbortController>();

  /** Resolves after the delay, or when the outage or the signal ends. @returns true if the outage has ended */
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

  /** A watch has recovered. */
  end(): void {
    for (const waiting of this.#waiting) waiting.abort();
  }
}

/** The place of one watch in outages. */
export class OutagePauses {
  readonly #outage: Outage;
  readonly #clock: Clock;
  #isRecovering = false;
  /** End of the last pause, had it not been cut short. */
  #plannedEnd = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, outage = new Outage()) {
    this.#clock = clock;
    this.#outage = outage;
  }

  /**
   * Pauses before a retry. A pause that was cut short lasts for its rest if that retry fails, too: the early retry is one
   * more, and the others stay when they were.
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

  /** The watch is served. */
  recovered(): void {
    if (this.#isRecovering) this.#outage.end();
    this.#isRecovering = false;
  }
}
