import { describe, expect, it } from "vitest";
import { KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { LOST_ANSWER } from "../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { targetOf } from "../../../support/simulation/selectors.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

const amounts = (cores: number) => ({
  requests: { cpu: `${cores}`, memory: `${4 * cores}Gi` },
  limits: { memory: `${4 * cores}Gi` },
});

/** The number of Events with each reason, after the first ones. */
function reasonsIn(
  { simulation }: Pick<HeldPipe, "simulation">,
  known = 0,
): Readonly<Record<string, number>> {
  const groups = Object.groupBy(simulation.events.slice(known), ({ reason }) => reason);
  return Object.fromEntries(Object.entries(groups).map(([reason, all = []]) => [reason, all.length]));
}

describe("the Event of a resize in place", () => {
  it("is not recorded again when a startup booster has returned a pod to its size, nor by the next controller", async () => {
    const pipe = await HeldPipe.start({ toleratedResizers: ["boost"] });
    await pipe.request(2, MINUTE);
    expect(reasonsIn(pipe)["ResizedInPlace"]).toBe(1);
    const [name = ""] = pipe.podNames();
    for (const isRestarted of [false, true]) {
      pipe.workloads.resizePod(name, amounts(6), { manager: "boost" });
      await pipe.run(SECOND);
      expect(pipe.simulation.status(1).pipes).not.toHaveProperty("resizedBy");
      if (isRestarted) pipe.simulation.start();
      await pipe.run(5 * SECOND);
      pipe.workloads.resizePod(name, amounts(2), { manager: "boost" });
      await pipe.run(5 * SECOND);
      pipe.expectSettled(2);
      expect(pipe.simulation.status(1).pipes).toHaveProperty("resizedBy");
    }
    expect(reasonsIn(pipe)["ResizedInPlace"]).toBe(1);
  });

  it("is not recorded again when the controller has resized a pod back", async () => {
    const pipe = await HeldPipe.start();
    await pipe.request(2);
    const [name = ""] = pipe.podNames();
    pipe.workloads.resizePod(name, amounts(6), { manager: "right-sizer" });
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
    expect(reasonsIn(pipe)["ResizedInPlace"]).toBe(1);
  });

  it("is recorded again for another size, and for the same one after that", async () => {
    const pipe = await HeldPipe.start();
    for (const cores of [2, 4, 2]) await pipe.request(cores);
    expect(reasonsIn(pipe)["ResizedInPlace"]).toBe(3);
  });

  it("is not recorded again by the next controller after another writer has emptied the status", async () => {
    const pipe = await HeldPipe.start();
    await pipe.request(2);
    pipe.simulation.start();
    await pipe.run(MINUTE);
    pipe.simulation.emptyStatus(1);
    await pipe.run(MINUTE);
    pipe.expectSettled(2);
    expect(reasonsIn(pipe)["ResizedInPlace"]).toBe(1);
  });
});

it.each<[string, (pipe: HeldPipe) => void]>([
  ["is resized in place", () => undefined],
  [
    "falls back to a rollout",
    ({ workloads }) => {
      workloads.outcome = () => "Infeasible";
    },
  ],
])("an emptied status causes no Event after a pipe %s", async (_, prepare) => {
  const pipe = await HeldPipe.start();
  prepare(pipe);
  await pipe.request(2);
  const known = pipe.simulation.events.length;
  expect(known).toBeGreaterThan(1);
  for (let times = 0; times < 3; times += 1) {
    pipe.simulation.emptyStatus(1);
    await pipe.run(2 * MINUTE);
  }
  expect(pipe.simulation.status(1).pipes).toMatchObject({ updated: 1 });
  expect(reasonsIn(pipe, known)).toEqual({});
});

describe("the Events of a rescale", () => {
  const eventsWith = async (fault: (group: PipeGroup) => void) => {
    const group = await PipeGroup.start({ pipes: 3, replicas: 2 });
    const known = group.simulation.events.length;
    fault(group);
    group.request(4);
    await group.run(5 * MINUTE);
    group.expectSettled(4);
    return reasonsIn(group, known);
  };
  const EXPECTED = { ResizedInPlace: 3, Scaled: 1 };

  it("are recorded once each", async () => {
    expect(await eventsWith(() => undefined)).toEqual(EXPECTED);
  });

  it.each([0, 20, 200, 3000])(
    "are recorded once each although the response to every write of the status is lost, and the watch is late by %i ms",
    async (eventDelayMs) => {
      const lost = await eventsWith(({ cluster }) => {
        cluster.eventDelayMs = eventDelayMs;
        cluster.fault = (request) =>
          targetOf(request).resource === "pipescalings/status" ? LOST_ANSWER : undefined;
      });
      expect(lost).toEqual(EXPECTED);
    },
  );

  it("are recorded once each if the first writes of each status get no response, and are not stored", async () => {
    let tries = 0;
    const unsent = await eventsWith(({ cluster }) => {
      cluster.fault = (request) => {
        if (targetOf(request).resource !== "pipescalings/status") return undefined;
        tries += 1;
        return tries % 3 === 0 ? undefined : { error: new KubeUnreachableError("cut short") };
      };
    });
    expect(unsent).toEqual(EXPECTED);
  });
});
