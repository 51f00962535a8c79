import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { findBinaries } from "../cluster/binaries/find.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { environment } from "../cluster/environment.ts";
import { openPaths } from "../cluster/paths.ts";
import { terminalProgress } from "../cluster/progress.ts";
import { type Finished, run } from "../cluster/run.ts";

export const CHART = fileURLToPath(new URL("../../deploy/chart/pipe-scaling-operator", import.meta.url));

/** Sets of values that together switch each part of the chart on and off, in its folder ci. */
export const VALUE_SETS = ["minimal", "everything", "all-namespaces", "bare"] as const;

export function valuesFile(set: (typeof VALUE_SETS)[number]): string {
  return `${CHART}/ci/${set}-values.yaml`;
}

/** Path of helm, which is one of the local cluster's programs. */
export async function helmBinary(): Promise<string> {
  const paths = openPaths(environment);
  const binaries = await findBinaries({ env: environment, paths, progress: terminalProgress() });
  return binaries.path("helm");
}

/** Runs helm to its end, whatever its exit code, apart from the user's own plugins, repositories and clusters. */
export async function tryHelm(args: readonly string[], cluster?: Cluster): Promise<Finished> {
  const home = openPaths(environment).cache;
  const own = Object.entries(environment).filter(([name]) => !/^(HELM_|KUBE)/.test(name));
  return run(await helmBinary(), args, {
    env: {
      ...Object.fromEntries(own),
      HELM_CONFIG_HOME: `${home}/helm/config`,
      HELM_CACHE_HOME: `${home}/helm/cache`,
      HELM_DATA_HOME: `${home}/helm/data`,
      KUBECONFIG: cluster?.kubeconfig ?? "/dev/null",
    },
  });
}

/** What helm printed. @throws Error with what it said on standard error */
export async function helm(args: readonly string[], cluster?: Cluster): Promise<string> {
  const { code, stdout, stderr } = await tryHelm(args, cluster);
  if (code !== 0) throw new Error(`helm ${args.join(" ")} exited with ${code}: ${stderr.trim()}`);
  return stdout;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
}

/** The chart for those without Helm; what only Helm makes use of is left out. */
export async function plainManifests(): Promise<string> {
  const name = "pipe-scaling-operator";
  const namespace = "pipe-scaling-system";
  const values = fileURLToPath(new URL("../../deploy/manifests/values.yaml", import.meta.url));
  const args = ["template", name, CHART, "--namespace", namespace, "--values", values, "--skip-tests"];
  const head =
    "# Generated from the chart with values.yaml by `npm run generate`; do not edit.\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n" +
    `  name: ${namespace}\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n`;
  return head + (await helm(args)).replace(/^ +(helm\.sh\/|app\.kubernetes\.io\/managed-by:).*\n/gm, "");
}

export const RELEASE = ["release", CHART, "--namespace", "pipe-scaling-system"] as const;

/** The objects of a release. */
export async function rendered(...args: readonly string[]): Promise<readonly Manifest[]> {
  return parseAllDocuments(await helm(["template", ...RELEASE, ...args]))
    .map((document): Manifest | null => document.toJS())
    .filter((object) => object !== null);
}
