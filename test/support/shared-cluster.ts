import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { ROOMY_NODE, WITHOUT_CLIENT_LIMITS } from "@pipe-scaling/local-cluster/capacity";
import type { TestProject } from "vitest/node";
import { VERTICAL_CRD } from "./fixtures/vertical-autoscaler.ts";
import { installCrds } from "./install-crds.ts";

let cluster: Cluster | undefined;

/** Starts the cluster that all test files share. If the teardown does not run, the local cluster removes it at exit. */
export async function setup(project: TestProject): Promise<void> {
  cluster = await startCluster({
    // Two projects of one run have a cluster each.
    name: `test-${project.name}-${process.pid}`,
    // Tests do not delete their pods.
    nodeSize: ROOMY_NODE,
    componentArgs: {
      ...WITHOUT_CLIENT_LIMITS,
      "kube-controller-manager": {
        ...WITHOUT_CLIENT_LIMITS["kube-controller-manager"],
        // An autoscaler first acts 15 s after its creation by default.
        "horizontal-pod-autoscaler-sync-period": "2s",
      },
    },
  });
  await installCrds(cluster, VERTICAL_CRD);
  project.provide("cluster", { name: cluster.name });
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
}
