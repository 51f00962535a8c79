import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { killApiServer } from "@pipe-scaling/local-cluster/outage";
import type { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import type { RestartingController } from "./controller-process.ts";
import { ifPossible, type Operation, type OperationLog } from "./operation.ts";
import { inResizeWindow } from "./resize-window.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Maximum time for which a process or its connections are stopped. */
const STILL_MS = 2000;
/** Maximum time after SIGTERM, which includes writes to an API server that is down or slow. */
const TERMINATION_MS = 60_000;
const MANAGER = "kube-controller-manager";
/** Maximum time for which the controller manager is away. */
const AWAY_MS = 40_000;

type Fault = readonly [share: number, fault: Operation];

/** Random faults of machines and networks. */
export class RandomFaults {
  readonly #cluster: Cluster;
  readonly #proxy: TcpProxy;
  readonly #controller: RestartingController;
  readonly #services: readonly ServiceUnderTest[];
  readonly #random: () => number;
  readonly #log: OperationLog;
  readonly #ending = new AbortController();
  #isAway = false;
  #away: Promise<unknown> = Promise.resolve();

  /**
   * @param proxy between the controller and the API server
   * @param services whose pipes are resized in place when a fault is to meet that
   */
  constructor(
    cluster: Cluster,
    proxy: TcpProxy,
    controller: RestartingController,
    services: readonly ServiceUnderTest[],
    random: () => number,
    log: OperationLog,
  ) {
    this.#log = log;
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#controller = controller;
    this.#services = services;
    this.#random = random;
  }

  /** Executes a random fault, or none. The shares are probabilities. */
  async any(): Promise<void> {
    const faults: readonly Fault[] = [
      [0.04, this.#kill],
      [0.05, this.#killInResize],
      [0.02, this.#terminate],
      [0.05, this.#terminateInResize],
      [0.03, this.#stop],
      [0.04, this.#cut],
      [0.03, this.#freeze],
      [0.02, this.#killApiServer],
      [0.01, this.#stopManager],
    ];
    let number = this.#random();
    for (const [share, fault] of faults) {
      if (number < share) return this.#log.run("fault", fault.bind(this));
      number -= share;
    }
  }

  /** Resolves when the faults that still last have ended. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.#away;
  }

  async #kill(): Promise<void> {
    await this.#controller.current.kill();
  }

  async #terminate(): Promise<void> {
    await this.#controller.terminate(TERMINATION_MS);
  }

  /** Kills the controller soon after its next write of a resize in place, if there is one. */
  async #killInResize(): Promise<unknown> {
    if ((await ifPossible(() => this.#inResize())) !== true) return false;
    await this.#kill();
    return true;
  }

  async #terminateInResize(): Promise<unknown> {
    if ((await ifPossible(() => this.#inResize())) !== true) return false;
    await this.#terminate();
    return true;
  }

  /** In the middle of a resize in place of any service. */
  #inResize(): Promise<boolean> {
    const service = this.#services[Math.floor(this.#random() * this.#services.length)];
    return service ? inResizeWindow(service) : Promise.resolve(false);
  }

  #cut(): Promise<void> {
    this.#proxy.cut();
    return Promise.resolve();
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

  async #killApiServer(): Promise<unknown> {
    // The revival would include the controller manager.
    if (this.#isAway) return false;
    await killApiServer(this.#cluster);
    await this.#cluster.revive();
    return true;
  }

  /** The controller manager is away for a while, and operations go on. */
  async #stopManager(): Promise<unknown> {
    const ms = this.#random() * AWAY_MS;
    if (this.#isAway) return false;
    this.#isAway = true;
    await this.#cluster.kill(MANAGER);
    this.#away = delay(ms, undefined, { signal: this.#ending.signal })
      .catch(() => undefined)
      .then(() => this.#cluster.revive())
      .finally(() => {
        this.#isAway = false;
      });
    return `for ${Math.round(ms)} ms`;
  }
}
