import { accessSync, constants, mkdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import type { Environment } from "./environment.ts";
import { ClusterError, codeOf, messageOf } from "./errors.ts";

/** Folders of the local cluster, all of them in the cache folder. */
export interface Paths {
  readonly cache: string;
  /** The programs, with one folder for each set of versions and platform. */
  readonly binaries: string;
  /** Our own home of kwokctl (KWOK_WORKDIR), so that the user's clusters are never touched. */
  readonly kwok: string;
  /** The clusters. kwokctl determines the name of this folder. */
  readonly clusters: string;
  /** The logs of removed clusters, which are kept for a while. */
  readonly logs: string;
  /** An empty file for each name of a cluster that `up` has started. */
  readonly locks: string;
}

/** Creates the folders. @throws ClusterError if they cannot be written */
export function openPaths(env: Environment): Paths {
  const wanted = cacheFolder(env);
  const cache = makeFolder(wanted);
  // Only the user can read these folders, because they have the keys of the clusters.
  const kwok = join(cache, "kwok");
  return {
    cache,
    kwok,
    binaries: makeFolder(join(cache, "binaries")),
    clusters: makeFolder(join(kwok, "clusters")),
    logs: makeFolder(join(cache, "logs")),
    locks: makeFolder(join(cache, "locks")),
  };
}

function cacheFolder(env: Environment): string {
  const own = env["PIPE_SCALING_CACHE_DIR"];
  if (own) return resolve(own);
  const xdg = env["XDG_CACHE_HOME"];
  // According to the XDG specification, a relative path is invalid and ignored.
  const base = xdg && isAbsolute(xdg) ? xdg : join(env["HOME"] || homedir(), ".cache");
  return join(base, "pipe-scaling-operator");
}

function makeFolder(path: string): string {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    // An existing folder may be on a read-only disk.
    accessSync(path, constants.W_OK);
    return realpathSync(path);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

/** The error for a cache folder that is full, read-only or not a folder. */
export function cannotWrite(path: string, cause: unknown): ClusterError {
  const code = codeOf(cause);
  const what =
    code === "ENOSPC" || code === "EDQUOT"
      ? `The disk of ${path} is full. Free about 1 GB (5 GB if Go must build the programs)`
      : `The local cluster cannot write to ${path} (${messageOf(cause)}). Make it a writable folder`;
  return new ClusterError(`${what}, or set PIPE_SCALING_CACHE_DIR to a folder on another disk.`, { cause });
}

const WRITE_FAILURES = new Set(["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOTDIR", "EEXIST"]);

/** True if writing a file failed, because then other sources of the programs would fail in the same way. */
export function isWriteFailure(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && WRITE_FAILURES.has(code) && !isAboutOtherCall(error);
}

/** A program that cannot be executed, or a connection that a firewall rejects, has the same error codes. */
function isAboutOtherCall(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ("syscall" in error && /^(spawn|connect)/.test(String(error.syscall))) return true;
  return isAboutOtherCall(error.cause);
}
