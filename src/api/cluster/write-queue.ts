import type { Clock } from "../../runtime/clock.ts";
import { UnavailableError } from "../errors.ts";

/** Maximum number of waiting writes for one object. */
const MAX_WAITING = 256;
/** Maximum wait of a write for its turn; clients wait longer for a response. */
const MAX_WAIT_MS = 20_000;

interface WaitingWrite<T> {
  readonly write: () => Promise<T>;
  readonly coalesceKey: string | undefined;
  readonly promise: PromiseWithResolvers<T>;
  readonly cancelTimeout: () => void;
}

/**
 * The writes of this process to one kind of object: one at a time for each object, in the order of the requests.
 * Concurrent writes to one object would only conflict in the API server, where each holds a connection and retries
 * until it times out.
 *
 * Consecutive waiting writes with the same coalesce key are made once, by the last of them. The outcome is the same as
 * if each had been made, so the response to every caller is correct.
 */
export class WriteQueue<T> {
  readonly #clock: Pick<Clock, "after">;
  /** Objects with a write in flight, each with the writes that wait behind it. */
  readonly #waiting = new Map<string, WaitingWrite<T>[]>();

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Number of objects with a write in flight. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * @param object its name, unique in this queue
   * @param coalesceKey equal for writes with the same effect
   * @throws UnavailableError if too many writes wait or this one waited too long; nothing was written
   */
  async run(object: string, write: () => Promise<T>, coalesceKey?: string): Promise<T> {
    const waiting = this.#waiting.get(object);
    if (waiting) return await this.#wait(waiting, write, coalesceKey);
    this.#waiting.set(object, []);
    try {
      return await write();
    } finally {
      this.#next(object);
    }
  }

  async #wait(waiting: WaitingWrite<T>[], write: () => Promise<T>, coalesceKey?: string): Promise<T> {
    if (waiting.length >= MAX_WAITING) {
      throw new UnavailableError("Too many changes of the same object at once. Try again shortly.");
    }
    const promise = Promise.withResolvers<T>();
    const cancelTimeout = this.#clock.after(MAX_WAIT_MS, () => {
      const at = waiting.indexOf(entry);
      if (at === -1) return;
      waiting.splice(at, 1);
      promise.reject(
        new UnavailableError("Earlier changes of the same object took too long. Try again shortly."),
      );
    });
    const entry = { write, coalesceKey, promise, cancelTimeout };
    waiting.push(entry);
    return await promise.promise;
  }

  /** Starts the next write of an object, which settles all writes that it represents. */
  #next(object: string): void {
    const batch = takeBatch(this.#waiting.get(object) ?? []);
    const last = batch.at(-1);
    if (!last) {
      this.#waiting.delete(object);
      return;
    }
    for (const { cancelTimeout } of batch) cancelTimeout();
    void this.#settle(object, batch, last.write);
  }

  /** Never rejects: the outcome goes to all writes that this one represents. */
  async #settle(object: string, batch: readonly WaitingWrite<T>[], write: () => Promise<T>): Promise<void> {
    try {
      const result = await write();
      for (const { promise } of batch) promise.resolve(result);
    } catch (error) {
      for (const { promise } of batch) promise.reject(error);
    } finally {
      this.#next(object);
    }
  }
}

/** Removes the first write and all directly behind it that coalesce with it. */
function takeBatch<T>(waiting: WaitingWrite<T>[]): WaitingWrite<T>[] {
  const [first] = waiting;
  if (!first) return [];
  const end = waiting.findIndex(
    ({ coalesceKey }) => coalesceKey === undefined || coalesceKey !== first.coalesceKey,
  );
  return waiting.splice(0, Math.max(1, end === -1 ? waiting.length : end));
}
