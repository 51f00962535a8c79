import { isConflict, isOutcomeUnknown, messageOf } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { type Resource, SECRETS } from "../../kube/paths.ts";
import { CliError, sentenceFor } from "../failure.ts";
import { counted } from "../view/text.ts";
import type { Records } from "./records.ts";

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

export interface Deletion {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** Also deletes versions that are newer than the object. */
  readonly isAnyVersion?: boolean;
}

/**
 * Deletes records in this order, and stops at the first one that has changed since it was read.
 *
 * @param what as in "… has changed"
 * @param findRecreated finds records that the API created again, because it learns of the deletions only later
 * @throws CliError for a change, and for any other failure that is not a bug
 */
export async function deleteUnlessChanged(
  records: Records,
  what: string,
  deletions: readonly Deletion[],
  findRecreated: (records: Records) => Promise<readonly Deletion[]> = async () => [],
): Promise<void> {
  const end = records.uninterrupted();
  const deleted: Resource[] = [];
  const deleteAll = async (all: readonly Deletion[]) => {
    for (const { resource, object, isAnyVersion } of all) {
      const record = `${resource === SECRETS ? "Secret" : "ConfigMap"} ${object.metadata.name}`;
      await withKnownOutcome(
        end.delete(resource, object, isAnyVersion),
        `The ${record} may have been deleted. Run the command again: it deletes what is left, or says that there is nothing to delete`,
      );
      deleted.push(resource);
    }
  };
  try {
    await deleteAll(deletions);
    await deleteAll(await findRecreated(end));
  } catch (cause) {
    const sentence = isConflict(cause)
      ? `${what} has changed since this command read it, so it was not deleted. Check it, then run the command again.`
      : sentenceFor(cause);
    if (sentence === undefined) throw cause;
    throw new CliError(`${sentence}${alreadyDeleted(deleted)}`, { cause });
  }
}

function alreadyDeleted(resources: readonly Resource[]): string {
  const keys = resources.filter((each) => each === SECRETS).length;
  const others = resources.length - keys;
  const parts = [keys > 0 ? counted(keys, "API key") : "", others > 0 ? counted(others, "ConfigMap") : ""];
  return resources.length === 0 ? "" : ` Already deleted: ${parts.filter(Boolean).join(", ")}.`;
}

/**
 * Checks before a deletion that no record was changed or added after the records were read for the confirmation.
 *
 * @param what as in "… has changed"
 * @param confirmed the records that the confirmation was about
 * @param now the records that exist now
 * @throws CliError if one was changed or added
 */
export function requireUnchanged(
  what: string,
  confirmed: readonly KubeObject[],
  now: readonly KubeObject[],
): void {
  const versionOf = ({ metadata: { uid, resourceVersion } }: KubeObject) => `${uid} ${resourceVersion}`;
  const versions = new Set(confirmed.map(versionOf));
  if (now.every((object) => versions.has(versionOf(object)))) return;
  throw new CliError(
    `${what} has changed since this command read it, so nothing was deleted. Check it, then run the command again.`,
  );
}

/**
 * Waits for a write. If its outcome is unknown, the error says what to do.
 *
 * @param sentence what to do if the outcome is unknown, after a 5xx or without a response; without the period
 */
export async function withKnownOutcome<T>(write: Promise<T>, sentence: string): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    throw inDoubt(sentence, error);
  }
}

/**
 * Waits for a write whose result cannot be shown later. If the outcome is unknown, reads whether it was made.
 *
 * @param find reads the result; `undefined` if the write was not made
 * @param sentences what to do if the write was not made, and if that cannot be read either; without the period
 */
export async function withFoundOutcome<T>(
  write: Promise<T>,
  find: () => Promise<T | undefined>,
  sentences: { readonly notMade: string; readonly unknown: string },
): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    let found: T | undefined;
    try {
      found = await find();
    } catch (cause) {
      if (sentenceFor(cause) === undefined) throw cause;
      throw inDoubt(sentences.unknown, error);
    }
    if (found === undefined) throw inDoubt(sentences.notMade, error);
    return found;
  }
}

function inDoubt(sentence: string, cause: unknown): CliError {
  return new CliError(`${sentence} (${messageOf(cause)}).`, { cause });
}
