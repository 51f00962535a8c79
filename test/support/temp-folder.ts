import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atExit } from "@pipe-scaling/local-cluster/at-exit";

/** Puts the temporary files of all tests in one folder, which is removed when the run ends, also after Ctrl-C. */
export function setup(): void {
  const folder = mkdtempSync(join(tmpdir(), "pipe-scaling-tests-"));
  // Processes of other users read files there.
  chmodSync(folder, 0o755);
  // biome-ignore lint/style/noProcessEnv: the workers of vitest inherit it
  process.env["TMPDIR"] = folder;
  atExit(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
}
