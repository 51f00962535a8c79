import { describe, expect, it } from "vitest";
import { CONTAINER_ANNOTATION } from "../../../../src/controller/names.ts";
import type { Pod } from "../../../../src/kube/pods.ts";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import type { ResizeOutcome } from "../../../support/simulation/kubelets.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import type { Simulation } from "../../../support/simulation/simulation.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const NAMED = { [CONTAINER_ANNOTATION]: "pipe" };
const WITH_PROXY = { containers: ["pipe", "proxy"], annotations: NAMED, podAnnotations: NAMED };
const OUTCOMES = ["Done", "Deferred", "Infeasible", "Error", "NotObserved"] as const;

/** Another tool resizes the sidecars of all pods from now on, and their kubelets respond in this way. */
function resizeSidecars(simulation: Simulation, outcome: ResizeOutcome): void {
  const workloads = workloadsOf(simulation);
  const cpuOf = ({ spec }: Pod) => spec.containers.find(({ name }) => name === "proxy")?.resources?.requests;
  workloads.outcome = (pod) => (cpuOf(pod)?.["cpu"] === "3" ? outcome : "Done");
  const resources = { requests: { cpu: "3", memory: "4Gi" } };
  for (const name of workloads.pods.keys())
    workloads.resizePod(name, resources, { manager: "vpa-updater" }, "proxy");
}

/** Somebody adds an ephemeral container to all pods. */
function debug(simulation: Simulation): void {
  const workloads = workloadsOf(simulation);
  for (const name of workloads.pods.keys()) workloads.debugPod(name);
}

/** Each status of the condition Ready in this time. */
async function readyDuring(simulation: Simulation, ms: number): Promise<readonly string[]> {
  const seen = new Set<string>();
  for (let atMs = 0; atMs < SECOND; atMs += 10) {
    await simulation.run(10);
    seen.add(simulation.status(1).conditions?.find(({ type }) => type === "Ready")?.status ?? "");
  }
  await simulation.run(ms - SECOND);
  seen.add(simulation.status(1).conditions?.find(({ type }) => type === "Ready")?.status ?? "");
  return [...seen];
}

describe.each(OUTCOMES)("the resize of a sidecar by another tool, with the outcome %s,", (outcome) => {
  it.each([
    ["RollingUpdate", false],
    ["Recreate", false],
    ["Recreate", true],
  ] as const)(
    "leaves a pipe ready that was resized before, with the strategy %s (new controller: %s)",
    async (strategy, isRestarted) => {
      const group = await PipeGroup.start({ pipes: 1, replicas: 2, deployment: { ...WITH_PROXY, strategy } });
      const { simulation } = group;
      group.request(2);
      await group.run(HOUR);
      if (isRestarted) simulation.start();
      await group.run(10 * SECOND);
      resizeSidecars(simulation, outcome);
      expect(await readyDuring(simulation, HOUR)).toEqual(["True"]);
      debug(simulation);
      expect(await readyDuring(simulation, HOUR)).toEqual(["True"]);
      expect(simulation.fallbacks).toEqual([]);
      group.expectSettled(2);
      group.expectSamePods();
    },
  );

  it("causes no rollout of a pipe whose template follows its pods only later", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2, deployment: WITH_PROXY });
    const { simulation, cluster } = group;
    group.whenPodsRun(2, () => cluster.webhooks.down("deployments", 10 * MINUTE));
    group.request(2);
    await group.run(5 * MINUTE);
    expect([...group.podSizes(), ...simulation.sizes("pipe-0")]).toEqual([
      "2000m/8Gi",
      "2000m/8Gi",
      "1000m/4Gi",
    ]);
    resizeSidecars(simulation, outcome);
    await group.run(MINUTE);
    debug(simulation);
    await group.run(20 * MINUTE);
    expect(simulation.fallbacks).toEqual([]);
    group.expectSettled(2);
    group.expectSamePods();
  });

  it("leaves a StatefulSet ready that was resized before", async () => {
    const held = await HeldSet.start(WITH_PROXY);
    const { simulation } = held;
    held.request(2);
    await held.run(HOUR);
    const before = held.uids();
    resizeSidecars(simulation, outcome);
    expect(await readyDuring(simulation, HOUR)).toEqual(["True"]);
    debug(simulation);
    expect(await readyDuring(simulation, HOUR)).toEqual(["True"]);
    expect(simulation.fallbacks).toEqual([]);
    held.expectSettled(2);
    expect(held.uids()).toEqual(before);
  });
});

it("an ephemeral container in a pod that was created with its size, and does not start, is no reason for a rollout", async () => {
  const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
  const { simulation, workloads } = group;
  await group.run(HOUR);
  const [pod] = group.pods("pipe-0");
  workloads.kubelets.startMs = () => 10 * MINUTE;
  workloads.deletePod(pod?.metadata.name ?? "");
  await group.run(MINUTE);
  debug(simulation);
  await group.run(5 * MINUTE);
  expect(simulation.fallbacks).toEqual([]);
  await group.run(10 * MINUTE);
  group.expectSettled(1);
  expect(workloads.replaced).toEqual([]);
});

it("a size that the kubelet does not apply times out although another tool resizes the sidecar every second", async () => {
  const group = await PipeGroup.start({ pipes: 1, deployment: WITH_PROXY });
  const { simulation, workloads, cluster } = group;
  workloads.outcome = () => "Deferred";
  for (let second = 1; second <= 300; second += 1) {
    cluster.clock.after(second * SECOND, () => {
      for (const name of workloads.pods.keys()) {
        const resources = { requests: { cpu: `${100 + second}m`, memory: "4Gi" } };
        workloads.resizePod(name, resources, { manager: "vpa-updater" }, "proxy");
      }
    });
  }
  group.request(2);
  await group.run(90 * SECOND);
  expect(simulation.fallbacks).toEqual(["pipe-0 Deferred"]);
});
