import { describe, expect, it } from "vitest";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Longer than any judgment about pods takes, and shorter than a watch may be silent. */
const SILENCE = 170 * SECOND;
const WITHOUT_SURGE = { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };

/** From the next write of the controller to a pod on, the watch of pods is silent. */
function silenceAtResize({ cluster }: PipeGroup): void {
  cluster.onPod.push(({ spec }) => {
    if (spec.containers[0]?.resources?.requests?.["cpu"] === "2000m") cluster.isPodWatchSilent = true;
  });
}

/** A pipe whose pod waits for room on its node, before the watch of pods is silent. */
async function deferred(): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1 });
  group.workloads.outcome = () => "Deferred";
  group.request(2);
  await group.run(30 * SECOND);
  group.cluster.isPodWatchSilent = true;
  return group;
}

/** A pipe that stopped its old pod, and whose new pod has no node, before the watch of pods is silent. */
async function unscheduled(): Promise<PipeGroup> {
  const group = await PipeGroup.start({ pipes: 1, deployment: WITHOUT_SURGE });
  group.simulation.start("Rollout");
  await group.run(5 * SECOND);
  group.workloads.scheduler.capacityMillicores = 1500;
  group.request(2);
  await group.run(5 * SECOND);
  group.cluster.isPodWatchSilent = true;
  return group;
}

/** A pod gets a node from now on, and becomes ready a minute later. */
function makeRoom({ workloads }: PipeGroup): void {
  workloads.scheduler.capacityMillicores = 4000;
  workloads.kubelets.startMs = () => MINUTE;
}

describe("while the watch of pods is silent and the other watches are not", () => {
  it.each([1, 2])("a resize of %i pods that succeeds does not fall back to a rollout", async (replicas) => {
    const group = await PipeGroup.start({ pipes: 1, replicas });
    silenceAtResize(group);
    group.request(2);
    await group.run(6 * MINUTE);
    group.expectSettled(2);
    expect(group.uids()).toEqual(group.before);
    expect(group.workloads.replaced).toEqual([]);
  });

  it("a deferred resize that is granted does not fall back to a rollout", async () => {
    const group = await deferred();
    group.workloads.outcome = () => "Done";
    group.workloads.look();
    await group.run(MINUTE);
    group.expectSettled(2);
    expect(group.uids()).toEqual(group.before);
    expect(group.workloads.replaced).toEqual([]);
  });

  it("a resize that fails falls back to a rollout as soon as otherwise", async () => {
    const group = await deferred();
    await group.run(35 * SECOND);
    expect(group.simulation.fallbacks).toEqual(["pipe-0 Deferred"]);
  });

  it("a rollout that stops old pods first is not rolled back if the new pod got a node", async () => {
    const group = await unscheduled();
    makeRoom(group);
    group.workloads.scheduler.scheduleAll();
    await group.run(SILENCE);
    group.expectSettled(2);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });

  it("a rollout is not rolled back if another pod took the place of one without a node", async () => {
    const group = await unscheduled();
    makeRoom(group);
    for (const { metadata } of group.pods("pipe-0")) group.workloads.evictPod(metadata.name);
    await group.run(SILENCE);
    group.expectSettled(2);
  });

  it("a rollout is rolled back as soon as otherwise if the new pod gets no node", async () => {
    const group = await unscheduled();
    await group.run(20 * SECOND);
    expect(group.simulation.sizes("pipe-0")).toEqual(["1000m/4Gi"]);
  });
});
