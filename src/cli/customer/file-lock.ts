import { closeSync, openSync, rmSync } from "node:fs";
import { CliError } from "../failure.ts";
import { wait } from "./wait.ts";

const BETWEEN_MS = 20;
const TRIES = 100;

/**
 * Does something with a file while no other command does: what one reads and then writes is not lost to another.
 *
 * @param act takes milliseconds
 * @param signal ends the waiting, and never what was begun
 * @throws CliError where another one holds it for seconds, and so may have died with it
 */
export async function withLock<T>(path: string, signal: AbortSignal, act: () => T): Promise<T> {
  const lock = `${path}.lock`;
  for (let tries = 1; !take(lock); tries += 1) {
    if (tries === TRIES) {
      throw new CliError(
        `Another command has been changing ${path} for seconds, and nothing was changed: try again or, if there is none any more, remove ${lock} first.`,
      );
    }
    await wait(BETWEEN_MS, signal);
  }
  try {
    return act();
  } finally {
    rmSync(lock);
  }
}

/** @returns false where somebody else has it */
function take(lock: string): boolean {
  try {
    closeSync(openSync(lock, "wx", 0o600));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}
