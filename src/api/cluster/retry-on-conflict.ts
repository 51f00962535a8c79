import { ApiError, UnavailableError } from "../errors.ts";
import { isConflict, toWriteError } from "./write-errors.ts";

/** Each round of conflicting writers lets one of them through, so this many may meet. */
const ATTEMPTS = 10;

export interface RetryOptions<T, R> {
  /** The object as the cache has it. */
  readonly cached: T | undefined;
  /** Reads the object live, past the cache. */
  readonly read: () => Promise<T | undefined>;
  /**
   * Decides on the object that it is given, and writes to exactly that version of it.
   *
   * @throws ApiError if the object must not be changed so
   */
  readonly attempt: (current: T | undefined) => Promise<R>;
  /** The object of the sentence "The cluster's policy does not allow …". */
  readonly what: string;
}

/**
 * Changes an object, decided on the cached version: normally one call to the cluster. After a conflict it reads the
 * object live and decides again. No request is refused on the word of the cache alone, which may be a moment behind.
 *
 * @throws ApiError of `attempt`, and then nothing has changed; UnavailableError otherwise
 */
export async function retryOnConflict<T, R>({ cached, read, attempt, what }: RetryOptions<T, R>): Promise<R> {
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
      const isDoubtful = error instanceof ApiError && !(error instanceof UnavailableError) && !isLive;
      if (!isDoubtful && !isConflict(error)) throw toWriteError(error, what);
    }
  }
  throw new UnavailableError("Others are changing the same object at the same time. Try again shortly.");
}
