import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { atExit } from "./at-exit.ts";
import { Binaries } from "./binaries/binaries.ts";
import { findBinaries } from "./binaries/find.ts";
import { whileAlive } from "./deaths.ts";
import { type Environment, environment } from "./environment.ts";
import { ClusterError, messageOf } from "./errors.ts";
import { type Component, type ComponentArgs, createCluster } from "./kwokctl.ts";
import { checkName } from "./names.ts";
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
  /** Its folder: kubeconfigs, certificates (pki), logs (logs/COMPONENT.log) and data. */
  readonly dir: string;
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The API server, https://127.0.0.1:port. */
  readonly server: string;
  readonly binaries: Binaries;
  /** The process id of a component, looked up anew each time; throws if it does not run. */
  pid(component: Component): number;
  /** Kills a component by SIGKILL and returns when it is dead. Nothing restarts it but revive(). */
  kill(component: Component): Promise<void>;
  /** Starts those components again that are dead; returns when the API server is ready. */
  revive(): Promise<void>;
  /** Kills the processes and removes the folder. May be called more than once. */
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** Lower case letters, digits and dashes; a new one by default. */
  readonly name?: string | undefined;
  /** Time until a pod is ready; 200 by default. */
  readonly podStartMs?: number | undefined;
  /** Up to this much more for each pod, at random; 0 by default. */
  readonly podStartJitterMs?: number | undefined;
  /** 1 by default. */
  readonly nodes?: number | undefined;
  readonly nodeSize?: Partial<NodeSize> | undefined;
  /** Leave it running when this process ends, until somebody takes it down. */
  readonly keep?: boolean | undefined;
  /** Without it nothing rolls out, Deployments are only stored; true by default. */
  readonly controllerManager?: boolean | undefined;
  /** More arguments for the API server, without the leading dashes. */
  readonly apiServerArgs?: Readonly<Record<string, string>> | undefined;
  /** The same for any component. */
  readonly componentArgs?: ComponentArgs | undefined;
  /** The API server's port, instead of a free one. */
  readonly port?: number | undefined;
  /** Gives up; what was started is removed. */
  readonly signal?: AbortSignal | undefined;
  /** Reports steps that take long; to stderr by default. */
  readonly progress?: Progress | undefined;
  readonly env?: Environment | undefined;
}

const READY_TIMEOUT_MS = 60_000;

/**
 * Starts a cluster and returns when pods can run on it, in about 3 s once the
 * programs are there; the first time they are fetched or built (binaries/find.ts).
 *
 * It is gone after stop(), and at the latest when this process ends, unless it is
 * kept. Clusters that killed runs left behind are removed first.
 *
 * @throws ClusterError with what to do; nothing is left behind but logs.
 */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const { env = environment, progress = terminalProgress(), signal } = options;
  const name = checkName(options.name ?? `c-${randomUUID().slice(0, 8)}`);
  const paths = openPaths(env);
  sweep(paths);
  if (readRecord(join(paths.clusters, name))) throw alreadyRuns(name);
  // Before the programs are fetched, which may take minutes.
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
    await whileAlive(dir, options.signal, (signal) => bringUp(cluster, ports, { ...options, signal }));
  } catch (error) {
    await cluster.stop();
    options.signal?.throwIfAborted();
    const logs = keptLogs(paths, name);
    throw new ClusterError(
      `Cluster "${name}" did not come up: ${messageOf(error)}\nIts logs are in ${logs}`,
      {
        cause: error,
      },
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
  // The taint that keeps pods from a new node is taken off by the controller manager.
  await nodesReady(cluster, nodes, { ...waiting, untainted: controllerManager });
  if (controllerManager) await defaultServiceAccountReady(cluster, waiting);
}

/**
 * A cluster that runs already, started by another process or kept. Its stop()
 * removes it for everybody; without, it stays as it was.
 *
 * @throws ClusterError naming the clusters that there are.
 */
export async function attachCluster(name: string, env: Environment = environment): Promise<Cluster> {
  const paths = openPaths(env);
  const record = readRecord(join(paths.clusters, name));
  if (!record) throw noSuchCluster(name, clusterNames(paths));
  return new RunningCluster(name, record, new Binaries(record.binaries), { paths, env });
}

function alreadyRuns(name: string): ClusterError {
  return new ClusterError(
    `A cluster named "${name}" runs already. Use it (npm run cluster -- env --name ${name}), take it down (npm run cluster -- down --name ${name}) or choose another --name.`,
  );
}

function noSuchCluster(name: string, there: readonly string[]): ClusterError {
  const others = there.length > 0 ? `These do: ${there.join(", ")}.` : "None does.";
  return new ClusterError(
    `No cluster named "${name}" runs. ${others} Start it: npm run cluster -- up --name ${name}`,
  );
}
