import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { cannotWrite } from "../paths.ts";

const BUSY = 5;
const POLL_MS = 200;

/**
 * Runs `body` while no other process runs one under the same lock file.
 *
 * The lock is the system's own lock on the file, so it is gone when the process
 * that holds it is, even by SIGKILL: there is nothing stale to break, and no id
 * of a process to mistake. SQLite is Node's only way to that lock; the file stays
 * empty, and stays, since removing it would give two processes two files to lock.
 *
 * @param onWait called once if somebody else holds it.
 */
export async function withLock<T>(
  file: string,
  options: { readonly onWait: () => void; readonly signal?: AbortSignal | undefined },
  body: () => Promise<T>,
): Promise<T> {
  using database = open(file);
  for (let waited = false; !tryLock(database, file); waited = true) {
    if (!waited) options.onWait();
    await delay(POLL_MS, undefined, options.signal ? { signal: options.signal } : {});
  }
  return await body();
}

function open(file: string): DatabaseSync {
  try {
    return new DatabaseSync(file, { timeout: 0 });
  } catch (error) {
    throw cannotWrite(file, error);
  }
}

function tryLock(database: DatabaseSync, file: string): boolean {
  try {
    // In memory: nothing is ever written, and a journal would be left behind by a crash.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error instanceof Error && "errcode" in error && error.errcode === BUSY) return false;
    throw cannotWrite(file, error);
  }
}
