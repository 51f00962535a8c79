import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Environment } from "../../environment.ts";
import { openPaths, type Paths } from "../../paths.ts";

/** A folder that is removed when the test ends. */
export function scratch(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "cluster-test-")));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/**
 * A machine with an empty cache, and without Go and internet, which tests can add. The mirror is a port that no program
 * listens on.
 */
export function bareMachine(): { env: Environment; paths: Paths; bin: string } {
  const dir = scratch();
  const bin = join(dir, "path");
  mkdirSync(bin);
  const env = {
    PATH: bin,
    HOME: dir,
    PIPE_SCALING_CACHE_DIR: join(dir, "cache"),
    PIPE_SCALING_DOWNLOAD_MIRROR: "http://127.0.0.1:1",
  };
  return { env, paths: openPaths(env), bin };
}
