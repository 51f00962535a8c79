import { isConflict } from "../../kube/errors.ts";
import { apiError, isAboutState } from "../errors.ts";
import { toReadError, toWriteError } from "./call-errors.ts";

/** Enough for ten concurrent writers: in each round of conflicts, one of them succeeds. */
const ATTEMPTS = 10;

export interface RetryOptions<T, R> {
  /** The cached object. */
  readonly cached: T | undefined;
  /** Reads the object live, past the cache. */
  readonly read: () => Promise<T | undefined>;
  /**
   * Decides based on the given object, and writes to it: to the object with this uid, and for a record to exactly this
   * version.
   *
   * @throws ApiError if this change is not allowed
   */
  readonly attempt: (current: T | undefined) => Promise<R>;
  /** The object of the sentence "The cluster's policy does not allow …". */
  readonly what: string;
}

/**
 * Changes an object based on the cached version, normally with one call to the cluster. After a conflict, it reads the
 * object live and decides again. The cached object alone never causes a rejection, because it may be a moment behind.
 *
 * @throws ApiError 400 if admission denies the write, and then nothing has changed; 503 after any other error of the
 *   cluster; other errors of `attempt` as they are
 */
export async function retryOnConflict<T, R>({ cached, read, attempt, what }: RetryOptions<T, R>): Promise<R> {
  let current = cached;
  let isLive = false;
  for (let times = 1; times <= ATTEMPTS; times += 1) {
    try {
      if (times > 1) {
        current = await read().catch((error: unknown) => {
          throw toReadError(error);
        });
        isLive = true;
      }
      return await attempt(current);
    } catch (error) {
      const isDoubtful = isAboutState(error) && !isLive;
      if (!isDoubtful && !isConflict(error)) throw toWriteError(error, what);
    }
  }
  throw apiError("Contended");
}
