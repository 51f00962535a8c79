import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { atExit } from "../at-exit.ts";
import type { Environment } from "../environment.ts";
import type { Paths } from "../paths.ts";
import { killProgramsRunFrom } from "../processes.ts";
import type { Progress } from "../progress.ts";

export interface FetchOptions {
  readonly env: Environment;
  readonly paths: Paths;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
}

const PREFIX = ".staging-";

/** A folder in the cache for a download or build, with a folder for the finished programs. */
export interface Staging {
  readonly dir: string;
  readonly bin: string;
}

/** Removes the folder, and the processes that run from it, after `body` or when this process ends. */
export async function withStaging(cache: string, body: (staging: Staging) => Promise<void>): Promise<void> {
  const dir = mkdtempSync(join(cache, PREFIX));
  const disown = atExit(() => remove(dir));
  try {
    const bin = join(dir, "bin");
    mkdirSync(bin);
    await body({ dir, bin });
  } finally {
    remove(dir);
    disown();
  }
}

/** Removes the folders of killed runs. Only the holder of the lock may call this. */
export function sweepStaging(cache: string): void {
  for (const entry of readdirSync(cache)) if (entry.startsWith(PREFIX)) remove(join(cache, entry));
}

function remove(dir: string): void {
  killProgramsRunFrom(dir);
  rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
}
