import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { StepRequests } from "../../../support/simulation/moments.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const [ONE, FOUR] = ["1000m/4Gi", "4000m/16Gi"];

/** Lets the next writes to pipes fail. Returns how many have failed so far. */
function failWrites({ cluster }: Simulation, writes: number): { readonly failed: number } {
  const error = new KubeApiError("PATCH", 500, JSON.stringify({ message: "etcd is slow" }));
  const requests = { failed: 0 };
  cluster.fault = ({ method }, pipe) => {
    if (!pipe || method !== "PATCH" || requests.failed === writes) return undefined;
    requests.failed += 1;
    return { error };
  };
  return requests;
}

describe("without a watch event", () => {
  /** A pipe whose rollout has stopped its old pod and never completes, while another size waits for a window. */
  async function abandoned(): Promise<Simulation> {
    const simulation = new Simulation();
    simulation.addService(1, { rolloutWindow: '{schedule: "0 0 * * *", duration: 1h}' });
    simulation.deploy("a", 1, { strategy: "Recreate" });
    simulation.start();
    await simulation.run(59 * MINUTE);
    simulation.cluster.rolloutMs = () => undefined;
    simulation.requestSize(1, 4);
    await simulation.run(5 * MINUTE);
    simulation.requestSize(1, 8);
    await simulation.run(SECOND);
    expect(simulation.sizes("a")).toEqual([FOUR]);
    return simulation;
  }

  it("a failed rollout that stopped the old pods is rolled back at its timeout, even by the next controller", async () => {
    const simulation = await abandoned();
    simulation.start();
    await simulation.run(11 * MINUTE);
    expect(simulation.sizes("a")).toEqual([ONE]);
  });

  it("the rollback of a failed rollout is retried after an error", async () => {
    const simulation = await abandoned();
    const requests = failWrites(simulation, 3);
    await simulation.run(11 * MINUTE);
    expect(requests.failed).toBe(3);
    expect(simulation.sizes("a")).toEqual([ONE]);
  });

  it("the adoption of a pipe is retried after an error", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    simulation.deploy("a", 1);
    const requests = failWrites(simulation, 1);
    simulation.start();
    await simulation.run(MINUTE);
    expect(requests.failed).toBe(1);
    expect(simulation.cluster.writes.filter((write) => write === "a noted")).toHaveLength(1);
  });

  it("a failed write is repeated on time although many services write at once", async () => {
    const services = 200;
    const simulation = new Simulation();
    const { cluster } = simulation;
    for (let service = 1; service <= services; service += 1) {
      simulation.addService(service);
      simulation.deploy(`pipe-${service}`, service);
    }
    const error = new KubeApiError("PATCH", 500, JSON.stringify({ message: "etcd is slow" }));
    const triedAtMs: number[] = [];
    cluster.fault = ({ method }, pipe) => {
      if (method !== "PATCH" || pipe?.metadata.name !== `pipe-${services}`) return undefined;
      triedAtMs.push(cluster.clock.monotonic());
      return triedAtMs.length < 4 ? { error } : undefined;
    };
    simulation.start();
    await simulation.run(MINUTE);
    const delays = triedAtMs.slice(1).map((atMs, index) => atMs - (triedAtMs[index] ?? 0));
    expect(delays.map((ms) => Math.round(ms / SECOND))).toEqual([1, 2, 4]);
  });

  it("a commit ends on time although it is the last one of many", async () => {
    const group = await PipeGroup.start({ pipes: 24 });
    const { cluster, workloads, names } = group;
    // The responses to writes arrive before the events, which then show nothing new.
    cluster.eventDelayMs = 300;
    const steps = new StepRequests();
    let pauses = 0;
    cluster.fault = (request) => {
      if (steps.next(request) === "pause") pauses += 1;
      if (pauses === names.length) workloads.killControllerManager();
      return undefined;
    };
    group.request(4);
    await group.run(2 * MINUTE);
    expect(pauses).toBe(names.length);
    expect(group.paused()).toEqual([]);
    expect(cluster.judge.longestPauseMs).toBeLessThanOrEqual(31 * SECOND);
  });
});
