/** A number of requests (or turns, or events) per time, both as a burst and as a rate. */
export interface Quota {
  /** At most 10,000, so that ticks stay exact integers for 28 years of uptime. */
  readonly requests: number;
  /** A whole number. */
  readonly windowMs: number;
}

/**
 * The remaining quota of a caller, by the generic cell rate algorithm: a bucket that holds `requests` and refills
 * evenly, one every `windowMs / requests`. In any period it admits at most a whole bucket plus the refill of that
 * period. A bucket that was not charged for a window is full, like a new one, unless `reserve` has overdrawn it.
 *
 * Its only state is the time at which it will be full again, in ticks. A millisecond has `requests` ticks, so that the
 * cost of a request is a whole number of ticks for every quota.
 *
 * Every `now` is in monotonic milliseconds; fractions are ignored.
 */
export class TokenBucket<Q extends Quota = Quota> {
  readonly quota: Q;
  #fullAt = 0;

  constructor(quota: Q) {
    this.quota = quota;
  }

  /** Returns whether the request is admitted; a rejected one costs nothing. */
  take(now: number): boolean {
    const { requests, windowMs } = this.quota;
    const owed = this.#owed(now);
    if (owed > (requests - 1) * windowMs) return false;
    this.#fullAt = this.#ticks(now) + owed + windowMs;
    return true;
  }

  /**
   * Charges the request even if the bucket is empty, and returns the milliseconds until its turn. No request that is
   * reserved later has an earlier turn.
   */
  reserve(now: number): number {
    const waitMs = this.msUntilTurn(now);
    this.#fullAt = this.#ticks(now) + this.#owed(now) + this.quota.windowMs;
    return waitMs;
  }

  /** What `reserve` would return now. */
  msUntilTurn(now: number): number {
    const { requests, windowMs } = this.quota;
    return Math.max(0, this.#owed(now) - (requests - 1) * windowMs) / requests;
  }

  /** Number of requests that would be admitted now. */
  remaining(now: number): number {
    return Math.max(0, this.quota.requests - this.#unitsOwed(now));
  }

  msUntilFull(now: number): number {
    return this.#owed(now) / this.quota.requests;
  }

  /** Milliseconds until one more request would be admitted than now; for a full bucket, the time of one refill. */
  msUntilNext(now: number): number {
    const { requests, windowMs } = this.quota;
    return (this.#owed(now) - (this.#unitsOwed(now) - 1) * windowMs) / requests;
  }

  /** Empties the bucket. */
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
