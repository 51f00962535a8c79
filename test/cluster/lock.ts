import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";

/** SQLITE_BUSY: another process holds the lock. */
const BUSY = 5;
const POLL_MS = 200;

/**
 * Runs `body` while holding the lock of a file, which only one process can hold at a time.
 *
 * SQLite is the only way to the file locks of the operating system that Node has. The system releases them when the
 * process ends, even by SIGKILL, so there are no stale locks. The file stays empty and is never removed.
 */
export async function withLock<T>(
  file: string,
  options: { readonly onWait: () => void; readonly signal?: AbortSignal | undefined },
  body: () => Promise<T>,
): Promise<T> {
  using database = new DatabaseSync(file, { timeout: 0 });
  for (let waited = false; !tryLock(database); waited = true) {
    if (!waited) options.onWait();
    await delay(POLL_MS, undefined, options.signal ? { signal: options.signal } : {});
  }
  return await body();
}

function tryLock(database: DatabaseSync): boolean {
  try {
    // In memory, because a journal in a file would remain after a crash.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (error instanceof Error && "errcode" in error && error.errcode === BUSY) return false;
    throw error;
  }
}
