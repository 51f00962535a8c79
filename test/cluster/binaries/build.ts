import { copyFileSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Environment } from "../environment.ts";
import { ClusterError } from "../errors.ts";
import type { Progress } from "../progress.ts";
import { run, tail } from "../run.ts";
import { isExecutable, PROGRAMS } from "./binaries.ts";
import type { Staging } from "./cache.ts";
import { MODULE, type Versions } from "./versions.ts";

/** The first Go that fetches the toolchain which a module asks for. */
const OLDEST_GO = [1, 21] as const;

export interface BuildContext {
  readonly env: Environment;
  readonly progress: Progress;
  readonly versions: Versions;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Builds all eight programs from their Go modules into a staging folder, whose sums
 * Go checks. Writes nothing else but Go's own caches. Minutes the first time.
 *
 * @throws Error why that cannot be done here.
 */
export async function build(staging: Staging, context: BuildContext): Promise<void> {
  const { env, progress, versions, signal } = context;
  const go = findOnPath("go", env);
  if (!go) throw new Error("there is no go on the PATH");
  const version = await goVersion(go, env);
  const module = copyModule(staging);
  using step = steps(progress, `Building the cluster's programs with ${version}, once for all`);
  using _ = watchFolder(staging.bin, (built) => step.update(`${built} of ${PROGRAMS.length} programs`));
  const finished = await run(go, ["install", "-trimpath", "-ldflags", linkerFlags(versions), "tool"], {
    cwd: module,
    env: goEnvironment(env, staging),
    // By these two the compilers go when the staging folder goes (processes.ts).
    argv0: join(staging.dir, "go"),
    detached: true,
    signal,
  });
  if (finished.code !== 0) throw failure(finished.stderr);
  // Go names a program after its folder.
  renameSync(join(staging.bin, "server"), join(staging.bin, "etcd"));
}

function findOnPath(program: string, env: Environment): string | undefined {
  return (env["PATH"] ?? "")
    .split(delimiter)
    .filter(Boolean)
    .map((dir) => join(dir, program))
    .find(isExecutable);
}

async function goVersion(go: string, env: Environment): Promise<string> {
  const { code, stdout, stderr } = await run(go, ["env", "GOVERSION"], {
    // Only what is installed: "auto" might fetch another one to answer.
    env: { ...env, GOTOOLCHAIN: "local" },
  });
  const version = stdout.trim();
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version) ?? [];
  if (code !== 0 || !major || !minor) throw new Error(`${go} does not work: ${tail(stdout + stderr, 3)}`);
  const [oldestMajor, oldestMinor] = OLDEST_GO;
  if (Number(major) > oldestMajor || Number(minor) >= oldestMinor) return version;
  throw new Error(`${go} is ${version}, older than ${OLDEST_GO.join(".")}`);
}

/** A copy, because Go would otherwise write to the repository's go.mod and go.sum as it sees fit. */
function copyModule(staging: Staging): string {
  const module = join(staging.dir, "module");
  mkdirSync(module);
  mkdirSync(join(staging.dir, "tmp"));
  copyFileSync(MODULE.mod, join(module, "go.mod"));
  copyFileSync(MODULE.sum, join(module, "go.sum"));
  return module;
}

function goEnvironment(env: Environment, { dir, bin }: Staging): Environment {
  // Not those of another platform: these programs are to run here.
  const { GOOS: _os, GOARCH: _arch, ...rest } = env;
  return {
    ...rest,
    GOBIN: bin,
    GOTMPDIR: join(dir, "tmp"),
    GOTOOLCHAIN: "auto",
    GOFLAGS: "-mod=readonly",
    GOWORK: "off",
    CGO_ENABLED: "0",
  };
}

/** Without the versions that their own builds write in, the programs do not know them. */
function linkerFlags({ kubernetes, helm }: Versions): string {
  return [
    "-s -w",
    `-X k8s.io/component-base/version.gitVersion=v${kubernetes}`,
    `-X helm.sh/helm/v4/internal/version.version=v${helm}`,
  ].join(" ");
}

function failure(stderr: string): Error {
  if (/no space left on device|disk quota exceeded/i.test(stderr)) {
    return new ClusterError(
      "There is no room left for Go to build the cluster's programs: it takes about 5 GB, most of it in Go's build cache (go env GOCACHE). Free some, or set GOCACHE and PIPE_SCALING_CACHE_DIR to folders on another disk.",
    );
  }
  return new Error(`go install failed:\n${tail(stderr, 5)}`);
}

function steps(progress: Progress, what: string) {
  const step = progress.step(what);
  return { update: step.update, [Symbol.dispose]: step.end };
}

function watchFolder(dir: string, onCount: (count: number) => void): Disposable {
  const look = () => onCount(readdirSync(dir).length);
  const timer = setInterval(look, 500).unref();
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      look();
    },
  };
}
