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
    /** Path of the bundled program, as shipped; it starts in half the time. */
    program: string;
  }
}

let cluster: Cluster | undefined;

/**
 * Starts the cluster that all test files share. It is removed when the tests end, in
 * any way: by teardown, or else by the exit handler of the local cluster.
 */
export async function setup(project: TestProject): Promise<void> {
  cluster = await startCluster({
    name: `test-${process.pid}`,
    // Large, because no test deletes its pods.
    nodeSize: ROOMY_NODE,
    componentArgs: WITHOUT_CLIENT_LIMITS,
  });
  project.provide("cluster", { name: cluster.name });
  project.provide("program", await buildProgram(cluster.dir));
}

/** In the folder of the cluster, so that it is removed with it. */
async function buildProgram(dir: string): Promise<string> {
  const file = join(dir, "pipe-scaling.mjs");
  const words = ["exec", "--", "rolldown", "-c", "rolldown.config.ts", "--file", file];
  const { code, stderr } = await run("npm", words, { cwd: ROOT, env: environment });
  if (code !== 0) throw new Error(`the program could not be built: ${tail(stderr)}`);
  return file;
}

export async function teardown(): Promise<void> {
  await cluster?.stop();
}
