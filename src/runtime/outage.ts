import { type Clock, pause } from "./clock.ts";

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
