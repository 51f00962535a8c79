import { join, resolve } from "node:path";
import type { Environment } from "../environment.ts";
import { ClusterError, messageOf } from "../errors.ts";
import { cannotWrite, isWriteFailure, type Paths } from "../paths.ts";
import type { Progress } from "../progress.ts";
import { Binaries, isExecutable, missingFrom, PROGRAMS } from "./binaries.ts";
import { build } from "./build.ts";
import { cached, Staging, sweepStaging } from "./cache.ts";
import { download } from "./download.ts";
import { withLock } from "./lock.ts";
import { HOSTS, officialHosts, sources } from "./sources.ts";
import { verify } from "./verify.ts";
import { cacheKey, type Platform, readVersions, thisPlatform, type Versions } from "./versions.ts";

export interface FindContext {
  readonly env: Environment;
  readonly paths: Paths;
  readonly progress: Progress;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Finds the eight programs, by the first of these that works:
 *
 * 1. the folder that PIPE_SCALING_CLUSTER_BINARIES names;
 * 2. the cache;
 * 3. the official downloads, checked against the sums published beside them;
 * 4. a build from their Go modules.
 *
 * 3 and 4 fill the cache, by one process at a time: another one waits and then
 * finds it filled. What is not whole never gets there.
 *
 * @throws ClusterError with what was tried and the ways out.
 */
export async function findBinaries(context: FindContext): Promise<Binaries> {
  const { env, paths, progress, signal } = context;
  const given = env["PIPE_SCALING_CLUSTER_BINARIES"];
  if (given) return givenFolder(resolve(given));
  const versions = readVersions();
  const platform = thisPlatform();
  const key = cacheKey(versions, platform);
  const lookUp = () => cached(paths.binaries, key);
  return (
    lookUp() ??
    (await withLock(
      join(paths.binaries, "lock"),
      {
        signal,
        onWait: () => progress.note("Another run is fetching the cluster's programs; waiting for it."),
      },
      async () => lookUp() ?? (await fill(key, versions, platform, context)),
    ))
  );
}

/** The user has said where; to look elsewhere would hide their mistake. */
function givenFolder(dir: string): Binaries {
  const missing = missingFrom(dir);
  if (missing.length === 0) return new Binaries(dir, "PIPE_SCALING_CLUSTER_BINARIES");
  const hint =
    missing.includes("etcd") && isExecutable(join(dir, "server"))
      ? ' (what "go install" calls server is etcd: rename it)'
      : "";
  throw new ClusterError(
    `PIPE_SCALING_CLUSTER_BINARIES is ${dir}, but there is no executable ${missing.join(", ")} in it${hint}. Put all of ${PROGRAMS.join(", ")} there, or unset it, and they are fetched.`,
  );
}

/** A way to get the programs: fills a staging folder or says why it cannot. */
interface Way {
  readonly name: string;
  fill(staging: Staging): Promise<void>;
}

async function fill(
  key: string,
  versions: Versions,
  platform: Platform,
  context: FindContext,
): Promise<Binaries> {
  const { env, paths, progress, signal } = context;
  sweepStaging(paths.binaries);
  const tried: string[] = [`the cache, ${join(paths.binaries, key)}: not there, or not whole`];
  for (const way of ways(versions, platform, context)) {
    try {
      using staging = new Staging(paths.binaries);
      await way.fill(staging);
      await verify(staging.bin, versions, env);
      return staging.publish(paths.binaries, key, way.name);
    } catch (error) {
      signal?.throwIfAborted();
      // Nothing else would fare better.
      if (error instanceof ClusterError) throw error;
      if (isWriteFailure(error)) throw cannotWrite(paths.binaries, error);
      tried.push(`${way.name}: ${messageOf(error)}`);
      progress.note(`No luck with ${way.name}: ${messageOf(error)}`);
    }
  }
  throw new ClusterError(nothingWorked(tried));
}

function ways(versions: Versions, platform: Platform, context: FindContext): Way[] {
  const mirror = context.env["PIPE_SCALING_DOWNLOAD_MIRROR"];
  const official = sources(versions, platform, officialHosts(mirror));
  return [
    {
      name: "the official downloads",
      fill: async (staging) => {
        if (!official) throw new Error(`Kubernetes publishes no control plane for ${platform.os}`);
        await download(staging, official, context);
      },
    },
    { name: "a build with Go", fill: (staging) => build(staging, { ...context, versions }) },
  ];
}

function nothingWorked(tried: readonly string[]): string {
  return `The programs of the local cluster could not be had. Tried:
${tried.map((line) => `  - ${line}`).join("\n")}
Any one of these helps:
  1. Set PIPE_SCALING_CLUSTER_BINARIES to a folder that holds ${PROGRAMS.join(", ")}.
  2. Make ${HOSTS.join(", ")} reachable (HTTPS_PROXY is honoured), or set
     PIPE_SCALING_DOWNLOAD_MIRROR to the address of a mirror that has them by host and path.
  3. Install Go 1.21 or later, with a module proxy in reach (GOPROXY): they are then built, once.`;
}
