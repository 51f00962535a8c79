import { isCode, isReplaced } from "../../kube/errors.ts";
import { CliError } from "../failure.ts";

/** Each round of writers that meet lets one of them through, so this many may meet. */
const TRIES = 100;

/**
 * A change of what others may change at the same time: it is decided on what was read and written to just
 * that, or else read and decided anew, so that neither change is lost.
 *
 * @param what as it reads in "… was changed by others"
 * @param attempt reads, decides and writes once; `undefined` is one more that another came before
 */
export async function untilUndisturbed<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let times = 0; times < TRIES; times += 1) {
    try {
      const done = await attempt();
      if (done !== undefined) return done;
    } catch (error) {
      if (!isOther(error)) throw error;
    }
  }
  throw new CliError(
    `${what} was changed by others ${TRIES} times in a row; nothing was changed; try again.`,
  );
}

/**
 * A deletion of what a person was shown: what has changed since is left for the person to look at again.
 *
 * @param what as it reads in "… has changed"
 */
export async function unlessChanged<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isOther(error)) throw error;
    throw new CliError(
      `${what} has changed since it was read, and was not deleted: check it, then run the command again.`,
      {
        cause: error,
      },
    );
  }
}

/** Changed, removed, or removed and made anew since it was read. */
function isOther(error: unknown): boolean {
  return isCode(error, 409) || isCode(error, 404) || isReplaced(error);
}
