/**
 * A pace that all who ask keep together: `burst` at once, and then `perSecond`. Each call takes a turn and
 * says how long from `now` (monotonic, in milliseconds) it is until that turn.
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
    const turnAt = Math.max(this.#nextAt, now - (this.#burst - 1) * this.#intervalMs);
    this.#nextAt = turnAt + this.#intervalMs;
    return Math.max(0, turnAt - now);
  }
}
