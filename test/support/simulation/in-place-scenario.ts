import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { sizeOfQuantities } from "../../../src/domain/quantity.ts";
import { formatSize } from "../../../src/domain/size.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { PipeOptions } from "../fixtures/pipe.ts";
import { idOf } from "./inputs.ts";
import type { ResizeOutcome } from "./kubelets.ts";
import { Simulation, type SimulationOptions } from "./simulation.ts";
import type { SimulatedWorkloads } from "./workloads.ts";

const SECOND = 1000;

/** The pipes of a scenario, by default. */
export const PIPES = ["pipe-0", "pipe-1"] as const;

/** A service whose pipes are resized in place, with simulated kubelets. */
export class Scenario {
  readonly simulation: Simulation;
  readonly workloads: SimulatedWorkloads;
  /** Outcomes by pod name; the default outcome is a successful resize. */
  readonly outcomes = new Map<string, ResizeOutcome>();
  /** The last requested size in cores; the default size before the first request. */
  requestedCores = 1;
  readonly #pipes: readonly string[];

  constructor(replicas: number, options: SimulationOptions = {}, pipes: readonly string[] = PIPES) {
    this.#pipes = pipes;
    this.simulation = new Simulation({ ...options, isInPlace: true });
    this.workloads = workloadsOf(this.simulation);
    const { simulation, workloads, outcomes } = this;
    workloads.outcome = ({ metadata }) => outcomes.get(metadata.name) ?? "Done";
    simulation.addService(1);
    for (const name of pipes) deployResizable(simulation, name, 1, replicas);
  }

  async start(): Promise<void> {
    this.simulation.start();
    await this.simulation.run(5 * SECOND);
    this.workloads.replaced.length = 0;
  }

  pods(name: string): Pod[] {
    const deployment = this.simulation.cluster.deployments.get(name);
    return deployment ? this.workloads.podsOf(deployment) : [];
  }

  /** Ends all failures and delays, pauses of owners, and the suspension of the service. */
  heal(): void {
    const { simulation, workloads, outcomes } = this;
    outcomes.clear();
    workloads.look();
    workloads.syncMs = 20;
    simulation.cluster.fault = () => undefined;
    simulation.cluster.latencyMs = () => 5;
    for (const name of this.#pipes) this.resume(name);
    simulation.suspend(1, false);
  }

  requestSize(cores: number): void {
    this.requestedCores = cores;
    this.simulation.requestSize(1, cores);
  }

  resume(name: string): void {
    if (this.simulation.cluster.pipe(name).isPaused) this.simulation.cluster.change(name, { paused: null });
  }

  /** The size of each active pod, as its kubelet reports it. */
  podSizes(): string[] {
    return this.#pipes.flatMap((name) =>
      this.pods(name).map(({ status }) => {
        const { requests = {} } = status?.containerStatuses?.[0]?.resources ?? {};
        const size = sizeOfQuantities(requests["cpu"], requests["memory"]);
        return size ? formatSize(size) : "none";
      }),
    );
  }
}

/** Deploys a pipe whose pods have the labels that a resize in place requires. */
export function deployResizable(
  simulation: Simulation,
  name: string,
  service: number,
  replicas = 1,
  options: Partial<PipeOptions> = {},
): void {
  const podLabels = { [SERVICE_LABEL]: idOf(service), [TYPE_LABEL]: DATABASE_TYPE };
  simulation.deploy(name, service, { replicas, podLabels, ...options });
}

export function workloadsOf({ cluster }: Simulation) {
  if (!cluster.workloads) throw new Error("pods are not simulated");
  return cluster.workloads;
}
