import { findBinaries } from "./binaries/find.ts";
import type { Cluster } from "./cluster.ts";
import { type Environment, environment } from "./environment.ts";
import { clusterEnvironment } from "./kwokctl.ts";
import { openPaths } from "./paths.ts";
import { terminalProgress } from "./progress.ts";
import { type Finished, run } from "./run.ts";
import { waitFor } from "./wait.ts";

export interface KubectlOptions {
  /** Standard input of kubectl, for `-f -`. */
  readonly input?: string;
  /** Kubeconfig of another account; that of the administrator by default. */
  readonly kubeconfig?: string;
  readonly signal?: AbortSignal;
}

/** kubectl exited with an error. Its output can still be useful: `kubectl diff` exits with 1 if objects differ. */
export class KubectlError extends Error {
  override readonly name = "KubectlError";
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;

  constructor(args: readonly string[], { code, stdout, stderr }: Finished) {
    super(`kubectl ${args.join(" ")} exited with ${code}: ${stderr.trim()}`);
    this.code = code;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

/** Runs kubectl against a cluster, as its administrator, and returns its standard output. */
export async function kubectl(
  cluster: Cluster,
  args: readonly string[],
  options: KubectlOptions = {},
): Promise<string> {
  const finished = await run(
    cluster.binaries.path("kubectl"),
    ["--kubeconfig", options.kubeconfig ?? cluster.kubeconfig, ...args],
    {
      env: clusterEnvironment(environment, cluster.binaries, cluster.dir),
      ...(options.input === undefined ? {} : { input: options.input }),
      signal: options.signal,
    },
  );
  if (finished.code !== 0) throw new KubectlError(args, finished);
  return finished.stdout;
}

/** Runs kubectl with this environment and nothing else, and returns its result, whatever its exit code. */
export async function tryKubectl(args: readonly string[], env: Environment): Promise<Finished> {
  const paths = openPaths(environment);
  const binaries = await findBinaries({ env: environment, paths, progress: terminalProgress() });
  return await run(binaries.path("kubectl"), args, { env });
}

/**
 * Resolves when the API server serves the resources of these CRDs, or of all CRDs. `kubectl wait` fails for a CRD that has
 * no status or no conditions yet.
 */
export async function untilEstablished(
  cluster: Cluster,
  names: readonly string[] = [],
  options: Pick<KubectlOptions, "signal"> = {},
): Promise<void> {
  const isEstablished = async () => {
    const { items, ...one } = JSON.parse(
      await kubectl(cluster, ["get", "crd", ...names, "--output=json"], options),
    );
    const crds: readonly Crd[] = items ?? [one];
    return crds.every(({ status }) =>
      status?.conditions?.some((each) => each.type === "Established" && each.status === "True"),
    );
  };
  const what = `the CRDs ${names.join(", ")} to be established`;
  await waitFor(isEstablished, { what, ...options });
}

interface Crd {
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[] | null;
  };
}

/** Applies objects with `kubectl apply --server-side`, in the given order. */
export async function apply(cluster: Cluster, objects: readonly object[]): Promise<void> {
  // kubectl sends the items of a List one after the other.
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
  await kubectl(cluster, ["apply", "--server-side", "-f", "-"], { input });
}
