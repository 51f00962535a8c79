/** The pauses between attempts grow after the first ones. Restarts of the controller and requests begin again. */
const MOST_AT_FIRST = 10;
const MOST_PER_SECOND = 3;

/** Counts the writes to each object that a webhook denies, from the beginning of its fault. */
export class DeniedWrites {
  readonly #sinceMs: number;
  readonly #counts = new Map<string, number>();

  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs;
  }

  /** Returns false if the controller writes the object more often than its pauses between attempts permit. */
  add(object: string, nowMs: number): boolean {
    const count = (this.#counts.get(object) ?? 0) + 1;
    this.#counts.set(object, count);
    return count <= MOST_AT_FIRST + (MOST_PER_SECOND * (nowMs - this.#sinceMs)) / 1000;
  }
}
