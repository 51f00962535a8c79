import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { killApiServer } from "@pipe-scaling/local-cluster/outage";
import type { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import type { RestartingController } from "./controller-process.ts";
import type { Invariants } from "./invariants.ts";

/** Maximum time for which a process or its connections are stopped. */
const STILL_MS = 2000;
/** Maximum wait for a write of a resize in place, and from then until the process is killed. */
const AWAITED_MS = 500;
const SOON_MS = 50;

type Fault = readonly [share: number, fault: () => Promise<void>];

/** Random faults of machines and networks. */
export class RandomFaults {
  readonly #cluster: Cluster;
  readonly #proxy: TcpProxy;
  readonly #controller: RestartingController;
  readonly #invariants: Invariants;
  readonly #random: () => number;

  /**
   * @param proxy between the controller and the API server
   * @param invariants observe the writes of the controller
   */
  constructor(
    cluster: Cluster,
    proxy: TcpProxy,
    controller: RestartingController,
    invariants: Invariants,
    random: () => number,
  ) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#controller = controller;
    this.#invariants = invariants;
    this.#random = random;
  }

  /** Executes a random fault, or none. The shares are probabilities. */
  async any(): Promise<void> {
    const faults: readonly Fault[] = [
      [0.08, () => this.#controller.current.kill()],
      [0.1, () => this.#killInResize()],
      [0.05, () => this.#stop()],
      [0.05, async () => this.#proxy.cut()],
      [0.04, () => this.#freeze()],
      [0.02, () => this.#killApiServer()],
    ];
    let number = this.#random();
    for (const [share, fault] of faults) {
      if (number < share) return fault();
      number -= share;
    }
  }

  /** Kills the controller soon after its next write of a resize in place, if there is one. */
  async #killInResize(): Promise<void> {
    const kinds = ["Pod", "ReplicaSet", "Deployment"] as const;
    const kind = kinds[Math.floor(this.#random() * kinds.length)] ?? "Pod";
    const delayMs = this.#random() * SOON_MS;
    if (!(await this.#invariants.seesResize(kind, AWAITED_MS))) return;
    await delay(delayMs);
    await this.#controller.current.kill();
  }

  /** Stops the controller with SIGSTOP for a while. */
  async #stop(): Promise<void> {
    const { current } = this.#controller;
    current.signal("SIGSTOP");
    await delay(this.#random() * STILL_MS);
    current.signal("SIGCONT");
  }

  /** Freezes the connections of the controller for a while. */
  async #freeze(): Promise<void> {
    this.#proxy.freeze();
    await delay(this.#random() * STILL_MS);
    this.#proxy.thaw();
  }

  async #killApiServer(): Promise<void> {
    await killApiServer(this.#cluster);
    await this.#cluster.revive();
  }
}
