import { describe, expect, it } from "vitest";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;

describe("a pipe without managedFields", () => {
  it("is resized in place, and does not stay paused", async () => {
    const group = await PipeGroup.start({ pipes: 2, replicas: 2 });
    for (const name of group.names) group.cluster.resetManagedFields(name);
    group.request(4);
    await group.run(10 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
    expect(group.cluster.judge.longestPauseMs).toBeLessThan(30 * SECOND);
  });

  it.each([
    ["the controller goes on", false],
    ["the next controller goes on", true],
  ])("does not stay paused although a webhook removes the annotation, and %s", async (_, isRestarted) => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    group.cluster.resetManagedFields("pipe-0");
    group.cluster.isStripping = true;
    group.request(4);
    expect(await group.runUntil(() => group.paused().length > 0, MINUTE)).toBeDefined();
    if (isRestarted) group.simulation.start();
    await group.run(MINUTE);
    expect(group.paused()).toEqual([]);
    group.cluster.isStripping = false;
    group.simulation.askToRetry(1);
    await group.run(10 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
  });

  it("is resized by a rollout if the strategy says so", async () => {
    const group = await PipeGroup.start({ pipes: 2, replicas: 2 });
    group.simulation.setStrategy(1, "Rollout");
    for (const name of group.names) group.cluster.resetManagedFields(name);
    group.request(4);
    await group.run(10 * MINUTE);
    group.expectSettled(4);
    expect(group.workloads.replaced).toEqual(group.names);
  });

  it("stays paused by its owner", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    group.cluster.change("pipe-0", { paused: true });
    group.cluster.resetManagedFields("pipe-0");
    group.request(4);
    await group.run(10 * MINUTE);
    expect(group.paused()).toEqual(["pipe-0"]);
    expect(group.busiest()).toEqual([]);
    group.cluster.change("pipe-0", { paused: null });
    await group.run(10 * MINUTE);
    group.expectSettled(4);
  });

  it("does not repeat an action without end if somebody resumes it during the commit", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    const { cluster, simulation } = group;
    cluster.resetManagedFields("pipe-0");
    group.request(4);
    expect(await group.runUntil(() => group.paused().length > 0, MINUTE)).toBeDefined();
    await group.run(SECOND);
    cluster.change("pipe-0", { paused: null });
    const before = simulation.reconciliations;
    await group.run(10 * MINUTE);
    expect(simulation.reconciliations - before).toBeLessThan(100);
    expect(group.busiest()).toEqual([]);
    group.expectSettled(4);
  });

  it("is resized in place by the next controller", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    group.cluster.resetManagedFields("pipe-0");
    group.simulation.start();
    group.request(4);
    await group.run(10 * MINUTE);
    group.request(2);
    group.simulation.start();
    await group.run(10 * MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
  });
});

describe.each(WINDOWS)("$when of a resize in place", ({ reach }) => {
  it.each([
    ["the controller goes on", false],
    ["the next controller goes on", true],
  ])("managedFields can be reset without a restart, and %s", async (_, isRestarted) => {
    const pipe = await HeldPipe.start();
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      pipe.cluster.resetManagedFields("pipe");
      if (isRestarted) pipe.simulation.start();
    });
    await pipe.request(2, 10 * MINUTE);
    expect(isReached).toBe(true);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
    expect(pipe.longestPauseMs).toBeLessThan(40 * SECOND);
  });
});

it.each([
  [1030, 0],
  [1050, 50],
  [1125, 10],
  [1135, 50],
])(
  "an annotation that kubectl rollout undo restored unchanged after %d and %d ms is taken over, although it has another owner",
  async (replacedMs, undoneMs) => {
    const simulation = new Simulation();
    simulation.addService(1);
    simulation.deploy("pipe", 1, { cores: 2 });
    simulation.cluster.rolloutMs = () => SECOND;
    simulation.start();
    await simulation.run(2 * SECOND);
    simulation.requestSize(1, 4);
    await simulation.run(replacedMs);
    simulation.replace(
      "pipe",
      pipeDeployment({ name: "pipe", namespace: "pipes", serviceId: idOf(1), cores: 1 }),
    );
    await simulation.run(undoneMs);
    simulation.undo("pipe");
    await simulation.run(MINUTE);
    expect(simulation.sizes("pipe")).toEqual(["4000m/16Gi"]);
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
    // The next controller counts it, too.
    simulation.start();
    await simulation.run(MINUTE);
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
  },
);
