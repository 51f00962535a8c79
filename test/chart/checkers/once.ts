import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { ClusterError, messageOf } from "@pipe-scaling/local-cluster/errors";
import { withLock } from "@pipe-scaling/local-cluster/lock";
import { openPaths } from "@pipe-scaling/local-cluster/paths";
import { terminalProgress } from "@pipe-scaling/local-cluster/progress";
import { run, tail } from "@pipe-scaling/local-cluster/run";

export interface Making {
  /** Name of the folder in the cache. */
  readonly name: string;
  /** Object of the message "Building …". */
  readonly what: string;
  /** Remedy for a failure, as a sentence. */
  readonly remedy: string;
  /** Inputs, relative to this file; a change of their content causes a new build. */
  readonly files: readonly string[];
  /** Fills `out`, a new folder, from a copy of the files in `staging`. */
  readonly make: (staging: string, out: string) => Promise<void>;
}

/**
 * Builds something for the tests and caches it: the first call takes minutes, later ones neither time nor network.
 * Concurrent processes wait for the one that builds.
 *
 * @returns the path of the folder
 * @throws ClusterError with the cause and the remedy
 */
export async function once({ name, what, remedy, files, make }: Making): Promise<string> {
  const folder = join(openPaths(environment).cache, "checkers", name);
  mkdirSync(folder, { recursive: true });
  const sum = createHash("sha256");
  for (const file of files) sum.update(readFileSync(source(file)));
  const dir = join(folder, `${sum.digest("hex").slice(0, 16)}-${process.platform}-${process.arch}`);
  if (existsSync(dir)) return dir;
  const progress = terminalProgress();
  const onWait = () => progress.note(`Another run is building ${what}; waiting for it.`);
  await withLock(join(folder, "lock"), { onWait }, async () => {
    if (existsSync(dir)) return;
    const step = progress.step(`Building ${what}, once for all`);
    const staging = mkdtempSync(join(folder, ".staging-"));
    try {
      for (const file of files) cpSync(source(file), join(staging, file));
      const out = join(staging, "out");
      mkdirSync(out);
      await make(staging, out);
      // Atomic, so the folder is never incomplete.
      renameSync(out, dir);
    } catch (cause) {
      throw new ClusterError(`Building ${what} failed: ${messageOf(cause)}\n${remedy}`, { cause });
    } finally {
      rmSync(staging, { recursive: true, force: true });
      step.end();
    }
  });
  return dir;
}

function source(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

/** @returns the output of a program. @throws Error with the end of its error output */
export async function succeed(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { cwd, env: { ...environment, ...env }, detached: true };
  const { code, stdout, stderr } = await run(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args[0]} exited with ${code}: ${tail(stderr)}`);
  return stdout;
}
