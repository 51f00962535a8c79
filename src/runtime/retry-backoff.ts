import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";

/** The delay doubles after each retry, from `firstMs` to `mostMs`, and is then shortened at random by up to half. */
export interface RetryDelays {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** 0.8 to 1.6 s at first, as in client-go, and 15 to 30 s at most, half of the maximum of client-go. */
const DELAYS: RetryDelays = { firstMs: 1600, mostMs: 30_000 };
/**
 * Time without a retry after which the delays start over. A single event or successful call proves nothing: the server
 * can fail right after it.
 */
const HEALTHY_MS = 120_000;

/** Delays before the retries of a loop that runs forever. They start over after two minutes without a retry. */
export class RetryBackoff {
  readonly #clock: Clock;
  readonly #backoff: Backoff;
  #lastRetryAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, { firstMs, mostMs } = DELAYS, random?: () => number) {
    this.#clock = clock;
    this.#backoff = new Backoff(firstMs, mostMs, random);
  }

  /** @param leastMs delay that the server requests @returns milliseconds to wait before the retry */
  next(leastMs = 0): number {
    const now = this.#clock.monotonic();
    if (now - this.#lastRetryAt >= HEALTHY_MS) this.#backoff.reset();
    const delayMs = Math.max(leastMs, this.#backoff.next());
    this.#lastRetryAt = now + delayMs;
    return delayMs;
  }
}
