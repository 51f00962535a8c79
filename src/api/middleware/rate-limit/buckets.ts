import { type Quota, TokenBucket } from "../../../runtime/token-bucket.ts";

/**
 * The token buckets of all callers of one quota, in bounded memory and constant time.
 *
 * There are two generations. A request moves the bucket of its caller to the young generation. After each window, the
 * old generation is dropped, and the young one becomes the old one. A dropped bucket was not charged for a whole
 * window, so it was full, and no usage is lost. If the young generation is full, nothing is evicted: until the next
 * window, a caller without a bucket in it is rejected. So a flood of callers never resets the usage of anyone.
 */
export class Buckets<Q extends Quota> {
  readonly #quota: Q;
  readonly #capacity: number;
  /** Shared by the callers without a bucket of their own; always empty. */
  readonly #noRoom: TokenBucket<Q>;
  #young = new Map<string, TokenBucket<Q>>();
  #old = new Map<string, TokenBucket<Q>>();
  #youngSince = 0;

  /** @param capacity of each generation */
  constructor(quota: Q, capacity: number) {
    this.#quota = quota;
    this.#capacity = capacity;
    this.#noRoom = new TokenBucket(quota);
  }

  /** Number of buckets in memory. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** @param now in monotonic milliseconds */
  of(key: string, now: number): TokenBucket<Q> {
    if (now - this.#youngSince > this.#quota.windowMs) this.#age(now);
    const known = this.#young.get(key);
    if (known) return known;
    if (this.#young.size >= this.#capacity) {
      this.#noRoom.drain(now);
      return this.#noRoom;
    }
    const bucket = this.#old.get(key) ?? new TokenBucket(this.#quota);
    this.#old.delete(key);
    this.#young.set(key, bucket);
    return bucket;
  }

  #age(now: number): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngSince = now;
  }
}
