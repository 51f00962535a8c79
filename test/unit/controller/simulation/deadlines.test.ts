import { describe, expect, it } from "vitest";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const ONE = "1000m/4Gi";
const TWO = "2000m/8Gi";
/** For Kubernetes, a rollout then has no deadline. */
const NO_DEADLINE = { progressDeadlineSeconds: 2 ** 31 - 1 };

/** A pipe whose rollouts take this time. */
async function started(
  rolloutMinutes: number,
  deadlines: { readonly progressDeadlineSeconds?: number; readonly minReadySeconds?: number },
): Promise<Simulation> {
  const simulation = new Simulation();
  simulation.addService(1);
  simulation.deploy("pipe", 1, deadlines);
  simulation.cluster.rolloutMs = () => rolloutMinutes * MINUTE;
  simulation.start();
  await simulation.run(5 * SECOND);
  simulation.requestSize(1, 2);
  return simulation;
}

const writesOf = ({ cluster }: Simulation) => cluster.writes.filter((line) => line.startsWith("pipe "));

describe("a rollout that takes longer than the rollout timeout", () => {
  it.each([
    ["progressDeadlineSeconds", 20, { progressDeadlineSeconds: 30 * 60 }],
    [
      "progressDeadlineSeconds and minReadySeconds",
      40,
      { progressDeadlineSeconds: 25 * 60, minReadySeconds: 20 * 60 },
    ],
    ["a progressDeadlineSeconds of two hours", 110, { progressDeadlineSeconds: 120 * 60 }],
  ])("succeeds within the deadline of its owner: %s", async (_, minutes, deadlines) => {
    const simulation = await started(minutes, deadlines);
    await simulation.run((minutes + 1) * MINUTE);
    expect(writesOf(simulation)).toEqual(["pipe noted", "pipe 2000m/8Gi", "pipe noted"]);
    expect(simulation.sizes("pipe")).toEqual([TWO]);
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
  });

  it.each([
    ["the rollout timeout, by default", 15, {}],
    ["the rollout timeout, if the deadline of its owner is shorter", 15, { progressDeadlineSeconds: 5 * 60 }],
    ["the rollout timeout, if its owner sets no deadline", 15, NO_DEADLINE],
    ["a day, if the deadline of its owner is longer", 24 * 60, { progressDeadlineSeconds: 2 ** 31 - 2 }],
    ["the deadline of its owner, if it is longer", 30, { progressDeadlineSeconds: 30 * 60 }],
    [
      "the deadline of its owner and minReadySeconds",
      45,
      { progressDeadlineSeconds: 25 * 60, minReadySeconds: 20 * 60 },
    ],
  ])("is rolled back after %s", async (_, minutes, deadlines) => {
    const simulation = await started(48 * 60, deadlines);
    await simulation.run((minutes - 1) * MINUTE);
    expect(simulation.sizes("pipe")).toEqual([TWO]);
    await simulation.run(2 * MINUTE);
    expect(simulation.sizes("pipe")).toEqual([ONE]);
  });
});

it.each([
  ["25 min", { progressDeadlineSeconds: 25 * 60 }],
  ["none", NO_DEADLINE],
])(
  "pipes whose pods are available only after 20 min get the size by rollouts (deadline: %s)",
  async (_, deadline) => {
    const deployment = { ...deadline, minReadySeconds: 20 * 60 };
    const group = await PipeGroup.start({ pipes: 2, deployment });
    await group.run(21 * MINUTE);
    group.simulation.start("Rollout");
    group.request(2);
    await group.run(90 * MINUTE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0", "pipe-1"]);
  },
);

it("a pipe without a deadline whose new pod does not start returns to its size, and keeps no other pipe waiting", async () => {
  const group = await PipeGroup.start({
    pipes: 1,
    mostRollouts: 1,
    deployment: { strategy: "Recreate", ...NO_DEADLINE },
  });
  const { simulation, workloads } = group;
  simulation.addService(2);
  simulation.deploy("other", 2, { strategy: "Recreate" });
  simulation.start("Rollout");
  await group.run(MINUTE);
  workloads.kubelets.startMs = ({ metadata, spec }) =>
    metadata.name.startsWith("pipe-0") && spec.containers[0]?.resources?.requests?.["cpu"] === "2000m"
      ? undefined
      : SECOND;
  group.request(2);
  await group.run(5 * SECOND);
  simulation.requestSize(2, 2);
  await group.run(14 * MINUTE);
  expect(simulation.sizes("pipe-0", "other")).toEqual([TWO, ONE]);
  await group.run(3 * MINUTE);
  expect(simulation.sizes("pipe-0", "other")).toEqual([ONE, TWO]);
  expect(group.podSizes()).toEqual([ONE]);
});
