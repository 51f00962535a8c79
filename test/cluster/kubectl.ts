import type { Cluster } from "./cluster.ts";
import { environment } from "./environment.ts";
import { clusterEnvironment } from "./kwokctl.ts";
import { type Finished, run } from "./run.ts";

export interface KubectlOptions {
  /** Standard input of kubectl, for `-f -`. */
  readonly input?: string;
  /** A kubeconfig instead of the administrator's, to see what another account may do. */
  readonly kubeconfig?: string;
  readonly signal?: AbortSignal;
}

/** kubectl exited with an error. Its output can still be useful: `kubectl diff` exits with 1. */
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

/** Runs kubectl against a cluster, as its administrator, and returns what it printed. */
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

/** Server-side applies objects, in the given order, as kubectl does it for people. */
export async function apply(cluster: Cluster, objects: readonly object[]): Promise<void> {
  // A List of what kubectl sends one after the other.
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
  await kubectl(cluster, ["apply", "--server-side", "-f", "-"], { input });
}
