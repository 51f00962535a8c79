import type { TestProject } from "vitest/node";
import { ROOMY_NODE, WITHOUT_CLIENT_LIMITS } from "../../capacity.ts";
import { type Cluster, startCluster } from "../../cluster.ts";

let cluster: Cluster | undefined;

/** A global setup of vitest: starts the cluster that the tests of this package share. */
export async function setup(project: TestProject): Promise<void> {
  const name = `test-${process.pid}`;
  cluster = await startCluster({ name, nodeSize: ROOMY_NODE, componentArgs: WITHOUT_CLIENT_LIMITS });
  project.provide("cluster", { name });
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
}
