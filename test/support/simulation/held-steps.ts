import { expect } from "vitest";
import { SERVICE_LABEL } from "../../../src/controller/names.ts";
import type { FallbackReason } from "../../../src/crd/fallback-reasons.ts";
import { formatSize, sizeOfCores } from "../../../src/domain/size.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Deployment, ReplicaSet } from "../../../src/kube/workloads.ts";
import type { Step } from "../in-place-steps.ts";
import type { Fault, SimulatedCluster } from "./cluster.ts";
import { Scenario, workloadsOf } from "./in-place-scenario.ts";
import { type Moment, StepRequests } from "./moments.ts";
import { sizeOf } from "./ready-judge.ts";
import type { Simulation, SimulationOptions } from "./simulation.ts";
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
  readonly #name: string;

  private constructor(simulation: Simulation, name: string) {
    this.#name = name;
    this.simulation = simulation;
    this.cluster = simulation.cluster;
    this.workloads = workloadsOf(simulation);
  }

  /** A pipe that was deployed before. */
  static of(simulation: Simulation, name: string): HeldPipe {
    return new HeldPipe(simulation, name);
  }

  /** Resolves when both pods run with one core. */
  static async start(options: SimulationOptions = {}): Promise<HeldPipe> {
    const scenario = new Scenario(2, options, [PIPE]);
    await scenario.start();
    const pipe = new HeldPipe(scenario.simulation, PIPE);
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

  /** Calls `act` while the first request of a step is on its way, which takes `delayMs`. */
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

  /** Calls `act` when the first request of a step has reached the API server, which then applies it. */
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
    this.cluster.change(this.#name, spec);
  }

  setImage(image: string): void {
    this.simulation.setImage(this.#name, image);
  }

  applyPause(): void {
    this.cluster.applyPause(this.#name);
  }

  /** Like `kubectl rollout undo`, which rejects a paused Deployment. @returns false if it does */
  undo(): boolean {
    if (this.isPaused) return false;
    this.simulation.undo(this.#name);
    return true;
  }

  get deployment(): Deployment {
    const deployment = this.cluster.deployments.get(this.#name);
    if (!deployment) throw new Error("the pipe is gone");
    return deployment;
  }

  /** The service that the Deployment was created for. */
  get serviceId(): string {
    return this.pods()[0]?.metadata.labels?.[SERVICE_LABEL] ?? "";
  }

  get isPaused(): boolean {
    return this.deployment.spec.paused ?? false;
  }

  /** The longest time that the Deployment was paused so far. */
  get longestPauseMs(): number {
    return this.cluster.judge.longestPauseMs;
  }

  /** Number of writes to the Deployment that the controller tried so far. */
  writesToDeployment(): number {
    const target = `deployments ${this.#name}`;
    return this.cluster.attempts.filter((each) => each.target === target && !each.isDryRun).length;
  }

  templateSize(): string {
    return sizeOf(this.deployment.spec.template.spec.containers[0]);
  }

  /** The size of each pod, as its kubelet reports it. */
  podSizes(): readonly string[] {
    return this.pods().map(({ status }) => sizeOf(status?.containerStatuses?.[0]));
  }

  /** The size in the spec of each pod. */
  wantedSizes(): readonly string[] {
    return this.pods().flatMap(({ spec }) => spec.containers.map(sizeOf));
  }

  /** The pods that have not ended and are not being deleted. */
  pods(): readonly Pod[] {
    return this.workloads.podsOf(this.deployment);
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
    expect(this.cluster.violations).toEqual([]);
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
      template: [size],
      isPaused: false,
      pods: Array.from({ length: replicas }, () => ({ wanted: [size], actual: [size] })),
    });
  }

  /** Expects the original pods and ReplicaSet, that no container restarted, and that the status says so. */
  expectNoRestart(): void {
    const restarts = this.pods().map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
    expect(restarts).toEqual(this.before.map(() => 0));
    this.expectInPlace();
  }

  /** Expects the original pods and ReplicaSet, and that the status says so. A container may have crashed. */
  expectInPlace(): void {
    expect(this.uids()).toEqual(this.before);
    expect(this.replicaSets()).toHaveLength(1);
    expect(this.workloads.replaced).toEqual([]);
    expect(this.simulation.fallbacks).toEqual([]);
    const { resizedBy, fallbacks } = this.simulation.status(1).pipes ?? {};
    expect(resizedBy?.[this.#name]).not.toBe("Rollout");
    expect(fallbacks).toBeUndefined();
  }

  /** Expects that all pods were replaced, and that the status says why. */
  expectFallback(reason: FallbackReason, message = ""): void {
    expect(this.kept()).toEqual([]);
    const { pipes } = this.simulation.status(1);
    expect(pipes).toMatchObject({
      resizedBy: { [this.#name]: "Rollout" },
      fallbacks: [{ pipe: this.#name, reason, message: expect.stringContaining(message) }],
    });
    expect(pipes).not.toHaveProperty("inPlace");
    expect(this.simulation.fallbacks).toEqual([`${this.#name} ${reason}`]);
  }
}
