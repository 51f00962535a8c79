import { randomUUID } from "node:crypto";
import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "./errors.ts";
import type { Paths } from "./paths.ts";
import { killProgramsRunFrom, stateOf } from "./processes.ts";
import { clusterNames, readRecord } from "./record.ts";

/** Number of removed clusters whose logs are kept. */
const KEPT_LOGS = 10;

/**
 * Kills the processes of a cluster and removes its folder, but keeps its logs for a while. Does nothing if there is no
 * such cluster. It is synchronous, so that a process can call it while it exits.
 */
export function removeCluster(paths: Paths, name: string): void {
  const dir = join(paths.clusters, name);
  killProgramsRunFrom(dir);
  // The rename frees the name immediately, and a half-removed folder is never mistaken for a cluster.
  const doomed = join(paths.clusters, `.removed-${randomUUID()}`);
  if (!moved(dir, doomed)) return;
  moved(join(doomed, "logs"), keptLogs(paths, name));
  rmSync(doomed, { recursive: true, force: true, maxRetries: 3 });
  pruneLogs(paths);
}

/** Folder of the logs of a removed cluster. */
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

/** A younger folder may still be in use by the process that creates or removes it, which takes milliseconds. */
const HALF_DONE_MS = 60_000;

/**
 * Removes what killed runs left behind: clusters whose owner has ended, and folders that were not completely created or
 * removed. It keeps clusters without an owner, and those of another machine or container.
 *
 * @returns the names of the removed clusters
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
