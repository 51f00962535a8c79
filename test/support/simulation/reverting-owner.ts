import type { Deployment } from "../../../src/kube/workloads.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { found, isSame } from "./objects.ts";

interface RevertingOwnerOptions {
  /** Time until it writes after another writer changed the Deployment. */
  readonly delayMs: number;
  readonly manager?: string;
  /** The operator writes its whole spec, and so also lifts a pause. */
  readonly isResuming?: boolean;
}

/** An operator that owns a Deployment, and writes its template back after each change. */
export class RevertingOwner {
  /** How often it has written. */
  writes = 0;
  readonly #cluster: SimulatedCluster;
  readonly #name: string;
  readonly #options: RevertingOwnerOptions;
  readonly #spec: Deployment["spec"];
  #isWaiting = false;
  #isStopped = false;

  constructor(cluster: SimulatedCluster, name: string, options: RevertingOwnerOptions) {
    this.#cluster = cluster;
    this.#name = name;
    this.#options = options;
    this.#spec = found(cluster.deployments, name).spec;
    cluster.onDeployment.push(({ metadata, spec }) => {
      if (metadata.name === name) this.#changed(spec);
    });
  }

  stop(): void {
    this.#isStopped = true;
  }

  #changed(spec: Deployment["spec"]): void {
    if (this.#isWaiting || this.#isStopped || this.#isDesired(spec)) return;
    this.#isWaiting = true;
    this.#cluster.clock.after(this.#options.delayMs, () => this.#revert());
  }

  #isDesired({ template, paused = false }: Deployment["spec"]): boolean {
    return isSame(template, this.#spec.template) && !(paused && this.#options.isResuming);
  }

  #revert(): void {
    this.#isWaiting = false;
    const pipe = this.#cluster.deployments.get(this.#name);
    if (!pipe || this.#isStopped || this.#isDesired(pipe.spec)) return;
    this.writes += 1;
    const { manager = "pipe-operator", isResuming = false } = this.#options;
    const { template } = this.#spec;
    const paused = isResuming ? { paused: false } : {};
    this.#cluster.setSpec(this.#name, { template, ...paused }, { manager });
  }
}
