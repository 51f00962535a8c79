import { describe, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { sampleOf } from "../../../support/num-runs.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { expectSamePods, expectTruth } from "../../../support/simulation/truth.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const NO_LABELS = { [SERVICE_LABEL]: null, [TYPE_LABEL]: null };
const LABELS = { [SERVICE_LABEL]: idOf(1), [TYPE_LABEL]: "database" };

interface Operation {
  readonly what: string;
  /** Happens before the resize. */
  prepare?(pipe: HeldPipe): void;
  /** Happens during the resize. */
  act(pipe: HeldPipe): void;
  /** Happens later, together with the request for the first size. */
  later?(pipe: HeldPipe): void;
  /** Rollouts are demanded, or the pipe belongs to a service that its pods do not name. */
  readonly mayReplacePods?: boolean;
  /** The service that the pipe belongs to at the end. */
  readonly service?: number;
}

const nothing = () => undefined;

const OPERATIONS: readonly Operation[] = [
  { what: "nothing else happens", act: nothing },
  { what: "a second size is requested", act: ({ simulation }) => simulation.requestSize(1, 4) },
  {
    what: "the strategy becomes Rollout",
    act: ({ simulation }) => simulation.setStrategy(1, "Rollout"),
    mayReplacePods: true,
  },
  {
    what: "the strategy becomes Rollout and InPlaceOrRollout again",
    act: ({ simulation }) => simulation.setStrategy(1, "Rollout"),
    later: ({ simulation }) => simulation.setStrategy(1, "InPlaceOrRollout"),
    mayReplacePods: true,
  },
  {
    what: "the controller gets the setting Rollout",
    act: ({ simulation }) => simulation.start("Rollout"),
    mayReplacePods: true,
  },
  {
    what: "the pipe moves to a service of the first size",
    prepare: ({ simulation }) => {
      simulation.addService(2);
      simulation.deploy("other", 2);
    },
    act: ({ simulation }) => simulation.move("pipe", 2),
    service: 2,
    mayReplacePods: true,
  },
  {
    what: "the pipe moves to another service and back",
    act: ({ simulation }) => {
      simulation.addService(2);
      simulation.move("pipe", 2);
    },
    later: ({ simulation }) => simulation.move("pipe", 1),
    mayReplacePods: true,
  },
  { what: "the PipeScaling is replaced", act: ({ simulation }) => simulation.replaceScaling(1) },
  { what: "the status is emptied", act: ({ simulation }) => simulation.emptyStatus(1) },
  { what: "the controller is killed and starts again", act: ({ simulation }) => simulation.start() },
  {
    what: "the controller is away for a while",
    act: ({ simulation }) => simulation.stop(),
    later: ({ simulation }) => simulation.start(),
  },
  {
    what: "the controller is killed, and the status is emptied",
    act: ({ simulation }) => {
      simulation.emptyStatus(1);
      simulation.start();
    },
  },
  {
    what: "the service is suspended and resumed",
    act: ({ simulation }) => simulation.suspend(1, true),
    later: ({ simulation }) => simulation.suspend(1, false),
  },
  { what: "managedFields are reset", act: ({ cluster }) => cluster.resetManagedFields("pipe") },
  {
    what: "the labels are removed and set again",
    act: ({ cluster }) => cluster.setLabels("pipe", NO_LABELS),
    later: ({ cluster }) => cluster.setLabels("pipe", LABELS),
  },
  { what: "a retry is requested", act: ({ simulation }) => simulation.askToRetry(1) },
  { what: "the annotation is removed", act: ({ cluster }) => cluster.removeAnnotation("pipe") },
];

const DELAYS: readonly [string, number][] = [
  ["at once", 0],
  ["after 3 s", 3 * SECOND],
];

const CASES = WINDOWS.flatMap(({ when, reach }) =>
  DELAYS.flatMap(([delay, delayMs]) =>
    OPERATIONS.map((operation) => ({ when, reach, delay, delayMs, operation, what: operation.what })),
  ),
);

it.each(sampleOf(CASES))(
  "$when of a resize in place, the first size requested again $delay is reported only once every pod and the template have it, if $what",
  async ({ reach, delayMs, operation }) => {
    const { prepare = nothing, act, later = nothing, mayReplacePods = false, service = 1 } = operation;
    const pipe = await HeldPipe.start();
    const { simulation, cluster } = pipe;
    simulation.requestSize(1, 1);
    prepare(pipe);
    await pipe.run(5 * SECOND);
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      act(pipe);
      cluster.clock.after(delayMs, () => {
        later(pipe);
        simulation.requestSize(1, 1);
      });
    });
    await pipe.request(2, 15 * MINUTE);
    expect(isReached).toBe(true);
    expectTruth(pipe, 1, service);
    if (!mayReplacePods) expectSamePods(pipe);
  },
);

describe.each(WINDOWS)("$when of a resize in place", ({ reach }) => {
  it("an emptied status changes nothing", async () => {
    const pipe = await HeldPipe.start();
    reach(pipe, () => pipe.simulation.emptyStatus(1));
    await pipe.request(2);
    expectTruth(pipe, 2);
    expectSamePods(pipe);
  });
});
