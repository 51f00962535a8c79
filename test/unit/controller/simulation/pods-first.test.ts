import { describe, expect, it } from "vitest";
import { deployResizable, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { isRunning } from "../../../support/simulation/pod-status.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const FOUR = "4000m/16Gi";
const MOST_COMMITS = 6;
/** The second half of the services gets its requests later. */
const LATER_MS = 5000;

/** Services of three pipes that all get the same size at once. */
class Fleet {
  readonly simulation = new Simulation({ isInPlace: true });
  readonly workloads = workloadsOf(this.simulation);
  /** When the last pod of each pipe ran the size, and when its template had it, in ms since the request. */
  readonly podsMs = new Map<string, number>();
  readonly templatesMs = new Map<string, number>();
  mostPaused = 0;
  readonly #services: number;

  constructor(services: number) {
    this.#services = services;
    for (let service = 1; service <= services; service += 1) {
      this.simulation.addService(service);
      for (const index of [0, 1, 2]) deployResizable(this.simulation, `pipe-${service}-${index}`, service);
    }
  }

  async rescale(): Promise<void> {
    const { simulation } = this;
    const { cluster, clock } = simulation;
    simulation.start();
    await simulation.run(20 * SECOND);
    this.workloads.replaced.length = 0;
    // A commit takes about a second.
    this.workloads.syncMs = 200;
    const beganMs = clock.monotonic();
    cluster.onPod.push((pod) => {
      const isDone = isRunning(pod) && sizeOf(pod.status?.containerStatuses?.[0]) === FOUR;
      const pipe = /^pipe-\d+-\d/.exec(pod.metadata.name)?.[0] ?? "";
      if (isDone && !this.podsMs.has(pipe)) this.podsMs.set(pipe, clock.monotonic() - beganMs);
    });
    const paused = new Set<string>();
    cluster.onDeployment.push(({ metadata: { name }, spec }) => {
      if (spec.paused) paused.add(name);
      else paused.delete(name);
      this.mostPaused = Math.max(this.mostPaused, paused.size);
      const isDone = !spec.paused && sizeOf(spec.template.spec.containers[0]) === FOUR;
      if (isDone && !this.templatesMs.has(name)) this.templatesMs.set(name, clock.monotonic() - beganMs);
    });
    const half = this.#services / 2;
    for (let service = 1; service <= half; service += 1) simulation.requestSize(service, 4);
    await simulation.run(LATER_MS);
    for (let service = half + 1; service <= this.#services; service += 1) simulation.requestSize(service, 4);
    await simulation.run(10 * MINUTE);
  }
}

/** The times of the pipes of these services, in order. */
function timesOf(times: ReadonlyMap<string, number>, first: number, last: number): number[] {
  const isOfThese = (name: string) => {
    const service = Number(name.split("-")[1]);
    return service >= first && service <= last;
  };
  return [...times].flatMap(([name, ms]) => (isOfThese(name) ? [ms] : [])).toSorted((a, b) => a - b);
}

describe("a rescale of 300 pipes in 100 services", () => {
  it("gives the pods their size within seconds, and the templates theirs a few at a time, first come, first served", async () => {
    const fleet = new Fleet(100);
    await fleet.rescale();
    const { simulation, podsMs, templatesMs, mostPaused, workloads } = fleet;
    const halves = [timesOf(podsMs, 1, 50), timesOf(podsMs, 51, 100).map((ms) => ms - LATER_MS)];
    for (const pods of halves) {
      expect(pods).toHaveLength(150);
      expect(pods[75]).toBeLessThan(2 * SECOND);
      expect(pods.at(-1)).toBeLessThan(6 * SECOND);
    }
    expect(mostPaused).toBeLessThanOrEqual(MOST_COMMITS);
    const [first, second] = [timesOf(templatesMs, 1, 50), timesOf(templatesMs, 51, 100)];
    expect([first.length, second.length]).toEqual([150, 150]);
    // Six commits overlap.
    expect(first.at(-1) ?? 0).toBeLessThan((second[0] ?? 0) + 2 * SECOND);
    expect(workloads.replaced).toEqual([]);
    expect(simulation.cluster.readyJudge.violations).toEqual([]);
    for (const service of [1, 50, 100])
      expect(simulation.condition(service)).toMatchObject({ type: "Ready", status: "True" });
  });
});

describe("pipes whose pods all run the size", () => {
  it("count as updated while their templates wait, and the service is not Ready", async () => {
    const group = await PipeGroup.start({ pipes: 10 });
    group.workloads.killControllerManager();
    group.request(4);
    await group.run(10 * SECOND);
    expect(new Set(group.podSizes())).toEqual(new Set([FOUR]));
    const { pipes, conditions } = group.simulation.status(1);
    expect(pipes).toMatchObject({ total: 10, updated: 10 });
    expect(conditions?.find(({ type }) => type === "Ready")?.status).not.toBe("True");
    group.workloads.startControllerManager();
    await group.run(10 * MINUTE);
    group.expectSettled(4);
  });

  it("never get the template of a size that was superseded before their commit", async () => {
    const group = await PipeGroup.start({ pipes: 20 });
    const { cluster, workloads } = group;
    // Each commit takes seconds, so most of them wait.
    workloads.syncMs = 2 * SECOND;
    group.request(4);
    expect(
      await group.runUntil(() => group.podSizes().every((size) => size === FOUR), 5 * MINUTE),
    ).toBeDefined();
    const begun = new Set([
      ...group.paused(),
      ...group.names.filter((name) => cluster.sizeOf(name) === FOUR),
    ]);
    group.request(2);
    workloads.syncMs = 20;
    const late = new Set<string>();
    cluster.onDeployment.push(({ metadata: { name }, spec }) => {
      if (sizeOf(spec.template.spec.containers[0]) === FOUR && !begun.has(name)) late.add(name);
    });
    await group.run(10 * MINUTE);
    expect(begun.size).toBeLessThan(20);
    expect([...late]).toEqual([]);
    group.expectSettled(2);
    group.expectSamePods();
  });

  it("of several services share the limit of commits", async () => {
    const group = await PipeGroup.start({ pipes: 8 });
    const { simulation, workloads } = group;
    simulation.addService(2);
    const others = Array.from({ length: 8 }, (_, index) => `other-${index}`);
    for (const name of others) deployResizable(simulation, name, 2);
    await group.run(10 * SECOND);
    workloads.syncMs = 500;
    group.request(4);
    simulation.requestSize(2, 4);
    let most = 0;
    const paused = new Set<string>();
    group.cluster.onDeployment.push(({ metadata: { name }, spec }) => {
      if (spec.paused) paused.add(name);
      else paused.delete(name);
      most = Math.max(most, paused.size);
    });
    await group.run(5 * MINUTE);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(MOST_COMMITS);
    expect(simulation.hasScaling(2), idOf(2)).toBe(true);
    expect(new Set(simulation.sizes(...group.names, ...others))).toEqual(new Set([FOUR]));
  });
});
