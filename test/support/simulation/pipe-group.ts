import { expect } from "vitest";
import { formatSize, sizeOfCores } from "../../../src/domain/size.ts";
import { aNode } from "../fixtures/node.ts";
import type { PipeOptions } from "../fixtures/pipe.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { deployResizable, workloadsOf } from "./in-place-scenario.ts";
import { isRunning } from "./pod-status.ts";
import { sizeOf } from "./ready-judge.ts";
import { Simulation, type SimulationOptions } from "./simulation.ts";
import type { SimulatedWorkloads } from "./workloads.ts";

const SECOND = 1000;

interface PipeGroupOptions extends SimulationOptions {
  readonly pipes: number;
  readonly replicas?: number;
  /** Changes of the Deployments. */
  readonly deployment?: Partial<PipeOptions>;
  /** CPU of the only node; by default, every pod has room. */
  readonly nodeCores?: number | undefined;
}

/** The pipes of service 1 on a cluster with simulated pods, judged by the objects of the cluster only. */
export class PipeGroup {
  readonly simulation: Simulation;
  readonly cluster: SimulatedCluster;
  readonly workloads: SimulatedWorkloads;
  readonly names: readonly string[];
  /** UIDs of the pods at the end of `start`. */
  before: readonly string[] = [];

  private constructor({ pipes, replicas = 1, deployment = {}, nodeCores, ...options }: PipeGroupOptions) {
    this.simulation = new Simulation({ ...options, isInPlace: true });
    this.cluster = this.simulation.cluster;
    this.workloads = workloadsOf(this.simulation);
    this.names = Array.from({ length: pipes }, (_, index) => `pipe-${index}`);
    this.simulation.addService(1);
    if (nodeCores !== undefined) {
      this.cluster.nodes = [aNode("node", { cpu: `${nodeCores}`, memory: "1Ti" })];
      this.workloads.scheduler.capacityMillicores = 1000 * nodeCores;
    }
    for (const name of this.names) deployResizable(this.simulation, name, 1, replicas, deployment);
  }

  /** Resolves when all pods run with one core, or with the size of `deployment`. */
  static async start(options: PipeGroupOptions): Promise<PipeGroup> {
    const group = new PipeGroup(options);
    group.simulation.start();
    await group.run(5 * SECOND);
    group.workloads.replaced.length = 0;
    group.before = group.uids();
    return group;
  }

  run(ms: number): Promise<void> {
    return this.simulation.run(ms);
  }

  /**
   * @param stepMs how often this looks; long for what takes hours, because each step takes real time
   * @returns how many milliseconds it took, or `undefined` if it did not happen in time
   */
  async runUntil(isDone: () => boolean, mostMs: number, stepMs = 5): Promise<number | undefined> {
    for (let ms = 0; ms <= mostMs; ms += stepMs) {
      if (isDone()) return ms;
      await this.run(stepMs);
    }
    return undefined;
  }

  request(cores: number): void {
    this.simulation.requestSize(1, cores);
  }

  /** Calls `act` once when all pods of a pipe run with the size, before the controller can see it. */
  whenPodsRun(cores: number, act: (pipe: string) => void): void {
    const size = formatSize(sizeOfCores(cores));
    let isOver = false;
    this.cluster.onPod.push(() => {
      const pipe = this.names.find((name) => this.hasPods(name, size));
      if (isOver || pipe === undefined) return;
      isOver = true;
      act(pipe);
    });
  }

  /** Returns true if the pipe has pods, and all of them run with the size. */
  hasPods(name: string, size: string): boolean {
    const pods = this.pods(name);
    return (
      pods.length > 0 &&
      pods.every((pod) => isRunning(pod) && sizeOf(pod.status?.containerStatuses?.[0]) === size)
    );
  }

  /** Keeps the service busy: changes a label of this Deployment ten times per second. */
  keepBusy(name: string, durationMs: number): void {
    for (let ms = 100; ms <= durationMs; ms += 100) {
      this.cluster.clock.after(ms, () => this.cluster.setLabels(name, { tick: `${ms}` }));
    }
  }

  pods(name: string) {
    const deployment = this.cluster.deployments.get(name);
    return deployment ? this.workloads.podsOf(deployment) : [];
  }

  uids(): readonly string[] {
    return this.names.flatMap((name) => this.pods(name).map(({ metadata }) => metadata.uid));
  }

  /** The sizes of the pods of a pipe, or of all pipes, as their kubelets report them. */
  podSizes(...names: readonly string[]): readonly string[] {
    return (names.length === 0 ? this.names : names).flatMap((name) =>
      this.pods(name).map(({ status }) => sizeOf(status?.containerStatuses?.[0])),
    );
  }

  paused(): readonly string[] {
    return this.names.filter((name) => this.cluster.deployments.get(name)?.spec.paused);
  }

  /** Kubernetes changes the message of a condition of the pods of a pipe. */
  explain(name: string, type: RegExp, message: string): void {
    for (const pod of this.pods(name)) {
      const conditions = (pod.status?.conditions ?? []).map((each) =>
        type.test(each.type) ? { ...each, message } : each,
      );
      this.workloads.scheduler.put({ ...pod, status: { ...pod.status, conditions } }, "status");
    }
  }

  /** The messages of all conditions. */
  messages(service = 1): string {
    return (this.simulation.status(service).conditions ?? []).map(({ message }) => message).join(" ");
  }

  /** Number of writes that the controller tried, without dry runs. @param target such as `pods/resize pipe-0-1-2` */
  attemptsOf(target: string | RegExp, { sinceMs = 0, untilMs = Number.POSITIVE_INFINITY } = {}): number {
    return this.cluster.attempts.filter(
      (each) =>
        each.atMs >= sinceMs &&
        each.atMs < untilMs &&
        !each.isDryRun &&
        (typeof target === "string" ? each.target === target : target.test(each.target)),
    ).length;
  }

  /** The objects with more than 20 writes or dry runs since `sinceMs`, except PipeScalings. */
  busiest(sinceMs = 0): readonly string[] {
    const counts = new Map<string, number>();
    for (const { atMs, target, isDryRun } of this.cluster.attempts) {
      if (atMs < sinceMs || target.startsWith("pipescalings")) continue;
      const key = `${target}${isDryRun ? " (dry run)" : ""}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].filter(([, count]) => count > 20).map(([target, count]) => `${target}: ${count}`);
  }

  /** Expects that every template and pod has the size, that the status says so, and that no judge reported anything. */
  expectSettled(cores: number): void {
    const size = formatSize(sizeOfCores(cores));
    const { conditions, observedGeneration } = this.simulation.status(1);
    const ready = conditions?.find(({ type }) => type === "Ready");
    expect({
      violations: this.cluster.violations,
      pods: this.podSizes().filter((each) => each !== size),
      templates: this.simulation.sizes(...this.names).filter((each) => each !== size),
      paused: this.paused(),
      ready: ready?.status,
      observedGeneration,
      message: ready?.message,
    }).toEqual({
      violations: [],
      pods: [],
      templates: [],
      paused: [],
      ready: "True",
      observedGeneration: this.simulation.generation(1),
      message: expect.anything(),
    });
  }

  /** Expects the original pods, and that no container restarted. */
  expectSamePods(): void {
    expect(this.workloads.replaced).toEqual([]);
    expect(this.uids()).toEqual(this.before);
    const restarts = this.names.flatMap((name) =>
      this.pods(name).map(({ status }) => status?.containerStatuses?.[0]?.restartCount),
    );
    expect(restarts.filter((count) => count !== 0)).toEqual([]);
  }
}
