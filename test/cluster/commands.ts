import { delimiter, join } from "node:path";
import { attachCluster, type Cluster, startCluster } from "./cluster.ts";
import { environment } from "./environment.ts";
import { COMPONENTS } from "./kwokctl.ts";
import { withLock } from "./lock.ts";
import { COMMAND, checkName } from "./names.ts";
import { openPaths, type Paths } from "./paths.ts";
import { programsRunFrom } from "./processes.ts";
import { terminalProgress } from "./progress.ts";
import { apiServerReady } from "./ready.ts";
import { type ClusterRecord, clusterNames, readRecord } from "./record.ts";
import { removeCluster, sweep } from "./remove.ts";

export interface UpOptions {
  readonly name: string;
  readonly podStart: number;
  readonly podJitter: number;
  readonly nodes: number;
  readonly port?: number;
  readonly kubernetesVersion?: string;
  readonly controllerManager: boolean;
}

/**
 * Starts a cluster that keeps running. An existing cluster is used as it is, and only those of its components are
 * restarted that are not running.
 */
export async function up(options: UpOptions): Promise<void> {
  const start = performance.now();
  const paths = openPaths(environment);
  const name = checkName(options.name);
  const onWait = () =>
    terminalProgress().note(`Another process is starting cluster "${name}"; waiting for it.`);
  const how = await withLock(join(paths.locks, name), { onWait }, async () => {
    tidy(paths);
    return await upHow(paths, options);
  });
  const cluster = await attachCluster(name);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(`Cluster "${name}" ${how === "running" ? "is already running" : `${how} in ${seconds} s`}:`);
  console.log(nextSteps(cluster));
}

async function upHow(paths: Paths, options: UpOptions): Promise<"running" | "started" | "restarted"> {
  const { name, podStart, podJitter, nodes, port, kubernetesVersion, controllerManager } = options;
  const dir = join(paths.clusters, name);
  const record = readRecord(dir);
  if (!record) {
    await startCluster({
      name,
      podStartMs: podStart,
      podStartJitterMs: podJitter,
      nodes,
      port,
      controllerManager,
      keep: true,
      env: kubernetesVersion
        ? { ...environment, PIPE_SCALING_KUBERNETES_VERSION: kubernetesVersion }
        : environment,
    });
    return "started";
  }
  const cluster = await attachCluster(name);
  if (record.owner) {
    // Another program starts and kills its components.
    await apiServerReady(cluster, { timeoutMs: 60_000 });
    return "running";
  }
  const before = new Set(programsRunFrom(dir).map(({ pid }) => pid));
  await cluster.revive();
  return programsRunFrom(dir).every(({ pid }) => before.has(pid)) ? "running" : "restarted";
}

function nextSteps({ name, server, dir }: Cluster): string {
  const flag = name === "pipes" ? "" : ` --name ${name}`;
  return `  API server   ${server}
  logs         ${join(dir, "logs")}
Next:
  eval "$(${COMMAND} env${flag})"   # kubectl and helm in this shell then use it
  kubectl get nodes
  ${COMMAND} down${flag}`;
}

export async function down({ name }: { readonly name: string }): Promise<void> {
  tidy(openPaths(environment));
  const cluster = await attachCluster(name);
  await cluster.stop();
  console.log(`Cluster "${name}" was removed.`);
}

/** Removes the clusters that `up` started, but not those of a test run in progress. */
export function downAll(): void {
  const paths = openPaths(environment);
  tidy(paths);
  const kept = clusters(paths).filter(({ record }) => record.owner === null);
  for (const { name } of kept) {
    removeCluster(paths, name);
    console.log(`Cluster "${name}" was removed.`);
  }
  if (kept.length === 0) console.log("There is no cluster that was started with up.");
}

export function list(): void {
  const paths = openPaths(environment);
  tidy(paths);
  const rows = clusters(paths).map(({ name, record }) => [
    name,
    record.server,
    stateOf(paths, name),
    record.owner === null ? "down" : `process ${record.owner.pid} on ${record.owner.host}`,
    record.createdAt,
  ]);
  if (rows.length === 0) {
    console.log(`There are no clusters. To start one: ${COMMAND} up`);
    return;
  }
  console.log(table([["NAME", "API SERVER", "STATE", "ENDS WITH", "CREATED"], ...rows]));
}

/** Prints only assignments on stdout, for eval. */
export async function env({ name }: { readonly name: string }): Promise<void> {
  const cluster = await attachCluster(name);
  console.log(`export KUBECONFIG=${quoted(cluster.kubeconfig)}`);
  console.log(`export PATH=${quoted(cluster.binaries.dir)}${delimiter}"$PATH"`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function tidy(paths: Paths): void {
  for (const name of sweep(paths)) console.error(`Removed a cluster that a killed run left behind: ${name}`);
}

function clusters(paths: Paths): { name: string; record: ClusterRecord }[] {
  return clusterNames(paths).flatMap((name) => {
    const record = readRecord(join(paths.clusters, name));
    return record ? [{ name, record }] : [];
  });
}

function stateOf(paths: Paths, name: string): string {
  const dir = join(paths.clusters, name);
  const running = new Set(programsRunFrom(dir).map(({ program }) => program));
  const missing = COMPONENTS.filter((component) => !running.has(join(dir, "bin", component)));
  if (missing.length === 0) return "running";
  return missing.length === COMPONENTS.length ? "stopped" : `without ${missing.join(", ")}`;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
