import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "./cluster.ts";
import type { Component, ComponentArgs } from "./kwokctl.ts";

/** For a cluster whose components are killed: without node leases, a restarted kwok manages its nodes immediately. */
export const REVIVABLE: ComponentArgs = {
  "kwok-controller": { "node-lease-duration-seconds": "0" },
  "kube-controller-manager": { "node-monitor-grace-period": "1h" },
};

/**
 * Clients that watch the API server. If they kept running during an outage, their backoff would grow, and after a
 * restore they would wait for versions that no longer exist.
 */
const WATCHERS: readonly Component[] = ["kwok-controller", "kube-scheduler", "kube-controller-manager"];

/** Kills the API server and the components that watch it, until revive(). */
export async function killApiServer(cluster: Cluster): Promise<void> {
  for (const component of [...WATCHERS, "kube-apiserver"] as const) await cluster.kill(component);
}

/** Saves a snapshot of etcd in the folder of the cluster. Meanwhile, the API server is down. */
export async function takeSnapshot(cluster: Cluster): Promise<void> {
  await killApiServer(cluster);
  await cluster.kill("etcd");
  replace(snapshotOf(cluster), dataOf(cluster));
  await cluster.revive();
}

/** Restores etcd from the snapshot. Resource versions continue from there. */
export async function restoreSnapshot(cluster: Cluster): Promise<void> {
  await killApiServer(cluster);
  await cluster.kill("etcd");
  replace(dataOf(cluster), snapshotOf(cluster));
  await cluster.revive();
}

function replace(folder: string, by: string): void {
  rmSync(folder, { recursive: true, force: true });
  cpSync(by, folder, { recursive: true });
}

function dataOf({ dir }: Cluster): string {
  return join(dir, "etcd");
}

function snapshotOf({ dir }: Cluster): string {
  return join(dir, "etcd-snapshot");
}
