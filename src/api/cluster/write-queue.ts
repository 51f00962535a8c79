import type { Clock } from "../../runtime/clock.ts";
import { apiError } from "../errors.ts";

/** Maximum number of waiting writes for one object. */
const MAX_WAITING = 256;
/** Maximum wait of a write for its turn; clients wait longer for a response. */
const MAX_WAIT_MS = 20_000;

export interface Write<T> {
  /** Throws if the caller may not write any more. */
  readonly permit: () => void;
  /**
   * Must call its argument, which calls `permit`, at the start of each attempt to write, before it decides anything by
   * the state of the object: the object may belong to another tenant by then.
   */
  readonly write: (permit: () => void) => Promise<T>;
  /** Equal for writes with the same effect. */
  readonly coalesceKey?: string;
}

interface QueuedWrite<T> extends Write<T> {
  readonly promise: PromiseWithResolvers<T>;
  readonly cancelTimeout: () => void;
}

/**
 * The writes of this process to one kind of object: one at a time for each object, in the order of the requests.
 * Concurrent writes to one object would only conflict in the API server, where each holds a connection and retries
 * until it times out.
 *
 * Consecutive waiting writes with the same coalesce key are made once, by the last of them whose caller may still
 * write. The outcome is the same as if each had been made, so the response to every caller is correct.
 */
export class WriteQueue<T> {
  readonly #clock: Pick<Clock, "after">;
  /** Objects with a write in flight, each with the writes that wait behind it. */
  readonly #waiting = new Map<string, QueuedWrite<T>[]>();

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** Number of objects with a write in flight. */
  get size(): number {
    return this.#waiting.size;
  }

  /**
   * @param object its name, unique in this queue
   * @throws ApiError 503 if too many writes wait or this one waited too long, or the error of `permit`; then this write
   *   was not made
   * @throws the error of the write
   */
  async run(object: string, write: Write<T>): Promise<T> {
    const waiting = this.#waiting.get(object);
    const promise = Promise.withResolvers<T>();
    if (waiting) this.#wait(waiting, write, promise);
    else {
      this.#waiting.set(object, []);
      void this.#settle(object, [{ ...write, promise, cancelTimeout: () => undefined }]);
    }
    return await promise.promise;
  }

  #wait(waiting: QueuedWrite<T>[], write: Write<T>, promise: PromiseWithResolvers<T>): void {
    if (waiting.length >= MAX_WAITING) {
      throw apiError("QueueFull");
    }
    const cancelTimeout = this.#clock.after(MAX_WAIT_MS, () => {
      const at = waiting.indexOf(entry);
      if (at === -1) return;
      waiting.splice(at, 1);
      promise.reject(apiError("QueueSlow"));
    });
    const entry = { ...write, promise, cancelTimeout };
    waiting.push(entry);
  }

  /** Starts the next write of an object, which settles all writes that it represents. */
  #next(object: string): void {
    const batch = takeBatch(this.#waiting.get(object) ?? []);
    if (batch.length === 0) {
      this.#waiting.delete(object);
      return;
    }
    for (const { cancelTimeout } of batch) cancelTimeout();
    void this.#settle(object, batch);
  }

  /** Makes the last permitted write of a batch, and settles the other permitted ones with its outcome. Never rejects. */
  async #settle(object: string, batch: QueuedWrite<T>[]): Promise<void> {
    for (let last = batch.pop(); last; last = batch.pop()) {
      const outcome = await outcomeOf(last);
      outcome.settle(last);
      if (outcome.isDenied) continue;
      for (const other of batch.splice(0)) if (isPermitted(other)) outcome.settle(other);
    }
    this.#next(object);
  }
}

interface Outcome<T> {
  readonly settle: (write: QueuedWrite<T>) => void;
  /** True if the caller was no longer allowed to write. The outcome then applies to no other caller. */
  readonly isDenied: boolean;
}

async function outcomeOf<T>({ permit, write }: QueuedWrite<T>): Promise<Outcome<T>> {
  let isDenied = false;
  try {
    const result = await write(() => {
      isDenied = true;
      permit();
      isDenied = false;
    });
    return { settle: ({ promise }) => promise.resolve(result), isDenied: false };
  } catch (error) {
    return { settle: ({ promise }) => promise.reject(error), isDenied };
  }
}

/** Returns true if the caller may still write; otherwise rejects the write. */
function isPermitted<T>({ permit, promise }: QueuedWrite<T>): boolean {
  try {
    permit();
    return true;
  } catch (error) {
    promise.reject(error);
    return false;
  }
}

/** Removes the first write and all directly behind it that coalesce with it. */
function takeBatch<T>(waiting: QueuedWrite<T>[]): QueuedWrite<T>[] {
  const [first] = waiting;
  if (!first) return [];
  const end = waiting.findIndex(
    ({ coalesceKey }) => coalesceKey === undefined || coalesceKey !== first.coalesceKey,
  );
  return waiting.splice(0, Math.max(1, end === -1 ? waiting.length : end));
}
