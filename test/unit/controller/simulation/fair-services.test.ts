import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { MAX_CALL_CONNECTIONS } from "../../../../src/kube/connection.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const CALL_MS = 5;

/** Large services with 300 pipes together, and one with one. Each call needs one of the connections of the controller. */
class LargeServices {
  readonly simulation = new Simulation({ isInPlace: true });
  readonly large: readonly number[];
  readonly small: number;
  /** The webhook for these writes is down: they fail, after 10 s. */
  isHanging: (request: KubeRequest) => boolean = () => false;
  /** When each connection is free again. */
  readonly #freeAtMs = new Array<number>(MAX_CALL_CONNECTIONS).fill(0);

  constructor(count: number) {
    this.large = Array.from({ length: count }, (_, index) => index + 1);
    this.small = count + 1;
  }

  async start(): Promise<void> {
    const { simulation } = this;
    const { cluster } = simulation;
    for (const service of this.large) {
      simulation.addService(service);
      for (let index = 0; index < 300 / this.large.length; index += 1)
        deployResizable(simulation, `large-${service}-${index}`, service);
    }
    simulation.addService(this.small);
    deployResizable(simulation, "small", this.small);
    cluster.latencyMs = (request) => this.#call(this.isHanging(request) ? 10 * SECOND : CALL_MS);
    cluster.fault = (request) =>
      this.isHanging(request) ? { error: new KubeApiError("PATCH", 500, "{}") } : undefined;
    simulation.start();
    await simulation.run(10 * SECOND);
  }

  #call(durationMs: number): number {
    const nowMs = this.simulation.clock.monotonic();
    const first = this.#freeAtMs.indexOf(Math.min(...this.#freeAtMs));
    const endsAtMs = Math.max(nowMs, this.#freeAtMs[first] ?? 0) + durationMs;
    this.#freeAtMs[first] = endsAtMs;
    return endsAtMs - nowMs;
  }
}

describe.each([1, 2, 3])("services with hundreds of pipes: %d", (count) => {
  it("do not delay another one while their webhook does not respond, and take turns among themselves", async () => {
    const services = new LargeServices(count);
    await services.start();
    const { simulation, large, small } = services;
    const sinceMs = simulation.clock.monotonic();
    services.isHanging = ({ path, method }) => method === "PATCH" && path.includes("/deployments/large-");
    for (const service of large) {
      simulation.requestSize(service, 4);
      await simulation.run(SECOND);
    }
    for (const cores of [2, 3, 2, 3, 2, 3]) {
      await simulation.run(10 * SECOND);
      simulation.requestSize(small, cores);
      await simulation.run(5 * SECOND);
      expect(simulation.status(small)).toMatchObject({
        observedGeneration: simulation.generation(small),
        conditions: [{ type: "Ready", status: "True" }],
      });
    }
    // People see what the large services wait for.
    for (const service of large)
      expect(simulation.status(service).observedGeneration).toBe(simulation.generation(service));
    const callsOf = (service: number) =>
      simulation.cluster.attempts.filter(
        ({ atMs, target }) => atMs >= sinceMs && target.startsWith(`deployments large-${service}-`),
      ).length;
    const calls = large.map(callsOf);
    expect(Math.min(...calls)).toBeGreaterThan(Math.max(...calls) / 3);
  });
});

describe("120 services whose webhook does not respond", () => {
  it("do not keep all workers from another service", async () => {
    const simulation = new Simulation({ isInPlace: true });
    const { cluster } = simulation;
    const failing = Array.from({ length: 120 }, (_, index) => index + 2);
    simulation.addService(1);
    deployResizable(simulation, "healthy", 1);
    for (const service of failing) {
      simulation.addService(service);
      deployResizable(simulation, `failing-${service}`, service);
    }
    simulation.start();
    await simulation.run(20 * SECOND);
    const isHanging = ({ path, method }: KubeRequest) =>
      method === "PATCH" && path.includes("/deployments/failing-");
    cluster.latencyMs = (request) => (isHanging(request) ? 10 * SECOND : CALL_MS);
    cluster.fault = (request) =>
      isHanging(request) ? { error: new KubeApiError("PATCH", 500, "{}") } : undefined;
    for (const service of failing) simulation.requestSize(service, 4);
    for (const cores of [2, 3, 2, 3]) {
      simulation.requestSize(1, cores);
      await simulation.run(5 * SECOND);
      expect(simulation.status(1)).toMatchObject({
        observedGeneration: simulation.generation(1),
        conditions: [{ type: "Ready", status: "True" }],
      });
    }
  });
});
