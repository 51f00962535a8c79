/** How many requests, over how long: as a burst, and as a pace. */
export interface Quota {
  /** At most 10,000, so that ticks stay exact for a century of uptime. */
  readonly requests: number;
  /** A whole number. */
  readonly windowMs: number;
}

/**
 * What one caller has left of a quota, by the generic cell rate algorithm: a bucket that holds `requests`
 * and refills evenly, one every `windowMs / requests`. In any stretch of time it admits at most a whole
 * bucket and what has come in meanwhile. It never owes more than a window: one that nobody has charged for
 * that long is full, and as good as a new one.
 *
 * Its whole state is the moment when it will be full again. That is kept in ticks, `requests` of them to a
 * millisecond, because in ticks the price of a request is a whole number whatever the quota.
 *
 * Every `now` is in monotonic milliseconds; fractions do not count.
 */
export class Bucket<Q extends Quota = Quota> {
  readonly quota: Q;
  #fullAt = 0;

  constructor(quota: Q) {
    this.quota = quota;
  }

  /** Whether the request is admitted; one that is not costs nothing. */
  take(now: number): boolean {
    const { requests, windowMs } = this.quota;
    const owed = this.#owed(now);
    if (owed > (requests - 1) * windowMs) return false;
    this.#fullAt = this.#ticks(now) + owed + windowMs;
    return true;
  }

  /** How many requests would be admitted at once. */
  remaining(now: number): number {
    return this.quota.requests - this.#unitsOwed(now);
  }

  msUntilFull(now: number): number {
    return this.#owed(now) / this.quota.requests;
  }

  /** Until one more request would be admitted than now; a full bucket says at what pace it refills. */
  msUntilNext(now: number): number {
    const { requests, windowMs } = this.quota;
    return (this.#owed(now) - (this.#unitsOwed(now) - 1) * windowMs) / requests;
  }

  /** Takes all that there is. */
  drain(now: number): void {
    const { requests, windowMs } = this.quota;
    this.#fullAt = this.#ticks(now) + requests * windowMs;
  }

  #owed(now: number): number {
    return Math.max(0, this.#fullAt - this.#ticks(now));
  }

  #unitsOwed(now: number): number {
    return Math.ceil(this.#owed(now) / this.quota.windowMs);
  }

  #ticks(now: number): number {
    return Math.floor(now) * this.quota.requests;
  }
}
