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

/** The place of one watch in outages. */
export class OutagePauses {
  readonly #outage: Outage;
  #isRecovering = false;
  /** The last pause was cut short. The next one is not: a server can fail right after it has served a watch. */
  #isEarly = false;

  constructor(outage = new Outage()) {
    this.#outage = outage;
  }

  /** @param isWhole the pause ends early only if the signal is aborted */
  async pause(clock: Clock, delayMs: number, isWhole: boolean, signal: AbortSignal): Promise<void> {
    this.#isRecovering = true;
    const mayEnd = !isWhole && !this.#isEarly;
    this.#isEarly = mayEnd && (await this.#outage.pause(clock, delayMs, signal));
    if (!mayEnd) await pause(clock, delayMs, signal);
  }

  /** The watch is served. */
  recovered(): void {
    if (this.#isRecovering) this.#outage.end();
    this.#isRecovering = false;
  }
}
