import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import type { ControllerOverrides } from "../../../src/controller/process.ts";
import { accountName } from "../../support/fixtures/shipped-account.ts";
import { TestEnvironment } from "../../support/test-environment.ts";
import { FaultyProxy, type Handling, type ProxiedRequest } from "./faulty-proxy.ts";
import { Invariants } from "./invariants.ts";

export const PIPES = ["pipe-a", "pipe-b", "pipe-c"];

/** Failed watches are retried soon. */
const SOON_AGAIN: ControllerOverrides = { retryDelays: { firstMs: 200, mostMs: 2000 } };

export interface Fault {
  readonly handle: (request: ProxiedRequest) => Handling | undefined;
  /** Cuts open watches when the fault begins and ends, so that it affects the new ones. */
  readonly isOfWatches?: boolean;
  /** Returns true once the fault has had an effect and may end. By default it lasts until the rescale completes. */
  readonly isOver?: () => boolean;
  /** Runs during the fault, after the size was requested. */
  readonly meanwhile?: () => Promise<void>;
}

/** A service of a few pipes whose controller reaches the cluster through a proxy that can be made faulty. */
export class ProxiedService {
  readonly environment: TestEnvironment;
  readonly proxy: FaultyProxy;
  #cores = 1;
  #stopController: (() => Promise<void>) | undefined;

  private constructor(environment: TestEnvironment, proxy: FaultyProxy) {
    this.environment = environment;
    this.proxy = proxy;
  }

  /** Resolves when the service has its first size. */
  static async start(): Promise<ProxiedService> {
    const environment = await TestEnvironment.create();
    const service = new ProxiedService(environment, await FaultyProxy.start(environment.cluster));
    await service.restartController();
    for (const name of PIPES) await environment.createPipe({ name, cores: 1 });
    await environment.waitForCondition("Ready", "True");
    return service;
  }

  /** Watches of a new controller start with the shortest backoff. */
  async restartController(overrides: ControllerOverrides = {}): Promise<void> {
    await this.#stopController?.();
    const elections = () => this.environment.log.filter(({ msg }) => msg === "leading").length;
    const before = elections();
    this.#stopController = await this.startAnotherController({ ...SOON_AGAIN, ...overrides });
    await waitFor(() => elections() > before, { what: "the new controller to lead" });
  }

  /** Returns the function that ends it. */
  async startAnotherController(overrides?: ControllerOverrides): Promise<() => Promise<void>> {
    const { cluster, records } = this.environment;
    const kubeconfig = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
    return this.environment.startController({ kubeconfig: this.proxy.kubeconfig(kubeconfig) }, overrides);
  }

  async end(): Promise<void> {
    await this.environment.end();
    await this.proxy.stop();
  }

  /** Requests another size during a fault, and expects the same result as without it. */
  async rescaleUnder({ handle, isOfWatches = false, isOver, meanwhile }: Fault): Promise<void> {
    const { environment, proxy } = this;
    const invariants = await Invariants.observe(environment);
    try {
      const before = await this.#revisions();
      this.#cores += 1;
      invariants.accept(this.#cores);
      proxy.handle = handle;
      if (isOfWatches) proxy.cutWatches();
      await environment.requestSize(this.#cores);
      await meanwhile?.();
      if (isOver) {
        await waitFor(isOver, { what: "the fault to have an effect" });
        this.#pass();
        if (isOfWatches) proxy.cutWatches();
      }
      await invariants.settled(this.#cores, { quietMs: 1000 });
      this.#pass();
      await invariants.end();
      // Each pipe was restarted once.
      expect(await this.#revisions()).toEqual(before.map((revision) => revision + 1));
    } finally {
      this.#pass();
      await invariants.close();
    }
  }

  #pass(): void {
    this.proxy.handle = () => undefined;
  }

  /** The revision of each pipe, which the Deployment controller increments for each new template. */
  async #revisions(): Promise<number[]> {
    const revision = async (name: string) =>
      (await this.environment.pipe(name)).metadata.annotations?.["deployment.kubernetes.io/revision"];
    const what = "the Deployment controller to observe all pipes";
    const known = PIPES.map((name) => waitFor(() => revision(name), { what }));
    return (await Promise.all(known)).map(Number);
  }
}
