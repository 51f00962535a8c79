import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Writes a file that only its owner can read. Whoever reads it meanwhile, and whatever is left after a crash,
 * is the old text or the new one. Behind a symbolic link it is the file that is replaced, not the link.
 */
export function replaceFile(path: string, text: string): void {
  const target = realPath(path);
  const beside = `${target}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const file = openSync(beside, "wx", 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(beside, target);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // It is not there yet.
    return path;
  }
}
