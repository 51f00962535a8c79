import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { atExit } from "@pipe-scaling/local-cluster/at-exit";
import { killProgramsRunFrom } from "@pipe-scaling/local-cluster/processes";

const PREFIX = "pipe-scaling-tests-";

/** A global setup of vitest for the folder of temporary files. */
export function setup(): void {
  useTemporaryFolder();
}

/**
 * Puts the temporary files of all tests in one folder, which is removed when the run ends, also after Ctrl-C. Every
 * project of a run, and a run that a test starts, has the same folder. Vitest runs global setups in no certain order,
 * so each one that needs the folder calls this.
 */
export function useTemporaryFolder(): string {
  if (basename(tmpdir()).startsWith(PREFIX)) return tmpdir();
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  // Processes of other users read files there.
  chmodSync(folder, 0o755);
  // biome-ignore lint/style/noProcessEnv: the workers of vitest inherit it
  process.env["TMPDIR"] = folder;
  atExit(() => {
    // The pages start clusters that are kept, and an interrupted test does not remove its own.
    killProgramsRunFrom(folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  });
  return folder;
}
