import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { killApiServer } from "@pipe-scaling/local-cluster/outage";
import type { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import type { KeptController } from "./controller-process.ts";
import type { Invariants } from "./invariants.ts";

/** The longest that a process or its connections stand still. */
const STILL_MS = 2000;
/** The longest wait for a write of a resize in place, and from there to the end of the process. */
const AWAITED_MS = 500;
const SOON_MS = 50;

type Fault = readonly [share: number, fault: () => Promise<void>];

/** Faults of machines and networks, chosen at random. */
export class RandomFaults {
  readonly #cluster: Cluster;
  readonly #proxy: TcpProxy;
  readonly #controller: KeptController;
  readonly #invariants: Invariants;
  readonly #random: () => number;

  /**
   * @param proxy between the controller and the API server
   * @param invariants see the writes of the controller
   */
  constructor(
    cluster: Cluster,
    proxy: TcpProxy,
    controller: KeptController,
    invariants: Invariants,
    random: () => number,
  ) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#controller = controller;
    this.#invariants = invariants;
    this.#random = random;
  }

  /** One of them, or none: the shares are those of all calls. */
  async any(): Promise<void> {
    const faults: readonly Fault[] = [
      [0.08, () => this.#controller.current.kill()],
      [0.1, () => this.#killInResize()],
      [0.05, () => this.#stop()],
      [0.05, async () => this.#proxy.cut()],
      [0.04, () => this.#freeze()],
      [0.02, () => this.#killApiServer()],
    ];
    let dice = this.#random();
    for (const [share, fault] of faults) {
      if (dice < share) return fault();
      dice -= share;
    }
  }

  /** Soon after the next write of a resize in place, if there is one. */
  async #killInResize(): Promise<void> {
    const kinds = ["Pod", "ReplicaSet", "Deployment"] as const;
    const kind = kinds[Math.floor(this.#random() * kinds.length)] ?? "Pod";
    const delayMs = this.#random() * SOON_MS;
    if (!(await this.#invariants.seesResize(kind, AWAITED_MS))) return;
    await delay(delayMs);
    await this.#controller.current.kill();
  }

  /** The controller stands still for a while. */
  async #stop(): Promise<void> {
    const { current } = this.#controller;
    current.signal("SIGSTOP");
    await delay(this.#random() * STILL_MS);
    current.signal("SIGCONT");
  }

  /** Its connections stay open, and nothing gets through. */
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
