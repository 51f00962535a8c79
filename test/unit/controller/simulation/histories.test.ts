import fc from "fast-check";
import { expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { numRuns } from "../../../support/num-runs.ts";
import { type Fault, LOST_ANSWER, refusal } from "../../../support/simulation/cluster.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SERVICES = [1, 2, 3];
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Three services and their current faults. */
class Scenario {
  readonly simulation: Simulation;
  readonly pipes: readonly { readonly name: string; readonly service: number }[];
  readonly refused = new Set<string>();
  readonly isClockAhead: boolean;
  /** Duration in ms of each pipe's rollouts: by default a second, `undefined` if they never complete. */
  readonly rolloutMs = new Map<string, number | undefined>();
  /** The faults of the next calls, in order. */
  faults: Fault[] = [];

  constructor(mostRollouts: number, pipesOfService: number, skewMs: number) {
    this.simulation = new Simulation({ mostRollouts, skewMs });
    this.isClockAhead = skewMs > 0;
    const { cluster } = this.simulation;
    cluster.rolloutMs = ({ metadata: { name } }) =>
      this.rolloutMs.has(name) ? this.rolloutMs.get(name) : 1000;
    cluster.fault = (_, pipe) => {
      if (pipe && this.refused.has(pipe.metadata.name)) return refusal("not here");
      return this.faults.shift();
    };
    this.pipes = SERVICES.flatMap((service) =>
      Array.from({ length: pipesOfService }, (__, index) => ({ name: `pipe-${service}-${index}`, service })),
    );
    for (const service of SERVICES) this.simulation.addService(service);
    for (const { name, service } of this.pipes) this.simulation.deploy(name, service, { cores: 2 });
  }

  /** Ends all faults and requests the same size for all services. */
  async heal(cores: number): Promise<void> {
    const { simulation, pipes } = this;
    this.refused.clear();
    this.rolloutMs.clear();
    this.faults = [];
    simulation.setTier("basic");
    await simulation.run(5 * MINUTE);
    for (const { name } of pipes) {
      simulation.cluster.report(name, { terminatingReplicas: 0 });
      simulation.setImage(name, "healthy");
    }
    for (const service of SERVICES) {
      simulation.suspend(service, false);
      simulation.endBoost(service);
      simulation.requestSize(service, cores);
      // A clock that is ahead dates the failure after the request. The real controller follows the clock of the API server.
      simulation.askToRetry(service, this.isClockAhead ? HOUR : 0);
    }
  }
}

type Act<T> = (scenario: Scenario, value: T, pipe: Scenario["pipes"][number]) => void;

/** One random step of a history, and the time until the next step. */
function step<T>(name: string, values: fc.Arbitrary<T>, act: Act<T>, weight = 1) {
  const waits = fc.oneof(fc.nat(100), fc.nat(5000), fc.nat(200_000), fc.nat(HOUR));
  const arbitrary = fc.tuple(fc.nat(14), values, waits).map(([at, value, waitMs]) => ({
    [fc.toStringMethod]: () => `${name}(pipe ${at}, ${JSON.stringify(value)}), ${waitMs} ms`,
    waitMs,
    act(scenario: Scenario) {
      const pipe = scenario.pipes[at % scenario.pipes.length];
      // A deleted PipeScaling is re-created after a grace period.
      if (pipe && scenario.simulation.hasScaling(pipe.service)) act(scenario, value, pipe);
    },
  }));
  return { arbitrary, weight };
}

const cores = fc.constantFrom(1, 2, 4, 8);
const serverError = (code: number) => ({ error: new KubeApiError("PATCH", code, "{}") });

const steps = fc.oneof(
  step(
    "request a size",
    cores,
    ({ simulation }, value, { service }) => simulation.requestSize(service, value),
    4,
  ),
  step(
    "boost",
    fc.tuple(cores, fc.constantFrom(0, 30_000, HOUR, 5 * HOUR)),
    ({ simulation }, [value, ms], { service }) => simulation.boost(service, value, ms),
  ),
  step("suspend", fc.boolean(), ({ simulation, isClockAhead }, isOn, { service }) => {
    // While a service is suspended, nothing records that a rollout completed. If its owner changes the pipe then, only the
    // time of the API server shows when that rollout started. The real controller follows that clock.
    if (!isClockAhead) simulation.suspend(service, isOn);
  }),
  step("set the tier", fc.constantFrom("basic", "scale"), ({ simulation }, tier) => simulation.setTier(tier)),
  step("request a retry", fc.integer({ min: -HOUR, max: HOUR }), ({ simulation }, inMs, { service }) =>
    simulation.askToRetry(service, inMs),
  ),
  step("delete the PipeScaling", fc.constant(undefined), ({ simulation }, _, { service }) =>
    simulation.removeScaling(service),
  ),
  step(
    "delete the PipeScaling while the controller is stopped",
    fc.constant(undefined),
    ({ simulation }, _, { service }) => {
      simulation.stop();
      simulation.removeScaling(service);
      simulation.start();
    },
  ),
  step("remove the annotation", fc.constant(undefined), ({ simulation, isClockAhead }, _, { name }) => {
    // Without it, only the time of the API server shows when a rollout started. The real controller follows that clock.
    if (!isClockAhead) simulation.cluster.removeAnnotation(name);
  }),
  step(
    "scale",
    fc.nat(3),
    ({ simulation }, replicas, { name }) => simulation.cluster.change(name, { replicas }),
    2,
  ),
  step(
    "set the image",
    fc.nat(9),
    ({ simulation }, tag, { name }) => simulation.setImage(name, `image:${tag}`),
    2,
  ),
  step("take the size", cores, ({ simulation }, value, { name }) => {
    const amounts = { cpu: `${value}`, memory: `${value * 4}Gi` };
    simulation.setResources(name, { requests: amounts, limits: { memory: amounts.memory } });
  }),
  step("replace", cores, ({ simulation }, value, { name, service }) => {
    simulation.cluster.remove(name);
    simulation.deploy(name, service, { cores: value });
  }),
  step("put a manifest", cores, ({ simulation }, value, { name, service }) => {
    simulation.replace(
      name,
      pipeDeployment({ name, namespace: "pipes", serviceId: `${service}`, cores: value }),
    );
  }),
  step("undo", fc.constant(undefined), ({ simulation }, _, { name }) => simulation.undo(name)),
  step("pods end", fc.nat(1), ({ simulation }, terminatingReplicas, { name }) =>
    simulation.cluster.report(name, { terminatingReplicas }),
  ),
  step("refuse", fc.boolean(), ({ refused }, isOn, { name }) => {
    if (isOn) refused.add(name);
    else refused.delete(name);
  }),
  step(
    "rollouts take",
    fc.option(fc.integer({ min: 1, max: 200_000 }), { nil: undefined }),
    ({ rolloutMs }, ms, { name }) => rolloutMs.set(name, ms),
    2,
  ),
  step("lose responses", fc.array(fc.boolean(), { maxLength: 4 }), (scenario, lost) => {
    scenario.faults = lost.map((isLost) => (isLost ? LOST_ANSWER : undefined));
  }),
  step("fail", fc.array(fc.constantFrom(409, 500), { maxLength: 4 }), (scenario, codes) => {
    scenario.faults = codes.map(serverError);
  }),
  step("restart the controller", fc.constant(undefined), ({ simulation }) => simulation.start()),
);

// After a failure, shrinking the counterexample takes minutes.
it("in every history, no pipe that has run a size is rolled back, no limit is exceeded, and every pipe converges", {
  timeout: 300_000,
}, async () => {
  const histories = fc.record({
    mostRollouts: fc.constantFrom(1, 2, 50),
    pipes: fc.constantFrom(1, 2, 5),
    // The controller's clock is correct, an hour behind, or an hour ahead.
    skewMs: fc.constantFrom(0, -HOUR, HOUR),
    // Events arrive before the response to a write, shortly after it, or after the next reconciliation.
    eventDelayMs: fc.constantFrom(0, 10, 300),
    happens: fc.array(steps, { maxLength: 40, size: "max" }),
  });
  await fc.assert(
    fc.asyncProperty(histories, async ({ mostRollouts, pipes, skewMs, eventDelayMs, happens }) => {
      const scenario = new Scenario(mostRollouts, pipes, skewMs);
      const { simulation } = scenario;
      const { cluster } = simulation;
      cluster.eventDelayMs = eventDelayMs;
      simulation.start();
      await simulation.run(2000);
      for (const each of happens) {
        each.act(scenario);
        await simulation.run(each.waitMs);
      }
      await scenario.heal(4);
      await simulation.run(4 * HOUR);

      const names = scenario.pipes.map(({ name }) => name);
      expect(simulation.sizes(...names)).toEqual(names.map(() => "4000m/16Gi"));
      expect(SERVICES.map((service) => simulation.condition(service)?.reason)).toEqual([
        "Scaled",
        "Scaled",
        "Scaled",
      ]);
      expect(cluster.judge.wronged).toEqual([]);
      expect(cluster.readyJudge.violations).toEqual([]);
      expect(cluster.judge.mostRolling).toBeLessThanOrEqual(mostRollouts);
      expect(cluster.judge.mostRollingInService).toBeLessThanOrEqual(3);
      const written = cluster.writes.length;
      await simulation.run(DAY);
      expect(cluster.writes.slice(written)).toEqual([]);
      simulation.stop();
    }),
    { numRuns: numRuns(100) },
  );
});
