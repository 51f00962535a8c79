import { join } from "node:path";
import { findBinaries } from "./binaries/find.ts";
import type { Cluster } from "./cluster.ts";
import { environment } from "./environment.ts";
import { openPaths } from "./paths.ts";
import { terminalProgress } from "./progress.ts";
import { type Finished, run } from "./run.ts";

/**
 * Runs helm and returns its result, whatever its exit code. The user's plugins, repositories and clusters are not used.
 *
 * @param cluster commands such as `template` need none
 */
export async function tryHelm(args: readonly string[], cluster?: Cluster): Promise<Finished> {
  const paths = openPaths(environment);
  const binaries = await findBinaries({ env: environment, paths, progress: terminalProgress() });
  const others = Object.entries(environment).filter(([name]) => !/^(HELM_|KUBE)/.test(name));
  const home = (kind: string) => join(paths.cache, "helm", kind);
  return await run(binaries.path("helm"), args, {
    env: {
      ...Object.fromEntries(others),
      HELM_CONFIG_HOME: home("config"),
      HELM_CACHE_HOME: home("cache"),
      HELM_DATA_HOME: home("data"),
      KUBECONFIG: cluster?.kubeconfig ?? "/dev/null",
    },
  });
}

/** Returns what helm printed. @throws Error with what it printed on standard error */
export async function helm(args: readonly string[], cluster?: Cluster): Promise<string> {
  const { code, stdout, stderr } = await tryHelm(args, cluster);
  if (code !== 0) throw new Error(`helm ${args.join(" ")} exited with ${code}: ${stderr.trim()}`);
  return stdout;
}
