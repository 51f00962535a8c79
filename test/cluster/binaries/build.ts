import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { run, tail } from "../run.ts";
import type { FetchOptions, Staging } from "./staging.ts";
import { MODULE, type Versions } from "./versions.ts";

const TITLE = "Building the cluster's programs with Go";

const KUBERNETES = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"].map(
  (program) => `k8s.io/kubernetes/cmd/${program}`,
);
const OTHERS = [
  "go.etcd.io/etcd/server/v3",
  "helm.sh/helm/v4/cmd/helm",
  "sigs.k8s.io/kwok/cmd/kwok",
  "sigs.k8s.io/kwok/cmd/kwokctl",
];

/**
 * Builds all programs from the pinned Go modules, whose checksums Go verifies. Another version of Kubernetes has its
 * own module.
 *
 * @throws Error with the last lines that Go printed
 */
export async function build(staging: Staging, versions: Versions, options: FetchOptions): Promise<void> {
  const go = new GoModule(staging, versions, options);
  if (versions.kubernetes === versions.pinnedKubernetes) {
    await go.install(["tool"], TITLE);
  } else {
    await go.install(OTHERS, TITLE);
    const other = await go.moduleOfKubernetes();
    await other.install(KUBERNETES, `Building Kubernetes ${versions.kubernetes} with Go`);
  }
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
  const go = new GoModule(staging, versions, options);
  await go.install([`./${program}`], `Building ${program} with Go`);
}

const downloaded = z.object({ GoMod: z.string() });

/** A copy of the pinned module, because Go can write to it, or a module in another folder. */
class GoModule {
  readonly #staging: Staging;
  readonly #versions: Versions;
  readonly #options: FetchOptions;
  readonly #folder: string;
  readonly #flags: string;

  constructor(staging: Staging, versions: Versions, options: FetchOptions, ownFolder?: string) {
    this.#staging = staging;
    this.#versions = versions;
    this.#options = options;
    this.#folder = ownFolder ?? join(staging.dir, "module");
    this.#flags = ownFolder === undefined ? "-mod=readonly" : "-mod=mod";
    mkdirSync(join(staging.dir, "tmp"), { recursive: true });
    if (ownFolder === undefined) cpSync(MODULE, this.#folder, { recursive: true });
  }

  /**
   * A module with the go.mod of another version of Kubernetes, whose staging modules are the published ones. Go
   * verifies the checksums with its checksum database (GOSUMDB).
   */
  async moduleOfKubernetes(): Promise<GoModule> {
    const { kubernetes } = this.#versions;
    const { GoMod } = downloaded.parse(
      JSON.parse(await this.#go("mod", "download", "-json", `k8s.io/kubernetes@v${kubernetes}`)),
    );
    const folder = join(this.#staging.dir, "kubernetes");
    mkdirSync(folder);
    writeFileSync(join(folder, "go.mod"), moduleOf(kubernetes, readFileSync(GoMod, "utf8")));
    return new GoModule(this.#staging, this.#versions, this.#options, folder);
  }

  async install(packages: readonly string[], title: string): Promise<void> {
    const { kubernetes, helm } = this.#versions;
    // Without these flags, which their official builds also set, the programs report no version.
    const flags = `-s -w -X k8s.io/component-base/version.gitVersion=v${kubernetes} -X helm.sh/helm/v4/internal/version.version=v${helm}`;
    const step = this.#options.progress.step(title);
    const { bin } = this.#staging;
    const timer = setInterval(() => step.update(`${readdirSync(bin).length} done`), 500).unref();
    try {
      await this.#go("install", "-trimpath", "-ldflags", flags, ...packages);
    } finally {
      clearInterval(timer);
      step.end();
    }
  }

  async #go(...args: readonly string[]): Promise<string> {
    const { dir, bin } = this.#staging;
    // The programs must run on this machine, even if the user builds for another platform.
    const { GOOS: _os, GOARCH: _arch, ...rest } = this.#options.env;
    const own = { GOBIN: bin, GOTMPDIR: join(dir, "tmp"), GOFLAGS: this.#flags, GOWORK: "off" };
    const { code, stdout, stderr } = await run("go", args, {
      cwd: this.#folder,
      env: { ...rest, ...own, GOTOOLCHAIN: "auto", CGO_ENABLED: "0" },
      // With this path, Go is found and killed before the folder is removed (processes.ts).
      argv0: join(dir, "go"),
      detached: true,
      signal: this.#options.signal,
    });
    if (code !== 0) throw new Error(`go ${args[0]} failed:\n${tail(stderr, 5)}`);
    return stdout;
  }
}

/** @param goMod the go.mod of k8s.io/kubernetes, which replaces its staging modules with folders of its repository */
function moduleOf(kubernetes: string, goMod: string): string {
  const staging = kubernetes.replace(/^1/, "v0");
  const module = goMod
    .replace(/^module .*$/m, "module pipes.clouddb.dev/kubernetes")
    .replaceAll(/=> \.\/staging\/src\/(\S+)/g, `=> $1 ${staging}`);
  return `${module}\nrequire k8s.io/kubernetes v${kubernetes}\n`;
}
