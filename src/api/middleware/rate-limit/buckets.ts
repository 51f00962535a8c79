import { Bucket, type Quota } from "./gcra.ts";

/**
 * The buckets of all callers that a quota applies to, in bounded memory and constant time.
 *
 * There are two generations. A caller that sends a request is in the young one, or moves there; when the young one is
 * a window old it becomes the old one, and the old one is dropped. A bucket that is dropped has not been charged for a
 * whole window, so it was full, and no debt is forgotten. When there is no room, nothing is evicted: a new caller is
 * refused until there is. So no flood of callers, however large, gives anyone back what they have used.
 */
export class Buckets<Q extends Quota> {
  readonly #quota: Q;
  readonly #capacity: number;
  /** The bucket of every caller that there is no room for. */
  readonly #noRoom: Bucket<Q>;
  #young = new Map<string, Bucket<Q>>();
  #old = new Map<string, Bucket<Q>>();
  #youngSince = 0;

  /** @param capacity of each generation */
  constructor(quota: Q, capacity: number) {
    this.#quota = quota;
    this.#capacity = capacity;
    this.#noRoom = new Bucket(quota);
  }

  /** Number of buckets in memory. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** @param now in monotonic milliseconds */
  of(key: string, now: number): Bucket<Q> {
    if (now - this.#youngSince > this.#quota.windowMs) this.#age(now);
    const known = this.#young.get(key);
    if (known) return known;
    if (this.#young.size >= this.#capacity) {
      this.#noRoom.drain(now);
      return this.#noRoom;
    }
    const bucket = this.#old.get(key) ?? new Bucket(this.#quota);
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
