import { renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Environment } from "../environment.ts";
import { ClusterError, messageOf } from "../errors.ts";
import { withLock } from "../lock.ts";
import { cannotWrite, isWriteFailure, type Paths } from "../paths.ts";
import { run, tail } from "../run.ts";
import { Binaries, missingFrom, PROGRAMS } from "./binaries.ts";
import { build } from "./build.ts";
import { download } from "./download.ts";
import { sources } from "./sources.ts";
import { type FetchOptions, type Staging, sweepStaging, withStaging } from "./staging.ts";
import { chosenKubernetes, readVersions, thisPlatform } from "./versions.ts";

/**
 * Finds the programs: in the folder that PIPE_SCALING_CLUSTER_BINARIES names, or else in the cache. An empty cache
 * is filled from the official downloads, or else by a build from the pinned Go modules, by one process at a time.
 *
 * @throws ClusterError that lists what was tried and what to do
 */
export async function findBinaries(options: FetchOptions): Promise<Binaries> {
  const { env, paths, progress, signal } = options;
  const given = env["PIPE_SCALING_CLUSTER_BINARIES"];
  if (given) return await givenFolder(resolve(given), options);
  const dir = cachedFolder(paths, env);
  const isComplete = () => missingFrom(dir).length === 0;
  const onWait = () => progress.note("Another process is fetching the cluster's programs; waiting for it.");
  if (!isComplete()) {
    await withLock(join(paths.binaries, "lock"), { signal, onWait }, async () => {
      if (!isComplete()) await fill(dir, options);
    });
  }
  return new Binaries(dir);
}

export function cachedFolder(paths: Paths, env: Environment = {}): string {
  const [{ kubernetes, etcd, kwok, helm }, { os, arch }] = [readVersions(env), thisPlatform()];
  const key = `kubernetes-${kubernetes}_etcd-${etcd}_kwok-${kwok}_helm-${helm}_${os}-${arch}`;
  return join(paths.binaries, key);
}

/** The user chose this folder, so falling back to another source would hide a mistake. */
async function givenFolder(dir: string, options: FetchOptions): Promise<Binaries> {
  const missing = missingFrom(dir);
  if (missing.length > 0) {
    throw new ClusterError(
      `PIPE_SCALING_CLUSTER_BINARIES is ${dir}, which has no executable ${missing.join(", ")}. Put all of ${PROGRAMS.join(", ")} there ("go install" names etcd "server": rename it), or unset the variable to download or build them.`,
    );
  }
  const binaries = new Binaries(dir);
  await checkKubernetes(binaries, options);
  return binaries;
}

/** @throws ClusterError if the user also chose a version of Kubernetes, and the folder has another one */
async function checkKubernetes(binaries: Binaries, { env, signal }: FetchOptions): Promise<void> {
  const chosen = chosenKubernetes(env);
  if (chosen === undefined) return;
  const { stdout, stderr } = await run(binaries.path("kube-apiserver"), ["--version"], { env, signal });
  // A build of a vendor has a suffix: v1.35.4-eks-1.
  if (/\bv(\d+\.\d+\.\d+)/.exec(stdout)?.[1] === chosen) return;
  throw new ClusterError(
    `Kubernetes ${chosen} was chosen, but PIPE_SCALING_CLUSTER_BINARIES is ${binaries.dir}, whose kube-apiserver --version prints "${tail(stdout + stderr, 1)}". Choose no version, or unset PIPE_SCALING_CLUSTER_BINARIES to download or build this one.`,
  );
}

async function fill(dir: string, options: FetchOptions): Promise<void> {
  const { env, paths, progress, signal } = options;
  const [versions, platform] = [readVersions(env), thisPlatform()];
  const downloadInto = async (staging: Staging) => {
    if (platform.os === "darwin") throw new Error("Kubernetes publishes no control plane for macOS");
    await download(staging, sources(versions, platform, env["PIPE_SCALING_DOWNLOAD_MIRROR"]), options);
  };
  const ways = [
    { name: "the official downloads", fetchInto: downloadInto },
    { name: "a build with Go", fetchInto: (staging: Staging) => build(staging, versions, options) },
  ];
  sweepStaging(paths.binaries);
  const tried = [`the cache: ${dir} is missing or incomplete`];
  for (const { name, fetchInto } of ways) {
    try {
      await withStaging(paths.binaries, async (staging) => {
        await fetchInto(staging);
        const missing = missingFrom(staging.bin);
        if (missing.length > 0) throw new Error(`${missing.join(", ")} is missing from the result`);
        rmSync(dir, { recursive: true, force: true });
        renameSync(staging.bin, dir);
      });
      return;
    } catch (error) {
      signal?.throwIfAborted();
      // The next source would write to the same disk.
      if (isWriteFailure(error)) throw cannotWrite(paths.binaries, error);
      tried.push(`${name}: ${messageOf(error)}`);
      progress.note(`Cannot use ${name}: ${messageOf(error)}`);
    }
  }
  throw new ClusterError(`Cannot find the programs of the local cluster. Tried:
${tried.map((line) => `  - ${line}`).join("\n")}
Do one of these:
  1. Set PIPE_SCALING_CLUSTER_BINARIES to a folder that has ${PROGRAMS.join(", ")}.
  2. Make dl.k8s.io, github.com, api.github.com and get.helm.sh reachable (HTTPS_PROXY works), or set
     PIPE_SCALING_DOWNLOAD_MIRROR to the URL of a mirror that has their files under the name of each host.
  3. Install Go 1.21 or later, and make a module proxy reachable (GOPROXY). The programs are then built once.`);
}
