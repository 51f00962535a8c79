import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { findKubelet } from "./binaries/find-kubelet.ts";
import type { Cluster } from "./cluster.ts";
import { type Environment, environment } from "./environment.ts";
import { ClusterError } from "./errors.ts";
import { KUBELET_LABEL } from "./kwokctl.ts";
import { checkName } from "./names.ts";
import { openPaths } from "./paths.ts";
import { type Progress, terminalProgress } from "./progress.ts";
import { type NodeSize, nodeReady } from "./ready.ts";
import { tail } from "./run.ts";
import { waitFor } from "./wait.ts";

/** Annotation: the memory ("512Mi") that a pod on a real kubelet uses; 0 by default. */
export const MEMORY_USAGE_ANNOTATION = "test.pipes.clouddb.dev/memory-usage";

export interface KubeletOptions {
  /** Name of its node; "kubelet" by default. */
  readonly node?: string | undefined;
  /** 4 CPUs, 8 Gi and 110 pods by default. */
  readonly nodeSize?: Partial<NodeSize> | undefined;
  readonly progress?: Progress | undefined;
  readonly env?: Environment | undefined;
  /** Cancels the build. */
  readonly signal?: AbortSignal | undefined;
}

const NODE_SIZE: NodeSize = { cpus: 4, memoryGib: 8, pods: 110 };
const READY_TIMEOUT_MS = 60_000;

/**
 * Starts a kubelet, which adds a node to the cluster. It is the kubelet of Kubernetes with a container runtime that
 * starts no processes, so pods become ready and are resized as on a real node. Returns when pods can run on it.
 *
 * The first start builds it, which takes minutes. It ends with the cluster.
 *
 * @throws ClusterError if it cannot be built, or exits
 */
export async function startKubelet(cluster: Cluster, options: KubeletOptions = {}): Promise<Kubelet> {
  const { env = environment, progress = terminalProgress(), signal } = options;
  const program = await findKubelet({ env, paths: openPaths(env), progress, signal });
  const kubelet = new Kubelet(
    cluster,
    program,
    checkName(options.node ?? "kubelet"),
    { ...NODE_SIZE, ...options.nodeSize },
    env,
  );
  await kubelet.start();
  return kubelet;
}

export class Kubelet {
  readonly node: string;
  readonly #cluster: Cluster;
  readonly #size: NodeSize;
  readonly #env: Environment;
  readonly #dir: string;
  readonly #socket: string;
  #process: ChildProcess | undefined;

  constructor(cluster: Cluster, program: string, node: string, size: NodeSize, env: Environment) {
    this.node = node;
    this.#cluster = cluster;
    this.#size = size;
    this.#env = env;
    this.#dir = join(cluster.dir, "nodes", node);
    this.#socket = join(this.#dir, "cri");
    mkdirSync(this.#dir, { recursive: true });
    // Links in the folder of the cluster, like those of its components, so that they are killed with the cluster.
    for (const name of [node, `${node}-runtime`]) symlinkSync(program, join(cluster.dir, "bin", name));
  }

  /** Starts the kubelet, also after kill(). Returns when its node is ready, which it stays for a while after kill(). */
  async start(): Promise<void> {
    // The container runtime is another process, which keeps running when the kubelet ends.
    if (!existsSync(this.#socket)) this.#spawn(`${this.node}-runtime`, ["runtime"]);
    await waitFor(() => existsSync(this.#socket), { what: "the container runtime to listen", intervalMs: 5 });
    const { cpus, memoryGib, pods } = this.#size;
    const settings = {
      kubeconfig: this.#cluster.kubeconfig,
      root: this.#dir,
      node: this.node,
      label: `${KUBELET_LABEL}=true`,
      "usage-annotation": MEMORY_USAGE_ANNOTATION,
      cpus,
      memory: memoryGib * 2 ** 30,
      pods,
    };
    const flags = Object.entries(settings).map(([name, value]) => `-${name}=${value}`);
    const child = this.#spawn(this.node, ["kubelet", ...flags]);
    this.#process = child;
    const ended = new AbortController();
    const onExit = () => ended.abort(new ClusterError(`The kubelet exited:\n${this.#endOfLog()}`));
    child.once("exit", onExit);
    await nodeReady(this.#cluster, this.node, { timeoutMs: READY_TIMEOUT_MS, signal: ended.signal });
    child.off("exit", onExit);
  }

  /** Kills the kubelet with SIGKILL and returns when it has ended. Its containers keep running. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
  }

  #spawn(name: string, args: readonly string[]): ChildProcess {
    const log = openSync(this.#log(name), "a");
    const child = spawn(join(this.#cluster.dir, "bin", name), [...args, `-socket=${this.#socket}`], {
      env: { ...this.#env },
      stdio: ["ignore", log, log],
      detached: true,
    });
    closeSync(log);
    child.unref();
    return child;
  }

  #log(name: string): string {
    return join(this.#cluster.dir, "logs", `${name}.log`);
  }

  #endOfLog(): string {
    return tail(readFileSync(this.#log(this.node), "utf8"), 5);
  }
}
