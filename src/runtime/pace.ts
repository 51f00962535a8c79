/**
 * A rate limit that all callers share: `burst` turns immediately, then `perSecond`. Each call takes the next turn and
 * returns the milliseconds from `now` (monotonic) until that turn.
 */
export class Pace {
  readonly #intervalMs: number;
  readonly #burst: number;
  #nextAt = Number.NEGATIVE_INFINITY;

  constructor(perSecond: number, burst: number) {
    this.#intervalMs = 1000 / perSecond;
    this.#burst = burst;
  }

  delay(now: number): number {
    const turnAt = this.#turnAt(now);
    this.#nextAt = turnAt + this.#intervalMs;
    return Math.max(0, turnAt - now);
  }

  /** The same time, without taking the turn. */
  wait(now: number): number {
    return Math.max(0, this.#turnAt(now) - now);
  }

  /** Number of turns that are available without a delay. */
  free(now: number): number {
    const waited = now - this.#turnAt(now);
    // The time of the next turn is a sum, which is not exact.
    return waited < 0 ? 0 : Math.floor(waited / this.#intervalMs + 1e-6) + 1;
  }

  /** Undoes one `delay` whose turn was not needed. */
  giveBack(): void {
    this.#nextAt -= this.#intervalMs;
  }

  #turnAt(now: number): number {
    return Math.max(this.#nextAt, now - (this.#burst - 1) * this.#intervalMs);
  }
}
