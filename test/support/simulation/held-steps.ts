import { expect } from "vitest";
import type { FallbackReason } from "../../../src/crd/fallback-reasons.ts";
import { sizeOfQuantities } from "../../../src/domain/quantity.ts";
import { formatSize, sizeOfCores } from "../../../src/domain/size.ts";
import type { Container, Deployment, Pod, ReplicaSet } from "../../../src/kube/objects.ts";
import type { Step } from "../in-place-steps.ts";
import type { Fault, SimulatedCluster } from "./cluster.ts";
import { Scenario } from "./in-place-scenario.ts";
import { type Moment, StepRequests } from "./moments.ts";
import type { Simulation } from "./simulation.ts";
import type { SimulatedWorkloads } from "./workloads.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const PIPE = "pipe";

/** A pipe with two pods on the simulated cluster. Something happens at a step of its resize in place. */
export class HeldPipe {
  readonly simulation: Simulation;
  readonly cluster: SimulatedCluster;
  readonly workloads: SimulatedWorkloads;
  /** UIDs of the pods before the resize. */
  before: readonly string[] = [];
  readonly #scenario: Scenario;

  private constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.simulation = scenario.simulation;
    this.cluster = scenario.simulation.cluster;
    this.workloads = scenario.workloads;
  }

  /** Resolves when both pods run with one core. */
  static async start(): Promise<HeldPipe> {
    const scenario = new Scenario(2, {}, [PIPE]);
    await scenario.start();
    const pipe = new HeldPipe(scenario);
    pipe.before = pipe.uids();
    return pipe;
  }

  /** Requests a size, lets something happen at a step, and gives the resize five minutes. */
  async resize(cores: number, moment: Moment, act: () => void): Promise<void> {
    let isReached = false;
    this.cluster.eventDelayMs = moment.watchMs;
    this.at(moment, () => {
      isReached = true;
      act();
    });
    await this.request(cores);
    expect(isReached, `the resize reaches the ${moment.step}`).toBe(true);
  }

  /** Requests a size, and gives the resize five minutes, by default. */
  async request(cores: number, runMs = 5 * MINUTE): Promise<void> {
    this.simulation.requestSize(1, cores);
    await this.run(runMs);
  }

  run(ms: number): Promise<void> {
    return this.simulation.run(ms);
  }

  /** Calls `act` while the first such request is on its way. */
  at(
    { step, delayMs }: { readonly step: Step | "rollout"; readonly delayMs: number },
    act: () => void,
  ): void {
    const { cluster } = this;
    const steps = new StepRequests();
    const { latencyMs } = cluster;
    cluster.latencyMs = (request) => {
      if (steps.next(request) !== step) return latencyMs(request);
      cluster.latencyMs = latencyMs;
      cluster.clock.after(1, act);
      return delayMs;
    };
  }

  /** Calls `act` when the first such request has reached the API server, which then applies it. */
  onArrival(step: Step | "rollout", act: () => void): void {
    const { cluster } = this;
    const steps = new StepRequests();
    cluster.fault = (request) => {
      if (steps.next(request) !== step) return undefined;
      cluster.fault = () => undefined;
      act();
      return undefined;
    };
  }

  /** The first requests of a step fail. Returns how many have failed so far. */
  failAt(step: Step, faults: readonly Fault[]): { readonly failed: number } {
    return this.#fail(step, (failed) => faults[failed]);
  }

  /** Every request of a step fails. Returns how many have failed so far. */
  failAlwaysAt(step: Step, fault: Fault): { readonly failed: number } {
    return this.#fail(step, () => fault);
  }

  #fail(step: Step, faultOf: (failed: number) => Fault): { readonly failed: number } {
    const steps = new StepRequests();
    const requests = { failed: 0 };
    this.cluster.fault = (request) => {
      const fault = steps.next(request) === step ? faultOf(requests.failed) : undefined;
      if (fault) requests.failed += 1;
      return fault;
    };
    return requests;
  }

  /** No request fails from now on. */
  heal(): void {
    this.cluster.fault = () => undefined;
  }

  /** The owner patches the Deployment. */
  change(spec: Partial<Record<keyof Deployment["spec"], unknown>>): void {
    this.cluster.change(PIPE, spec);
  }

  setImage(image: string): void {
    this.simulation.setImage(PIPE, image);
  }

  applyPause(): void {
    this.cluster.applyPause(PIPE);
  }

  /** Like `kubectl rollout undo`, which rejects a paused Deployment. @returns false then */
  undo(): boolean {
    if (this.isPaused) return false;
    this.simulation.undo(PIPE);
    return true;
  }

  get deployment(): Deployment {
    const deployment = this.cluster.deployments.get(PIPE);
    if (!deployment) throw new Error("the pipe is gone");
    return deployment;
  }

  get isPaused(): boolean {
    return this.deployment.spec.paused ?? false;
  }

  /** The longest time that the Deployment was paused so far. */
  get longestPauseMs(): number {
    return this.cluster.judge.longestPauseMs;
  }

  /** The size of each pod, as its kubelet reports it. */
  podSizes(): readonly string[] {
    return this.#scenario.podSizes();
  }

  /** The size in the spec of each pod. */
  wantedSizes(): readonly string[] {
    return this.pods().flatMap(({ spec }) => spec.containers.map(sizeOf));
  }

  /** The pods that have not ended and are not being deleted. */
  pods(): readonly Pod[] {
    return this.#scenario.pods(PIPE);
  }

  uids(): readonly string[] {
    return this.pods().map(({ metadata }) => metadata.uid);
  }

  /** UIDs of the pods that were there before the resize. */
  kept(): readonly string[] {
    return this.uids().filter((uid) => this.before.includes(uid));
  }

  /** In the order in which the pods are resized. */
  podNames(): readonly string[] {
    return this.pods().map(({ metadata }) => metadata.name);
  }

  replicaSets(): readonly ReplicaSet[] {
    return this.workloads.replicaSetsOf(this.deployment.metadata.uid);
  }

  /** Expects that the status, the template and all pods of the pipe have the size. */
  expectSettled(cores: number, replicas = 2): void {
    const { simulation, deployment } = this;
    const size = formatSize(sizeOfCores(cores));
    const status = simulation.status(1);
    const ready = status.conditions?.find(({ type }) => type === "Ready");
    expect(ready?.status, ready?.message).toBe("True");
    expect(status.observedGeneration).toBe(simulation.generation(1));
    const template = deployment.spec.template.spec.containers.map(sizeOf);
    const pods = this.pods().map(({ spec, status: { containerStatuses } = {} }) => ({
      wanted: spec.containers.map(sizeOf),
      actual: containerStatuses?.map(sizeOf),
    }));
    expect({ template, pods, isPaused: this.isPaused }).toEqual({
      ...{ template: [size], isPaused: false },
      pods: Array.from({ length: replicas }, () => ({ wanted: [size], actual: [size] })),
    });
  }

  /** Expects the original pods and ReplicaSet, that no container restarted, and that the status says so. */
  expectNoRestart(): void {
    const restarts = this.pods().map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
    expect({ uids: this.uids(), restarts }).toEqual({
      uids: this.before,
      restarts: this.before.map(() => 0),
    });
    expect(this.replicaSets()).toHaveLength(1);
    expect(this.simulation.fallbacks).toEqual([]);
    expect(this.simulation.status(1).pipes?.resizedBy?.[PIPE]).not.toBe("Rollout");
  }

  /** Expects that all pods were replaced, and that the status says why. */
  expectFallback(reason: FallbackReason, message = ""): void {
    expect(this.kept()).toEqual([]);
    const { pipes } = this.simulation.status(1);
    expect(pipes).toMatchObject({
      resizedBy: { [PIPE]: "Rollout" },
      fallbacks: [{ pipe: PIPE, reason, message: expect.stringContaining(message) }],
    });
    expect(pipes).not.toHaveProperty("inPlace");
    expect(this.simulation.fallbacks).toEqual([`${PIPE} ${reason}`]);
  }
}

/** The size in the requests of a container, or of its status. */
function sizeOf({ resources }: { readonly resources?: Container["resources"] | undefined }): string {
  const { requests = {} } = resources ?? {};
  const size = sizeOfQuantities(requests["cpu"], requests["memory"]);
  return size ? formatSize(size) : "none";
}
