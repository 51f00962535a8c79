import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { withLock } from "../../cluster/binaries/lock.ts";
import { environment } from "../../cluster/environment.ts";
import { ClusterError } from "../../cluster/errors.ts";
import { openPaths } from "../../cluster/paths.ts";
import { terminalProgress } from "../../cluster/progress.ts";
import { run, tail } from "../../cluster/run.ts";

/** Each has a Go module of its own beside this file. */
const CHECKERS = ["kubeconform", "kube-score", "promtool"] as const;
type Checker = (typeof CHECKERS)[number];

const FILES = CHECKERS.flatMap((checker) => [`${checker}/go.mod`, `${checker}/go.sum`]);

function source(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

/**
 * Builds the programs that check what the chart makes, from their Go modules, once for all: minutes the first
 * time, nothing afterwards. One process at a time does it; another one waits and finds them.
 *
 * @throws ClusterError what to do where there is no Go
 */
export async function checkers(): Promise<(checker: Checker) => string> {
  const { cache } = openPaths(environment);
  const folder = join(cache, "checkers");
  mkdirSync(folder, { recursive: true });
  const sum = createHash("sha256");
  for (const file of FILES) sum.update(readFileSync(source(file)));
  const dir = join(folder, `${sum.digest("hex").slice(0, 16)}-${process.platform}-${process.arch}`);
  const progress = terminalProgress();
  const onWait = () =>
    progress.note("Another run is building the programs that check the chart; waiting for it.");
  if (!existsSync(dir)) {
    await withLock(join(folder, "lock"), { onWait }, async () => {
      if (existsSync(dir)) return;
      const step = progress.step("Building the programs that check the chart, once for all");
      try {
        await build(folder, dir);
      } finally {
        step.end();
      }
    });
  }
  return (checker) => join(dir, checker);
}

async function build(folder: string, dir: string): Promise<void> {
  const staging = mkdtempSync(join(folder, ".staging-"));
  try {
    for (const file of FILES) cpSync(source(file), join(staging, file));
    const bin = join(staging, "bin");
    for (const checker of CHECKERS) {
      const { code, stderr } = await run("go", ["install", "-trimpath", "-ldflags", "-s -w", "tool"], {
        cwd: join(staging, checker),
        env: { ...environment, GOBIN: bin, GOFLAGS: "-mod=readonly", GOWORK: "off", CGO_ENABLED: "0" },
        detached: true,
      });
      if (code !== 0) throw new Error(`${checker}: ${tail(stderr)}`);
    }
    // In one step: what is there is whole.
    renameSync(bin, dir);
  } catch (cause) {
    throw new ClusterError(
      `The programs that check the chart could not be built (${String(cause)}). Install Go 1.21 or later, with a module proxy in reach (GOPROXY).`,
      { cause },
    );
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
