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

/** The record in a cluster's folder, written before the first process starts. */
const recordSchema = z.object({
  /** The process that the cluster must not outlive; null once it is to be kept until somebody takes it down. */
  owner: processIdentitySchema.nullable(),
  /** The folder of the programs it runs. */
  binaries: z.string(),
  /** The API server's address. */
  server: z.url(),
  createdAt: z.iso.datetime(),
});
export type ClusterRecord = z.infer<typeof recordSchema>;

/**
 * Makes the cluster's folder, in one step and with its record inside, so that
 * there is never a folder without a known owner.
 *
 * @returns false if a cluster of that name is there already.
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
    // A folder never replaces one that is not empty, and ours never are.
    if (existsSync(join(paths.clusters, name))) return false;
    throw cannotWrite(paths.clusters, error);
  }
}

/** Replaces the record as a whole: a reader sees the old one or the new one. */
export function writeRecord(dir: string, record: ClusterRecord): void {
  const next = join(dir, `${FILE}.next`);
  writeFileSync(next, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(next, join(dir, FILE));
}

/** The record of a cluster's folder; undefined if the folder, or a readable record in it, is not there. */
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
