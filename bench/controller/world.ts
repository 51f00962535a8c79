import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { ROOMY_NODE, WITHOUT_CLIENT_LIMITS } from "@pipe-scaling/local-cluster/capacity";
import { accounts, install } from "../../deploy/chart/install.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { parseRequestCounts, type RequestCounts, sumOf, writesOf } from "./request-counts.ts";

/** Namespace of the pipes of the controller. */
export const PIPES = "bench-pipes";
/** Namespace of the pipes of the baseline, which the controller does not watch. */
export const BASELINE_PIPES = "bench-baseline-pipes";

/** After this time without a write, none is left: a reconciliation starts within a tenth of it. */
const QUIET_MS = 1500;
const LOOK_MS = 500;

/** A cluster for the controller. */
export interface ControllerWorld {
  readonly cluster: Cluster;
  readonly admin: KubeClient;
  /** Path of a kubeconfig for the ServiceAccount of the controller. */
  readonly kubeconfig: string;
  /** Folder for the CPU profiles of measured processes; none are written if it is absent. */
  readonly profileDir: string | undefined;
}

/**
 * Creates a cluster that only stores Deployments: no rollout starts, and there are no other writers. It is removed when
 * this process ends.
 */
export async function createControllerWorld(profileDir?: string): Promise<ControllerWorld> {
  const cluster = await startCluster({ controllerManager: false, nodes: 0 });
  const world = await worldOf(cluster, profileDir);
  // These processes have no work here, and their calls would be counted too.
  await cluster.kill("kube-scheduler");
  await cluster.kill("kwok-controller");
  return world;
}

/**
 * Creates a cluster with rollouts and simulated pods, which is removed when this process ends. The controller manager
 * has raised limits at first, because with the default ones it would take a quarter of an hour for 3,000 pods.
 */
export async function createWorldWithPods(profileDir?: string): Promise<ControllerWorld> {
  const cluster = await startCluster({ nodeSize: ROOMY_NODE, componentArgs: WITHOUT_CLIENT_LIMITS });
  return worldOf(cluster, profileDir);
}

async function worldOf(cluster: Cluster, profileDir: string | undefined): Promise<ControllerWorld> {
  await install(cluster, [PIPES, BASELINE_PIPES]);
  const { controller: kubeconfig } = await accounts(cluster);
  return { cluster, kubeconfig, profileDir, admin: new KubeClient(await connect(cluster.kubeconfig)) };
}

/** Reads the number of requests so far, of all clients, from the metrics of the API server. */
export async function requestCounts(world: ControllerWorld): Promise<RequestCounts> {
  return parseRequestCounts(await readMetrics(world));
}

async function readMetrics({ admin }: ControllerWorld): Promise<string> {
  const body = await admin.stream({ path: "/metrics", signal: new AbortController().signal });
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Waits until no write has arrived for a while. @returns the requests until then */
export async function quiet(world: ControllerWorld): Promise<RequestCounts> {
  let writes = -1;
  for (let since = performance.now(); ; await delay(LOOK_MS)) {
    const counts = await requestCounts(world);
    const now = sumOf(writesOf(counts));
    if (now !== writes) since = performance.now();
    else if (performance.now() - since >= QUIET_MS) return counts;
    writes = now;
  }
}
