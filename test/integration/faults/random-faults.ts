import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { killApiServer } from "@pipe-scaling/local-cluster/outage";
import type { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import type { KeptController } from "./controller-process.ts";

/** The longest that a process or its connections stand still. */
const STILL_MS = 2000;

type Fault = readonly [share: number, fault: () => Promise<void>];

/** Faults of machines and networks, chosen at random. */
export class RandomFaults {
  readonly #cluster: Cluster;
  readonly #proxy: TcpProxy;
  readonly #controller: KeptController;
  readonly #random: () => number;

  /** @param proxy between the controller and the API server */
  constructor(cluster: Cluster, proxy: TcpProxy, controller: KeptController, random: () => number) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#controller = controller;
    this.#random = random;
  }

  /** One of them, or none: the shares are those of all calls. */
  async any(): Promise<void> {
    const faults: readonly Fault[] = [
      [0.08, () => this.#controller.current.kill()],
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
