import { isConflict, isOutcomeUnknown, messageOf } from "../../kube/errors.ts";
import { CliError } from "../failure.ts";

/** One of several conflicting writers succeeds, so this many can change an object at the same time. */
const MAX_ATTEMPTS = 100;

/**
 * Repeats an attempt that reads, decides and writes, until no other write has come between.
 *
 * @param what as in "… was changed by others"
 */
export async function retryOnConflict<T>(what: string, attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  throw new CliError(
    `${what} was changed by other writers ${MAX_ATTEMPTS} times in a row, so this command changed nothing. Try again.`,
  );
}

/**
 * Deletes an object that a person has confirmed, unless it has changed since.
 *
 * @param what as in "… has changed"
 */
export async function deleteUnlessChanged(what: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (cause) {
    if (!isConflict(cause)) throw cause;
    throw new CliError(
      `${what} has changed since this command read it, so it was not deleted. Check it, then run the command again.`,
      { cause },
    );
  }
}

/**
 * Waits for a write that a person cannot simply repeat.
 *
 * @param sentence what to do if the outcome is unknown, after a 5xx or without a response; without the period
 */
export async function withKnownOutcome<T>(write: Promise<T>, sentence: string): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    throw new CliError(`${sentence} (${messageOf(error)}).`, { cause: error });
  }
}
