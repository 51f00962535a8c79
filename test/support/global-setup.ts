import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { ROOMY_NODE, WITHOUT_CLIENT_LIMITS } from "@pipe-scaling/local-cluster/capacity";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run, tail } from "@pipe-scaling/local-cluster/run";
import type { TestProject } from "vitest/node";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

declare module "vitest" {
  export interface ProvidedContext {
    /** Path of the program. In the cluster project it is the bundle, which starts faster than the sources. */
    program: string;
  }
}

let cluster: Cluster | undefined;

/** Starts the cluster that all test files share. If the teardown does not run, the local cluster removes it at exit. */
export async function setup(project: TestProject): Promise<void> {
  cluster = await startCluster({
    name: `test-${process.pid}`,
    // Tests do not delete their pods.
    nodeSize: ROOMY_NODE,
    componentArgs: {
      ...WITHOUT_CLIENT_LIMITS,
      "kube-controller-manager": {
        ...WITHOUT_CLIENT_LIMITS["kube-controller-manager"],
        // By default, an autoscaler first acts 15 s after its creation.
        "horizontal-pod-autoscaler-sync-period": "2s",
      },
    },
  });
  project.provide("cluster", { name: cluster.name });
  project.provide("program", await buildProgram(cluster.dir));
}

/** Builds the program in the folder of the cluster, which is removed with it. */
async function buildProgram(dir: string): Promise<string> {
  const folder = join(dir, "program");
  // The configuration needs import.meta.resolve, which the module runner of global setups does not support.
  const words = ["exec", "--", "rolldown", "-c", "rolldown.config.ts", "--dir", folder];
  const { code, stderr } = await run("npm", words, { cwd: ROOT, env: environment });
  if (code !== 0) throw new Error(`building the program failed: ${tail(stderr)}`);
  return join(folder, "pipe-scaling.mjs");
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
}
