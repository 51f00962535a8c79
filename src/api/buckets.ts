import { Bucket, type Quota } from "./gcra.ts";

/**
 * The buckets of everybody that a quota applies to, in bounded memory and constant time.
 *
 * There are two generations. Whoever is asked for is in the young one, or moves there; when the young one
 * is a window old it becomes the old one, and what was in the old one is forgotten. By then nobody has
 * charged that for a whole window, so it was full, and nothing is forgotten that somebody owes. Where there
 * is no room, nobody is evicted: the newcomer is refused until there is. So no flood of callers, however
 * many, gives anyone back what they have used.
 */
export class Buckets<Q extends Quota> {
  readonly #quota: Q;
  readonly #capacity: number;
  /** Stands for everybody that there is no room for. */
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

  /** How many buckets are kept. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** @param now in monotonic milliseconds */
  of(who: string, now: number): Bucket<Q> {
    if (now - this.#youngSince > this.#quota.windowMs) this.#age(now);
    const known = this.#young.get(who);
    if (known) return known;
    if (this.#young.size >= this.#capacity) {
      this.#noRoom.drain(now);
      return this.#noRoom;
    }
    const bucket = this.#old.get(who) ?? new Bucket(this.#quota);
    this.#old.delete(who);
    this.#young.set(who, bucket);
    return bucket;
  }

  #age(now: number): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngSince = now;
  }
}
