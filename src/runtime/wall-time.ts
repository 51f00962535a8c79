import type { Clock } from "./clock.ts";

/** Least jump of the clock that counts, because its two times do not tick together. */
const LEAST_JUMP_MS = 1000;

/**
 * Gives times of the monotonic clock as times since 1970, for comparison with times in the cluster. It follows only jumps
 * of the clock: otherwise, the same moment would differ by a millisecond now and then, and so would a text with it.
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
