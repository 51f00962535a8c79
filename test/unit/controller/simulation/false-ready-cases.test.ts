import { describe, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { formatSize, sizeOfCores } from "../../../../src/domain/size.ts";
import { amounts } from "../../../support/fixtures/pod.ts";
import { refusal } from "../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { deployResizable, Scenario, workloadsOf } from "../../../support/simulation/in-place-scenario.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import { Simulation } from "../../../support/simulation/simulation.ts";
import { expectSamePods, expectTruth } from "../../../support/simulation/truth.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const NO_LABELS = { [SERVICE_LABEL]: null, [TYPE_LABEL]: null };
const LABELS = { [SERVICE_LABEL]: idOf(1), [TYPE_LABEL]: "database" };

const nothing = () => undefined;

/** A kubelet takes 4 s for each resize. */
function slowDown(pipe: HeldPipe): void {
  const { workloads, cluster } = pipe;
  const doneMs = new Map<string, number>();
  workloads.outcome = ({ metadata: { uid, generation } }) => {
    const key = `${uid} ${generation}`;
    const nowMs = cluster.clock.monotonic();
    if (!doneMs.has(key)) {
      doneMs.set(key, nowMs + 4 * SECOND);
      cluster.clock.after(4 * SECOND, () => workloads.look());
    }
    return nowMs >= (doneMs.get(key) ?? 0) ? "Done" : "NotObserved";
  };
}

describe("a running pipe that gets the labels", () => {
  it("is Ready only with the size of its pods, if its own size is requested while it is resized", async () => {
    const pipe = await HeldPipe.start();
    const { simulation, cluster } = pipe;
    await pipe.request(2);
    cluster.setLabels("pipe", NO_LABELS);
    simulation.requestSize(1, 1);
    await pipe.run(MINUTE);
    slowDown(pipe);
    cluster.setLabels("pipe", LABELS);
    await pipe.run(2 * SECOND);
    simulation.requestSize(1, 2);
    await pipe.run(10 * MINUTE);
    expectTruth(pipe, 2);
    expectSamePods(pipe);
  });

  it.each(WINDOWS)("has the size of its template again if it is requested $when", async ({ reach }) => {
    const simulation = new Simulation({ isInPlace: true });
    const { cluster } = simulation;
    simulation.addService(1);
    deployResizable(simulation, "pipe", 1, 2);
    cluster.setLabels("pipe", NO_LABELS);
    const pipe = HeldPipe.of(simulation, "pipe");
    simulation.start();
    await pipe.run(5 * SECOND);
    pipe.before = pipe.uids();
    cluster.createScaling(idOf(1), { replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
    await pipe.run(5 * SECOND);
    let isReached = false;
    reach(pipe, () => {
      isReached = true;
      simulation.requestSize(1, 1);
    });
    cluster.setLabels("pipe", LABELS);
    await pipe.run(10 * MINUTE);
    expect(isReached).toBe(true);
    expectTruth(pipe, 1);
    expectSamePods(pipe);
  });
});

describe("a resize in place that hangs", () => {
  it.each([
    [
      "its user sets the strategy to Rollout",
      ({ simulation }: HeldPipe) => simulation.setStrategy(1, "Rollout"),
    ],
    ["the controller gets the setting Rollout", ({ simulation }: HeldPipe) => simulation.start("Rollout")],
    ["the PipeScaling is replaced", ({ simulation }: HeldPipe) => simulation.replaceScaling(1)],
    ["the status is emptied", ({ simulation }: HeldPipe) => simulation.emptyStatus(1)],
  ])("does not make the first size Ready before the pods have it, if %s", async (_, act) => {
    const pipe = await HeldPipe.start();
    const { simulation, workloads } = pipe;
    workloads.outcome = () => "Deferred";
    await pipe.request(4, 20 * SECOND);
    act(pipe);
    simulation.requestSize(1, 1);
    await pipe.run(10 * MINUTE);
    expectTruth(pipe, 1);
  });

  it("does not make the first size Ready before the pods have it, if the pipe moves to a service of that size", async () => {
    const pipe = await HeldPipe.start();
    const { simulation, workloads } = pipe;
    simulation.addService(2);
    await pipe.run(5 * SECOND);
    workloads.outcome = () => "Deferred";
    await pipe.request(4, 20 * SECOND);
    simulation.move("pipe", 2);
    await pipe.run(10 * MINUTE);
    expectTruth(pipe, 1, 2);
  });
});

describe("a controller that is killed after the first pod of the canary", () => {
  it.each([
    ["the status is kept", nothing],
    ["the status is emptied", ({ simulation }: Scenario) => simulation.emptyStatus(1)],
  ])("is followed by one that continues with the same canary, if %s", async (_, act) => {
    const scenario = new Scenario(2);
    await scenario.start();
    const { simulation } = scenario;
    const { cluster } = simulation;
    let canary: string | undefined;
    let isFirstOfOther: readonly string[] | undefined;
    const size = formatSize(sizeOfCores(4));
    cluster.fault = ({ path }) => {
      const pod = /\/pods\/(?<pipe>pipe-\d)-.*\/resize$/.exec(path)?.groups?.["pipe"];
      if (pod === undefined) return undefined;
      if (canary === undefined) {
        canary = pod;
        cluster.clock.after(1, () => {
          act(scenario);
          simulation.start();
        });
      } else if (pod !== canary) {
        isFirstOfOther ??= scenario
          .pods(canary)
          .map(({ status }) => status?.containerStatuses?.[0]?.resources?.requests?.["cpu"] ?? "");
      }
      return undefined;
    };
    scenario.requestSize(4);
    await simulation.run(5 * MINUTE);
    expect(isFirstOfOther).toEqual(["4000m", "4000m"]);
    expect(cluster.readyJudge.violations).toEqual([]);
    expect(scenario.podSizes()).toEqual(Array(4).fill(size));
    expect(workloadsOf(simulation).replaced).toEqual([]);
  });

  it.each([
    ["the status is kept", nothing],
    ["the status is emptied", ({ simulation }: Scenario) => simulation.emptyStatus(1)],
  ])(
    "is followed by one that reports the truth although the canary is unhealthy now, if %s",
    async (_, act) => {
      const scenario = new Scenario(2);
      await scenario.start();
      const { simulation } = scenario;
      const { cluster } = simulation;
      let isOver = false;
      cluster.fault = ({ path }) => {
        const name = /\/pods\/(?<name>[^/]+)\/resize$/.exec(path)?.groups?.["name"];
        if (isOver || name === undefined) return undefined;
        isOver = true;
        cluster.clock.after(1, () => {
          const [, pipe = ""] = /^(pipe-\d)/.exec(name) ?? [];
          const other = scenario.pods(pipe).find(({ metadata }) => metadata.name !== name);
          scenario.workloads.crash(other?.metadata.name ?? "", MINUTE);
          act(scenario);
          simulation.start();
        });
        return undefined;
      };
      scenario.requestSize(4);
      await simulation.run(20 * MINUTE);
      expect(isOver).toBe(true);
      expect(cluster.readyJudge.violations).toEqual([]);
      expect(scenario.podSizes()).toEqual(Array(4).fill(formatSize(sizeOfCores(4))));
    },
  );
});

describe("a Recreate Deployment to which its owner gives another size that is requested, while no controller runs", () => {
  it.each([
    ["the controller resized it before, and may not write to it any more", true],
    ["the controller does not see its pods", false],
  ])("is Ready only when a pod has run with it, if %s", async (_, isLabelled) => {
    const simulation = new Simulation({ isInPlace: true });
    const { cluster } = simulation;
    const workloads = workloadsOf(simulation);
    simulation.addService(1);
    if (isLabelled) deployResizable(simulation, "pipe", 1, 1, { strategy: "Recreate" });
    else simulation.deploy("pipe", 1, { strategy: "Recreate" });
    simulation.start();
    await simulation.run(5 * SECOND);
    simulation.requestSize(1, isLabelled ? 4 : 1);
    await simulation.run(5 * MINUTE);
    workloads.scheduler.terminationMs = () => 20 * SECOND;
    workloads.kubelets.startMs = () => 20 * SECOND;
    simulation.stop();
    simulation.requestSize(1, 2);
    simulation.setResources("pipe", amounts(sizeOfCores(2)));
    await simulation.run(SECOND);
    if (isLabelled)
      cluster.fault = ({ path, method }) =>
        method === "PATCH" && path.endsWith("/deployments/pipe") ? refusal("a policy says no") : undefined;
    simulation.start();
    const isReported = () => simulation.status(1).history?.[0]?.result === "Scaled";
    await simulation.run(35 * SECOND);
    expect(isReported()).toBe(false);
    expect(simulation.status(1).pipes?.updated).toBe(0);
    await simulation.run(10 * SECOND);
    expect(isReported()).toBe(true);
    expect(cluster.readyJudge.violations).toEqual([]);
  });
});
