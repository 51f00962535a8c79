import { delimiter } from "node:path";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { temporaryFolder } from "./fixtures/kubeconfig.ts";

/**
 * Runs commands of a page in one shell, with kubectl and helm for this cluster.
 *
 * @returns what they printed
 * @throws Error with what they printed if one fails
 */
export async function runCommands(
  cluster: Cluster,
  commands: readonly string[],
  { cwd, variables = {} }: { readonly cwd?: string; readonly variables?: Record<string, string> } = {},
): Promise<string> {
  const home = temporaryFolder();
  const { code, stdout, stderr } = await run("bash", ["-eu", "-o", "pipefail", "-c", commands.join("")], {
    cwd: cwd ?? home,
    env: {
      PATH: [cluster.binaries.dir, environment["PATH"]].join(delimiter),
      HOME: home,
      KUBECONFIG: cluster.kubeconfig,
      ...variables,
    },
  });
  if (code !== 0) throw new Error(`${commands.join("")}exited with ${code}: ${stdout}${stderr}`);
  return stdout;
}
