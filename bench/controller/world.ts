import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { accounts, install } from "../../deploy/chart/install.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { parseRequestCounts, type RequestCounts, sumOf, writesOf } from "./request-counts.ts";

/** Where the pipes of the controller are. */
export const PIPES = "bench-pipes";
/** Where those of the baseline are, which the controller does not look at. */
export const BASELINE_PIPES = "bench-baseline-pipes";

/** After so long without a write there is nothing left to write: a reconciliation is due within a tenth of it. */
const QUIET_MS = 1500;
const LOOK_MS = 500;

/** A cluster on which Deployments are only stored: no rollout ever begins, and nobody else writes. */
export interface ControllerWorld {
  readonly cluster: Cluster;
  readonly admin: KubeClient;
  /** Path of one for the controller's own service account. */
  readonly kubeconfig: string;
  /** Where measured processes write their CPU profiles; absent: nowhere. */
  readonly profileDir: string | undefined;
}

/** The cluster goes when this process ends. */
export async function createControllerWorld(profileDir?: string): Promise<ControllerWorld> {
  const cluster = await startCluster({ controllerManager: false, nodes: 0 });
  await install(cluster, [PIPES, BASELINE_PIPES]);
  const { controller: kubeconfig } = await accounts(cluster);
  // They have nothing to do here, and would only add their own calls to those that are counted.
  await cluster.kill("kube-scheduler");
  await cluster.kill("kwok-controller");
  return { cluster, kubeconfig, profileDir, admin: new KubeClient(await connect(cluster.kubeconfig)) };
}

/** From the API server's own metrics: what it has answered so far, to whomever. */
export async function requestCounts({ admin }: ControllerWorld): Promise<RequestCounts> {
  const body = await admin.stream({ path: "/metrics", signal: new AbortController().signal });
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return parseRequestCounts(Buffer.concat(chunks).toString());
}

/** Waits until nobody has written for a while. @returns what has been answered until then */
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
