import { cpSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { run, tail } from "../run.ts";
import type { FetchOptions, Staging } from "./staging.ts";
import { MODULE, type Versions } from "./versions.ts";

/**
 * Builds all programs from the pinned Go modules, whose checksums Go verifies.
 *
 * @throws Error with the last lines that Go printed
 */
export async function build(staging: Staging, versions: Versions, options: FetchOptions): Promise<void> {
  await goInstall("tool", "Building the cluster's programs with Go", staging, versions, options);
  // Go names a program after its folder.
  renameSync(join(staging.bin, "server"), join(staging.bin, "etcd"));
}

/**
 * Builds the program whose source is in the folder of this name, from the same modules.
 *
 * @throws Error with the last lines that Go printed
 */
export async function buildOwn(
  program: string,
  staging: Staging,
  versions: Versions,
  options: FetchOptions,
): Promise<void> {
  await goInstall(`./${program}`, `Building ${program} with Go`, staging, versions, options);
}

async function goInstall(
  packages: string,
  title: string,
  { dir, bin }: Staging,
  { kubernetes, helm }: Versions,
  { env, progress, signal }: FetchOptions,
): Promise<void> {
  mkdirSync(join(dir, "tmp"));
  // A copy, because Go may write to it.
  cpSync(MODULE, join(dir, "module"), { recursive: true });
  // The programs run on this machine, whatever platform the user builds for otherwise.
  const { GOOS: _os, GOARCH: _arch, ...rest } = env;
  const own = { GOBIN: bin, GOTMPDIR: join(dir, "tmp"), GOFLAGS: "-mod=readonly", GOWORK: "off" };
  // Without these flags, which their own builds set too, the programs do not know their versions.
  const flags = `-s -w -X k8s.io/component-base/version.gitVersion=v${kubernetes} -X helm.sh/helm/v4/internal/version.version=v${helm}`;
  const step = progress.step(title);
  const timer = setInterval(() => step.update(`${readdirSync(bin).length} done`), 500).unref();
  try {
    const { code, stderr } = await run("go", ["install", "-trimpath", "-ldflags", flags, packages], {
      cwd: join(dir, "module"),
      env: { ...rest, ...own, GOTOOLCHAIN: "auto", CGO_ENABLED: "0" },
      // By this path, Go is found and killed together with the folder (processes.ts).
      argv0: join(dir, "go"),
      detached: true,
      signal,
    });
    if (code !== 0) throw new Error(`go install failed:\n${tail(stderr, 5)}`);
  } finally {
    clearInterval(timer);
    step.end();
  }
}
