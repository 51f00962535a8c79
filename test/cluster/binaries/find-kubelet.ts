import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { ClusterError, messageOf } from "../errors.ts";
import { withLock } from "../lock.ts";
import { cannotWrite, isWriteFailure } from "../paths.ts";
import { buildOwn } from "./build.ts";
import { type FetchOptions, sweepStaging, withStaging } from "./staging.ts";
import { MODULE, readVersions, thisPlatform } from "./versions.ts";

const PROGRAM = "hollow-kubelet";

/**
 * Finds hollow-kubelet in the cache, or builds it there. Only one process builds it at a time. It cannot be downloaded,
 * because its source is part of this package.
 *
 * @returns the path of the program
 * @throws ClusterError with what to do
 */
export async function findKubelet(options: FetchOptions): Promise<string> {
  const { paths, progress, signal } = options;
  const { os, arch } = thisPlatform();
  if (os !== "linux") {
    throw new ClusterError("A real kubelet runs on Linux only. Use the simulated nodes of kwok instead.");
  }
  const dir = join(paths.binaries, `${PROGRAM}-${sourceHash()}_${os}-${arch}`);
  const program = join(dir, PROGRAM);
  if (existsSync(program)) return program;
  const onWait = () => progress.note("Another process is fetching the cluster's programs; waiting for it.");
  await withLock(join(paths.binaries, "lock"), { signal, onWait }, async () => {
    if (!existsSync(program)) await buildInto(dir, options);
  });
  return program;
}

async function buildInto(dir: string, options: FetchOptions): Promise<void> {
  const { paths, signal } = options;
  sweepStaging(paths.binaries);
  try {
    await withStaging(paths.binaries, async (staging) => {
      await buildOwn(PROGRAM, staging, readVersions(), options);
      renameSync(staging.bin, dir);
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (isWriteFailure(error)) throw cannotWrite(paths.binaries, error);
    throw new ClusterError(
      `${PROGRAM} cannot be built: ${messageOf(error)}\nInstall Go 1.21 or later, and make a module proxy reachable (GOPROXY).`,
      { cause: error },
    );
  }
}

function sourceHash(): string {
  const folder = join(MODULE, PROGRAM);
  const sources = readdirSync(folder)
    .sort()
    .map((file) => join(folder, file));
  const files = [join(MODULE, "go.mod"), ...sources].map((file) => readFileSync(file, "utf8"));
  return hash("sha256", files.join("\0")).slice(0, 12);
}
