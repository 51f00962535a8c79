import type { TestProject } from "vitest/node";
import { type Cluster, startCluster } from "./cluster.ts";

/** What every test of the project "cluster" gets: see shared.ts. */
declare module "vitest" {
  export interface ProvidedContext {
    cluster: { name: string; kubeconfig: string };
  }
}

let cluster: Cluster | undefined;

/**
 * Starts the cluster that all test files share. It is gone when the tests end, in
 * whatever way: by teardown, or else by the clean-up at exit (at-exit.ts).
 */
export async function setup(project: TestProject): Promise<void> {
  // No test clears its pods away: there is room for those of all.
  const nodeSize = { cpus: 10_000, memoryGib: 100_000 };
  cluster = await startCluster({ name: `test-${process.pid}`, nodeSize });
  project.provide("cluster", { name: cluster.name, kubeconfig: cluster.kubeconfig });
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
}
