import { isOther, refusal } from "./cluster-refusal.ts";
import { Problem, unavailable } from "./problem.ts";

/** Each round of writers that meet lets one of them through, so this many may meet. */
const ATTEMPTS = 10;

export interface ObjectChange<T, R> {
  /** As the cache has it. */
  readonly cached: T | undefined;
  /** As it is now, past the cache. */
  readonly read: () => Promise<T | undefined>;
  /**
   * Decides on the record that it is given and writes just to that version of it.
   *
   * @throws Problem if it must not be changed so
   */
  readonly attempt: (current: T | undefined) => Promise<R>;
  /** As it reads in "does not allow …". */
  readonly what: string;
}

/**
 * A change of an object, decided on what the cache has: in the normal case one call to the cluster. One
 * that others have changed meanwhile is read anew and decided on again, and nobody is refused on the word of
 * the cache alone, which may be a moment behind.
 *
 * @throws Problem of `attempt`, and then nothing has changed; 503 otherwise
 */
export async function changeObject<T, R>({ cached, read, attempt, what }: ObjectChange<T, R>): Promise<R> {
  let current = cached;
  let isLive = false;
  for (let times = 1; times <= ATTEMPTS; times += 1) {
    try {
      if (times > 1) {
        current = await read();
        isLive = true;
      }
      return await attempt(current);
    } catch (error) {
      const isDoubtful = error instanceof Problem && error.status < 500 && !isLive;
      if (!isDoubtful && !isOther(error)) throw refusal(error, what);
    }
  }
  throw unavailable("The same is being changed by others at the same time. Try again shortly.");
}
