import type { Clock } from "./clock.ts";

/** Smaller changes of the offset are ignored, because the wall clock and the monotonic clock do not tick together. */
const LEAST_JUMP_MS = 1000;

/**
 * Converts monotonic times to milliseconds since 1970, to compare them with times in the cluster. The offset between
 * the two clocks is updated only after it has changed by a second. Otherwise, two conversions of one moment could
 * differ by a millisecond, and so would a text that contains it.
 */
export class WallTime {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  #offsetMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "now" | "monotonic">) {
    this.#clock = clock;
  }

  of(monotonicMs: number): number {
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    if (Math.abs(offsetMs - this.#offsetMs) >= LEAST_JUMP_MS) this.#offsetMs = offsetMs;
    return monotonicMs + this.#offsetMs;
  }
}
