import { accessSync, constants, mkdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import type { Environment } from "./environment.ts";
import { ClusterError, codeOf, messageOf } from "./errors.ts";

/** Everything that the local cluster writes is under the cache folder. */
export interface Paths {
  readonly cache: string;
  /** The programs, one folder for each set of versions and platform. */
  readonly binaries: string;
  /**
   * The home of kwokctl (KWOK_WORKDIR). It is ours alone, so that the clusters
   * that the user made with kwokctl are never touched.
   */
  readonly kwok: string;
  /** The clusters; kwokctl insists on the folder's name. */
  readonly clusters: string;
  /** The logs of clusters that are gone, for a while. */
  readonly logs: string;
}

/** Where things are kept; makes the folders, and says what to do if it cannot. */
export function openPaths(env: Environment): Paths {
  const wanted = cacheFolder(env);
  const cache = makeFolder(wanted);
  // Only the user may look inside: the clusters' keys are there.
  const kwok = join(cache, "kwok");
  return {
    cache,
    kwok,
    binaries: makeFolder(join(cache, "binaries")),
    clusters: makeFolder(join(kwok, "clusters")),
    logs: makeFolder(join(cache, "logs")),
  };
}

function cacheFolder(env: Environment): string {
  const own = env["PIPE_SCALING_CACHE_DIR"];
  if (own) return resolve(own);
  const xdg = env["XDG_CACHE_HOME"];
  // The XDG specification: a relative path is invalid and to be ignored.
  const base = xdg && isAbsolute(xdg) ? xdg : join(env["HOME"] || homedir(), ".cache");
  return join(base, "pipe-scaling-operator");
}

function makeFolder(path: string): string {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // A folder that is there already may be on a disk that is read-only.
    accessSync(path, constants.W_OK);
    return realpathSync(path);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

/** The sentence for a cache folder that is read-only, full or no folder at all. */
export function cannotWrite(path: string, cause: unknown): ClusterError {
  const code = codeOf(cause);
  const what =
    code === "ENOSPC" || code === "EDQUOT"
      ? `There is no room left where the local cluster keeps its files, ${path}. Free about 1 GB (5 GB if Go has to build the programs)`
      : `The local cluster cannot write to ${path} (${messageOf(cause)}). Make it a folder that you can write to`;
  return new ClusterError(`${what}, or set PIPE_SCALING_CACHE_DIR to a folder on another disk.`, { cause });
}

const WRITE_FAILURES = new Set(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EEXIST"]);

/** Is this error about writing a file, so that no other way of getting the programs would fare better? */
export function isWriteFailure(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && WRITE_FAILURES.has(code) && !isAboutOtherCall(error);
}

/** A program that may not be executed, and a connection that a firewall refuses, fail with the same codes. */
function isAboutOtherCall(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("syscall" in error && /^(spawn|connect)/.test(String(error.syscall))) return true;
  return isAboutOtherCall(error.cause);
}
