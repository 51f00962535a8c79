import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";

/** As in client-go: 0.8 to 1.6 s at first, then twice that after each failure, up to 15 to 30 s. */
const FIRST_MS = 1600;
const MOST_MS = 30_000;
/** A single event or a single successful call proves nothing: a server can fail right after each of them. */
const HEALTHY_MS = 120_000;

/** Delays before the retries of a loop that runs forever. They start over once two minutes passed without a retry. */
export class RetryBackoff {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #lastRetryAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, random?: () => number) {
    this.#clock = clock;
    this.#backoff = new Backoff(FIRST_MS, MOST_MS, random);
  }

  /** @param leastMs delay that the server requests */
  next(leastMs = 0): number {
    const now = this.#clock.monotonic();
    if (now - this.#lastRetryAt >= HEALTHY_MS) this.#backoff.reset();
    const delayMs = Math.max(leastMs, this.#backoff.next());
    this.#lastRetryAt = now + delayMs;
    return delayMs;
  }
}
