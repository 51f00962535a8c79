import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { Scenario } from "../../../support/simulation/in-place-scenario.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const CONFLICT = { error: new KubeApiError("PATCH", 409, "{}") };

const isDryRun = ({ query }: KubeRequest) => query?.["dryRun"] !== undefined;
const textOf = ({ body }: KubeRequest) => JSON.stringify(body ?? {});

/** Rejects the first such write with a conflict. Returns whether there was one. */
function conflictOnce(simulation: Simulation, isHit: (request: KubeRequest) => boolean): () => boolean {
  let isConflicting = true;
  simulation.cluster.fault = (request) => {
    if (!isConflicting || request.method !== "PATCH" || !isHit(request)) return undefined;
    isConflicting = false;
    return CONFLICT;
  };
  return () => !isConflicting;
}

/** The API server is slow, so that the status is written between the attempts, and during one that takes longer than 5 s. */
const LATENCIES_MS = [3 * SECOND, 7 * SECOND];

type Write = [what: string, isHit: (request: KubeRequest) => boolean];

const WRITES: readonly Write[] = [
  ["of the dry run", (request) => isDryRun(request)],
  ["of the resize of a pod", (request) => request.path.endsWith("/resize") && !isDryRun(request)],
  ["of the pause", (request) => textOf(request).includes('"paused":true') && !isDryRun(request)],
  ["of the end of the pause", (request) => textOf(request).includes('"paused":null')],
];
const ofReplicaSet: Write = ["of the write to the ReplicaSet", ({ path }) => path.includes("/replicasets/")];

/** A Deployment changes all the time, because its controller writes its status. The write is repeated at once. */
describe.each(LATENCIES_MS)("a conflict, with writes that take %i ms,", (latencyMs) => {
  it.each([
    ...WRITES,
    // With slower writes, the commit takes more than 30 s, so it is undone, and that is reported.
    ...(latencyMs < 5 * SECOND ? [ofReplicaSet] : []),
  ])("once, %s in place, is not reported as a failure", async (_what, isHit) => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation } = scenario;
    const events = simulation.events.length;
    simulation.cluster.latencyMs = () => latencyMs;
    const wasHit = conflictOnce(simulation, isHit);
    simulation.requestSize(1, 4);
    await simulation.run(5 * MINUTE);
    expect(wasHit()).toBe(true);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.events.slice(events).filter(({ type }) => type === "Warning")).toEqual([]);
  });

  it("once, of the template in a rollout, is not reported as a failure", async () => {
    const simulation = new Simulation();
    simulation.addService(1);
    simulation.deploy("pipe-a", 1);
    simulation.start();
    await simulation.run(MINUTE);
    simulation.cluster.latencyMs = () => latencyMs;
    const wasHit = conflictOnce(simulation, ({ path }) => path.includes("/deployments/"));
    simulation.requestSize(1, 4);
    await simulation.run(5 * MINUTE);
    expect(wasHit()).toBe(true);
    expect(simulation.condition(1)?.reason).toBe("Scaled");
    expect(simulation.events.filter(({ type }) => type === "Warning")).toEqual([]);
  });

  it("at every attempt is reported with the number of the attempt", async () => {
    const scenario = new Scenario(1);
    await scenario.start();
    const { simulation } = scenario;
    simulation.cluster.latencyMs = () => latencyMs;
    simulation.cluster.fault = ({ path }) => (path.endsWith("/resize") ? CONFLICT : undefined);
    simulation.requestSize(1, 4);
    await simulation.run(2 * MINUTE);
    const [failure] = simulation.status(1).failures ?? [];
    expect(failure).toMatchObject({
      reason: "WriteFailed",
      message: "the object was changed at the same time",
    });
    expect(failure?.attempts).toBeGreaterThan(2);
    expect(simulation.condition(1)?.message).toMatch(/Attempt \d+; the next one is at/);
  });
});
