import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { MAX_CALL_CONNECTIONS } from "../../../../src/kube/connection.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const CALL_MS = 5;

/** Service 1 has 300 pipes, service 2 has one. Each call needs one of the connections of the controller. */
class TwoServices {
  readonly simulation = new Simulation({ isInPlace: true });
  /** The webhook for these writes is down: they fail, after 10 s. */
  isHanging: (request: KubeRequest) => boolean = () => false;
  /** When each connection is free again. */
  readonly #freeAtMs = new Array<number>(MAX_CALL_CONNECTIONS).fill(0);

  async start(): Promise<void> {
    const { simulation } = this;
    const { cluster } = simulation;
    for (const service of [1, 2]) simulation.addService(service);
    for (let index = 0; index < 300; index += 1) deployResizable(simulation, `large-${index}`, 1);
    deployResizable(simulation, "small", 2);
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

describe("a service with hundreds of pipes", () => {
  it("does not delay another one while its webhook does not respond", async () => {
    const services = new TwoServices();
    await services.start();
    const { simulation } = services;
    services.isHanging = ({ path, method }) => method === "PATCH" && path.includes("/deployments/large-");
    simulation.requestSize(1, 4);
    for (const cores of [2, 3, 2, 3, 2, 3, 2, 3, 2, 3]) {
      await simulation.run(10 * SECOND);
      simulation.requestSize(2, cores);
      await simulation.run(5 * SECOND);
      expect(simulation.status(2)).toMatchObject({
        observedGeneration: simulation.generation(2),
        conditions: [{ type: "Ready", status: "True" }],
      });
    }
    // People see what the large service waits for.
    expect(simulation.status(1).observedGeneration).toBe(simulation.generation(1));
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
