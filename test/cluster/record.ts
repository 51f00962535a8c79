import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { messageOf } from "./errors.ts";
import { cannotWrite, type Paths } from "./paths.ts";
import { processIdentitySchema } from "./processes.ts";

const FILE = "cluster.json";

/** A file in the folder of a cluster, written before the first process starts. */
const recordSchema = z.object({
  /** The process with which the cluster ends; null for a cluster that runs until `down`. */
  owner: processIdentitySchema.nullable(),
  /** Folder of its programs. */
  binaries: z.string(),
  /** URL of the API server. */
  server: z.url(),
  createdAt: z.iso.datetime(),
});
export type ClusterRecord = z.infer<typeof recordSchema>;

/**
 * Creates the folder of a cluster atomically together with its record, so that every folder has a known owner.
 *
 * @returns false if a cluster of that name exists
 */
export function createFolder(paths: Paths, name: string, record: ClusterRecord): boolean {
  let fresh: string | undefined;
  try {
    fresh = mkdtempSync(join(paths.clusters, ".new-"));
    writeRecord(fresh, record);
    renameSync(fresh, join(paths.clusters, name));
    return true;
  } catch (error) {
    if (fresh) rmSync(fresh, { recursive: true, force: true });
    // The rename fails if the folder exists, because it is never empty.
    if (existsSync(join(paths.clusters, name))) return false;
    throw cannotWrite(paths.clusters, error);
  }
}

/** Replaces the record atomically. */
export function writeRecord(dir: string, record: ClusterRecord): void {
  const next = join(dir, `${FILE}.next`);
  writeFileSync(next, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(next, join(dir, FILE));
}

/** Reads the record in the folder of a cluster; undefined if there is no readable one. */
export function readRecord(dir: string): ClusterRecord | undefined {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(join(dir, FILE), "utf8")));
  } catch {
    return undefined;
  }
}

export function clusterNames(paths: Paths): string[] {
  try {
    return readdirSync(paths.clusters, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
      .map((entry) => entry.name)
      .sort();
  } catch (error) {
    throw new Error(`cannot list ${paths.clusters}: ${messageOf(error)}`, { cause: error });
  }
}
