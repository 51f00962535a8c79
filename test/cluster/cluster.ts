import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { atExit } from "./at-exit.ts";
import { Binaries } from "./binaries/binaries.ts";
import { findBinaries } from "./binaries/find.ts";
import { whileAlive } from "./deaths.ts";
import { type Environment, environment } from "./environment.ts";
import { ClusterError, messageOf } from "./errors.ts";
import { type Component, type ComponentArgs, createCluster } from "./kwokctl.ts";
import { COMMAND, checkName } from "./names.ts";
import { openPaths, type Paths } from "./paths.ts";
import { checkPort, type Ports, reservePorts } from "./ports.ts";
import { thisProcess } from "./processes.ts";
import { type Progress, terminalProgress } from "./progress.ts";
import {
  apiServerReady,
  createNodes,
  DEFAULT_NODE,
  defaultServiceAccountReady,
  type NodeSize,
  nodesReady,
} from "./ready.ts";
import { type ClusterRecord, clusterNames, createFolder, readRecord, writeRecord } from "./record.ts";
import { keptLogs, removeCluster, sweep } from "./remove.ts";
import { RunningCluster } from "./running-cluster.ts";

export interface Cluster {
  readonly name: string;
  /** Folder with the kubeconfigs, certificates (pki), logs (logs/COMPONENT.log) and data. */
  readonly dir: string;
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** URL of the API server: https://127.0.0.1:port. */
  readonly server: string;
  readonly binaries: Binaries;
  /** Process ID of a component, which changes when it restarts. @throws ClusterError if it is not running */
  pid(component: Component): number;
  /** Kills a component with SIGKILL and returns when it has ended. Only revive() restarts it. */
  kill(component: Component): Promise<void>;
  /** Restarts the components that are not running; returns when the API server is ready. */
  revive(): Promise<void>;
  /** Kills the processes and removes the folder. Can be called more than once. */
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Lowercase letters, digits and dashes; random by default. */
  readonly name?: string | undefined;
  /** Time until a new pod is ready; 200 by default. */
  readonly podStartMs?: number | undefined;
  /** Maximum of a random time that is added for each pod; 0 by default. */
  readonly podStartJitterMs?: number | undefined;
  /** Number of nodes; 1 by default. */
  readonly nodes?: number | undefined;
  readonly nodeSize?: Partial<NodeSize> | undefined;
  /** The cluster keeps running when this process ends, until stop() or `local-cluster down`. */
  readonly keep?: boolean | undefined;
  /** True by default. Without a controller manager, Deployments are stored, but nothing rolls out. */
  readonly controllerManager?: boolean | undefined;
  /** Additional arguments of the API server, without the leading dashes. */
  readonly apiServerArgs?: Readonly<Record<string, string>> | undefined;
  /** Additional arguments of any component. */
  readonly componentArgs?: ComponentArgs | undefined;
  /** Port of the API server; a free one by default. */
  readonly port?: number | undefined;
  /** Cancels the start, and removes what was started. */
  readonly signal?: AbortSignal | undefined;
  /** Reports long steps; to stderr by default. */
  readonly progress?: Progress | undefined;
  readonly env?: Environment | undefined;
}

const READY_TIMEOUT_MS = 60_000;

/**
 * Starts a cluster and returns when pods can run on it. That takes about 3 s, and longer the first time, when the
 * programs are downloaded or built (binaries/find.ts).
 *
 * The cluster is removed by stop(), or when this process ends, unless it has the option `keep`. Clusters that killed
 * runs left behind are removed first.
 *
 * @throws ClusterError that says what to do; only logs are left then
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { env = environment, progress = terminalProgress(), signal } = options;
  const name = checkName(options.name ?? `c-${randomUUID().slice(0, 8)}`);
  const paths = openPaths(env);
  sweep(paths);
  if (readRecord(join(paths.clusters, name))) throw alreadyRuns(name);
  // Before the programs are downloaded or built, which can take minutes.
  if (options.port !== undefined) await checkPort(options.port);
  const binaries = await findBinaries({ env, paths, progress, signal });
  const reservation = await reservePorts(options.port);
  try {
    return await start(name, binaries, reservation.ports, { ...options, env, paths });
  } finally {
    reservation.release();
  }
}

type StartContext = ClusterOptions & { readonly env: Environment; readonly paths: Paths };

async function start(
  name: string,
  binaries: Binaries,
  ports: Ports,
  options: StartContext,
): Promise<Cluster> {
  const { env, paths } = options;
  const record: ClusterRecord = {
    owner: thisProcess(),
    binaries: binaries.dir,
    server: `https://127.0.0.1:${ports.apiServer}`,
    createdAt: new Date().toISOString(),
  };
  if (!createFolder(paths, name, record)) throw alreadyRuns(name);
  const dir = join(paths.clusters, name);
  const disown = atExit(() => removeCluster(paths, name));
  const cluster = new RunningCluster(name, record, binaries, { paths, env, disown });
  try {
    await whileAlive({ dir, signal: options.signal, remedy: "Try again." }, (signal) =>
      bringUp(cluster, ports, { ...options, signal }),
    );
  } catch (error) {
    await cluster.stop();
    options.signal?.throwIfAborted();
    const logs = keptLogs(paths, name);
    throw new ClusterError(
      `Cluster "${name}" could not be started: ${messageOf(error)}\nIts logs are in ${logs}`,
      { cause: error },
    );
  }
  if (options.keep) {
    writeRecord(dir, { ...record, owner: null });
    disown();
  }
  return cluster;
}

async function bringUp(cluster: RunningCluster, ports: Ports, options: StartContext): Promise<void> {
  const { controllerManager = true, nodes = 1, signal, env, paths } = options;
  await createCluster(
    paths,
    cluster,
    cluster.binaries,
    {
      ports,
      controllerManager,
      podStartMs: options.podStartMs ?? 200,
      podStartJitterMs: options.podStartJitterMs ?? 0,
      args: {
        ...options.componentArgs,
        "kube-apiserver": { ...options.componentArgs?.["kube-apiserver"], ...options.apiServerArgs },
      },
    },
    { env, signal },
  );
  const waiting = { timeoutMs: READY_TIMEOUT_MS, signal };
  await apiServerReady(cluster, waiting);
  await createNodes(cluster, nodes, { ...DEFAULT_NODE, ...options.nodeSize });
  // The controller manager removes the taint that keeps pods off a new node.
  await nodesReady(cluster, nodes, { ...waiting, untainted: controllerManager });
  if (controllerManager) await defaultServiceAccountReady(cluster, waiting);
}

/**
 * Returns a cluster that is already running, because another process started it or because it is kept. Its stop()
 * removes it for all processes.
 *
 * @throws ClusterError that lists the clusters, if there is none of this name
 */
export async function attachCluster(name: string, env: Environment = environment): Promise<Cluster> {
  const paths = openPaths(env);
  const record = readRecord(join(paths.clusters, name));
  if (!record) throw noSuchCluster(name, clusterNames(paths));
  return new RunningCluster(name, record, new Binaries(record.binaries), { paths, env });
}

function alreadyRuns(name: string): ClusterError {
  return new ClusterError(
    `A cluster named "${name}" is already running. Use it (${COMMAND} env --name ${name}), remove it (${COMMAND} down --name ${name}) or choose another --name.`,
  );
}

function noSuchCluster(name: string, existing: readonly string[]): ClusterError {
  const others = existing.length > 0 ? `There are: ${existing.join(", ")}.` : "There are no others.";
  return new ClusterError(
    `There is no cluster named "${name}". ${others} To start it: ${COMMAND} up --name ${name}`,
  );
}
