import { randomUUID } from "node:crypto";
import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "./errors.ts";
import type { Paths } from "./paths.ts";
import { killProgramsRunFrom, stateOf } from "./processes.ts";
import { clusterNames, readRecord } from "./record.ts";

/** The logs of this many removed clusters are kept. */
const KEPT_LOGS = 10;

/**
 * Kills a cluster's processes and removes its folder, except for the logs, which
 * are kept for a while. Does nothing if it is gone. Synchronous, so that it can be
 * the last act of a process.
 */
export function removeCluster(paths: Paths, name: string): void {
  const dir = join(paths.clusters, name);
  killProgramsRunFrom(dir);
  // The name is free again at once, and what is half removed is never taken for a cluster.
  const doomed = join(paths.clusters, `.removed-${randomUUID()}`);
  if (!moved(dir, doomed)) return;
  moved(join(doomed, "logs"), keptLogs(paths, name));
  rmSync(doomed, { recursive: true, force: true, maxRetries: 3 });
  pruneLogs(paths);
}

/** Where the logs of a cluster are once it is gone. */
export function keptLogs(paths: Paths, name: string): string {
  return join(paths.logs, name);
}

function moved(from: string, to: string): boolean {
  try {
    rmSync(to, { recursive: true, force: true });
    renameSync(from, to);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

function pruneLogs(paths: Paths): void {
  const ages = readdirSync(paths.logs).map((entry) => {
    const path = join(paths.logs, entry);
    return { path, at: statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? 0 };
  });
  for (const { path } of ages.sort((a, b) => b.at - a.at).slice(KEPT_LOGS)) {
    rmSync(path, { recursive: true, force: true });
  }
}

/** A folder that is younger than this belongs to a process that is at it right now: it takes milliseconds. */
const HALF_DONE_MS = 60_000;

/**
 * Removes what runs that were killed hard have left: clusters whose owner is gone,
 * and folders half made or half removed. Clusters that are kept (they have no
 * owner) and those of another machine or container are left alone.
 *
 * @returns the names of the clusters that were removed.
 */
export function sweep(paths: Paths, halfDoneMs = HALF_DONE_MS): string[] {
  sweepHalves(paths, halfDoneMs);
  return clusterNames(paths).filter((name) => {
    const record = readRecord(join(paths.clusters, name));
    if (record && (record.owner === null || stateOf(record.owner) !== "gone")) return false;
    removeCluster(paths, name);
    return true;
  });
}

function sweepHalves(paths: Paths, halfDoneMs: number): void {
  for (const entry of readdirSync(paths.clusters)) {
    const half = join(paths.clusters, entry);
    if (!entry.startsWith(".") || !isOlderThan(half, halfDoneMs)) continue;
    rmSync(half, { recursive: true, force: true });
  }
}

function isOlderThan(path: string, ageMs: number): boolean {
  const made = statSync(path, { throwIfNoEntry: false })?.ctimeMs;
  return made !== undefined && Date.now() - made >= ageMs;
}
