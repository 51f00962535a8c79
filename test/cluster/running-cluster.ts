import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Binaries } from "./binaries/binaries.ts";
import type { Cluster } from "./cluster.ts";
import { whileAlive } from "./deaths.ts";
import type { Environment } from "./environment.ts";
import { ClusterError } from "./errors.ts";
import { adminKubeconfig, COMPONENTS, type Component, restartComponents } from "./kwokctl.ts";
import { COMMAND } from "./names.ts";
import type { Paths } from "./paths.ts";
import { programsRunFrom } from "./processes.ts";
import { apiServerReady } from "./ready.ts";
import type { ClusterRecord } from "./record.ts";
import { removeCluster } from "./remove.ts";
import { waitFor } from "./wait.ts";

/** A cluster that was started. Its components can have been killed. */
export class RunningCluster implements Cluster {
  readonly name: string;
  readonly dir: string;
  readonly kubeconfig: string;
  readonly server: string;
  readonly binaries: Binaries;
  readonly #paths: Paths;
  readonly #env: Environment;
  /** Cancels its removal at the end of this process; does nothing for a cluster of another process. */
  readonly #disown: () => void;

  constructor(
    name: string,
    record: ClusterRecord,
    binaries: Binaries,
    context: { paths: Paths; env: Environment; disown?: () => void },
  ) {
    this.name = name;
    this.#paths = context.paths;
    this.#env = context.env;
    this.#disown = context.disown ?? (() => undefined);
    this.dir = join(context.paths.clusters, name);
    this.kubeconfig = adminKubeconfig(this.dir);
    this.server = record.server;
    this.binaries = binaries;
  }

  pid(component: Component): number {
    const pid = this.#running().get(component);
    if (pid === undefined) throw new ClusterError(`${component} of cluster ${this.name} is not running.`);
    return pid;
  }

  async kill(component: Component): Promise<void> {
    process.kill(this.pid(component), "SIGKILL");
    await waitFor(() => !this.#running().has(component), { what: `${component} to end`, intervalMs: 2 });
  }

  async revive(): Promise<void> {
    // Twice, because a component that was just killed may still be running, or its port in use, for a moment.
    await this.#restart().catch(() => this.#restart());
  }

  /** kwokctl considers a process running if it is a zombie, or if another process has its ID. */
  #forgetDead(): boolean {
    const running = this.#running();
    const dead = COMPONENTS.filter(
      (component) => existsSync(this.#program(component)) && !running.has(component),
    );
    for (const component of dead) rmSync(join(this.dir, "pids", `${component}.pid`), { force: true });
    return dead.length > 0;
  }

  /** Starts the components that have exited, and waits until the API server is ready. */
  #restart(): Promise<void> {
    const remedy = `The ports of a cluster never change: end the other program, or remove the cluster (${COMMAND} down --name ${this.name}) and start it again.`;
    return whileAlive({ dir: this.dir, remedy }, async (signal) => {
      if (this.#forgetDead()) {
        await restartComponents(this.#paths, this, this.binaries, { env: this.#env, signal });
      }
      await apiServerReady(this, { timeoutMs: 60_000, signal });
    });
  }

  #running(): Map<Component, number> {
    const pids = new Map(programsRunFrom(join(this.dir, "bin")).map(({ program, pid }) => [program, pid]));
    return new Map(
      COMPONENTS.flatMap((component) => {
        const pid = pids.get(this.#program(component));
        return pid === undefined ? [] : [[component, pid]];
      }),
    );
  }

  /** The link that kwokctl starts a component with; there is none for a component that was not requested. */
  #program(component: Component): string {
    return join(this.dir, "bin", component);
  }

  async stop(): Promise<void> {
    removeCluster(this.#paths, this.name);
    this.#disown();
  }
}
