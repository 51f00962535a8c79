import { describe, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { formatScalingRequest, REQUEST_ANNOTATION } from "../../../../src/crd/scaling-request.ts";
import { actionOf } from "../../../../src/kube/call.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import type { Fault } from "../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import type { ResizeOutcome } from "../../../support/simulation/kubelets.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { isRunning } from "../../../support/simulation/pod-status.ts";
import { sizeOf } from "../../../support/simulation/ready-judge.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

async function start(options: Parameters<typeof PipeGroup.start>[0]): Promise<PipeGroup> {
  const group = await PipeGroup.start(options);
  group.simulation.setStrategy(1, "InPlace");
  await group.run(SECOND);
  return group;
}

/** A pipe of which a container restarted during a resize to four cores. */
async function startedWithRestart(): Promise<PipeGroup> {
  const group = await start({ pipes: 1 });
  const { workloads } = group;
  workloads.outcome = () => "Error";
  group.request(4);
  await group.run(10 * SECOND);
  workloads.crash(group.pods("pipe-0")[0]?.metadata.name ?? "", SECOND);
  workloads.outcome = () => "Done";
  return group;
}

/** The conditions that are True, and what the status says about the rescale and the first pipe that is not done. */
function reportOf({ simulation }: PipeGroup) {
  const { conditions = [], pipes, failures = [], history = [] } = simulation.status(1);
  const types = conditions.filter(({ status }) => status === "True").map(({ type }) => type);
  const { state, reason } = pipes?.pending?.[0] ?? {};
  return {
    types,
    state,
    reason,
    failures: [...new Set(failures.map((each) => each.reason))],
    fallbacks: pipes?.fallbacks,
    result: history[0]?.result,
  };
}

const WAITS = {
  types: ["Reconciling"],
  state: "Waiting",
  failures: [],
  fallbacks: undefined,
  result: "Progressing",
};
const STALLED = { ...WAITS, types: ["Stalled"], failures: ["NotResizedInPlace"], result: "Failed" };

const DENIED: Fault = {
  error: new KubeApiError(
    "PATCH",
    403,
    JSON.stringify({ message: 'admission webhook "sizes" denied the request: not today' }),
  ),
};

describe("with the strategy InPlace", () => {
  it.each<[ResizeOutcome, string]>([
    ["Deferred", "Deferred"],
    ["Infeasible", "Infeasible"],
    ["Error", "ResizeError"],
    ["NotObserved", "ResizeTimeout"],
  ])(
    "a pod whose resize is %s is not replaced, and its pipe gets the size when that ends",
    async (outcome, reason) => {
      const group = await start({ pipes: 2, replicas: 2 });
      group.workloads.outcome = () => outcome;
      group.request(4);
      await group.run(5 * MINUTE);
      expect(reportOf(group)).toEqual({ ...WAITS, reason });
      await group.run(20 * MINUTE);
      expect(reportOf(group)).toEqual({ ...STALLED, reason });
      await group.run(3 * HOUR);
      expect(group.busiest()).toEqual([]);
      group.workloads.outcome = () => "Done";
      group.workloads.look();
      await group.run(2 * MINUTE);
      group.expectSettled(4);
      group.expectSamePods();
    },
  );

  describe("a pipe that cannot be resized after the service waited for its rollout window", () => {
    async function startedInWindow(): Promise<PipeGroup> {
      const group = await start({ pipes: 1 });
      const { simulation, workloads } = group;
      const opensAt = new Date(simulation.clock.now() + HOUR);
      const schedule = `${opensAt.getUTCMinutes()} ${opensAt.getUTCHours()} * * *`;
      simulation.addService(1, { rolloutWindow: `{schedule: "${schedule}", duration: 4h, appliesTo: all}` });
      workloads.outcome = () => "Deferred";
      group.request(4);
      await group.run(50 * MINUTE);
      expect(group.messages()).toContain("waiting for the rollout window");
      await group.run(20 * MINUTE);
      return group;
    }

    it("is an alarm when it has waited for as long as a rollout may take", async () => {
      const group = await startedInWindow();
      expect(reportOf(group)).toEqual({ ...WAITS, reason: "Deferred" });
      await group.run(10 * MINUTE);
      expect(reportOf(group)).toEqual({ ...STALLED, reason: "Deferred" });
    });

    it("is no alarm for a new controller before that time, and the same alarm after it", async () => {
      const group = await startedInWindow();
      const { simulation } = group;
      simulation.start();
      await group.run(5 * MINUTE);
      expect(reportOf(group)).toEqual({ ...WAITS, reason: "Deferred" });
      await group.run(15 * MINUTE);
      const stalled = { ...STALLED, reason: "Deferred" };
      expect(reportOf(group)).toEqual(stalled);
      simulation.start();
      for (let minutes = 0; minutes < 20; minutes += 1) {
        await group.run(MINUTE);
        expect(reportOf(group)).toEqual(stalled);
      }
      expect(simulation.events.filter(({ type }) => type === "Warning")).toHaveLength(1);
    });

    it("is no alarm if its node has room in that time", async () => {
      const group = await startedInWindow();
      group.workloads.outcome = () => "Done";
      group.workloads.look();
      await group.run(MINUTE);
      group.expectSettled(4);
      expect(group.simulation.events.filter(({ type }) => type === "Warning")).toEqual([]);
    });
  });

  it.each([9, 25])(
    "a pipe is the same alarm, and at the same time, although its size is requested again every %i minutes",
    async (minutes) => {
      const group = await start({ pipes: 1 });
      const { simulation, cluster, workloads } = group;
      const size = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
      const conditions: (readonly string[])[] = [];
      workloads.outcome = () => "Deferred";
      group.request(4);
      for (let minute = 1; minute <= 60; minute += 1) {
        await group.run(MINUTE);
        conditions.push(reportOf(group).types);
        if (minute % minutes > 0) continue;
        const request = { ...size, requestId: `request-${minute}`, apiKey: "key", requestedAt: "" };
        cluster.patchScaling(idOf(1), size, { [REQUEST_ANNOTATION]: formatScalingRequest(request) });
      }
      expect(simulation.status(1).propagation?.requestId).toMatch(/^request-/);
      expect(conditions.slice(0, 15)).toEqual(Array.from({ length: 15 }, () => ["Reconciling"]));
      expect(conditions.slice(17)).toEqual(Array.from({ length: 43 }, () => ["Stalled"]));
      expect(simulation.events.filter(({ type }) => type === "Warning")).toHaveLength(1);
    },
  );

  it("a pipe that waits because of a failure, and whose container crashes again and again, is no failure itself", async () => {
    const group = await start({ pipes: 2 });
    const { workloads, simulation } = group;
    const crash = (pipe: string, stoppedMs: number) =>
      workloads.crash(group.pods(pipe)[0]?.metadata.name ?? "", stoppedMs);
    workloads.outcome = () => "Error";
    group.request(4);
    await group.run(10 * SECOND);
    crash("pipe-0", SECOND);
    workloads.outcome = () => "Done";
    await group.run(MINUTE);
    const reasons = new Set<string | undefined>();
    for (let times = 0; times < 10; times += 1) {
      crash("pipe-1", 5 * MINUTE);
      await group.run(4 * MINUTE);
      reasons.add(simulation.status(1).pipes?.pending?.find(({ name }) => name === "pipe-1")?.reason);
      await group.run(2 * MINUTE);
    }
    expect([...reasons]).toEqual(["ContainerNotRunning"]);
    const failed = simulation.events.filter(({ type }) => type === "Warning").map(({ note }) => note);
    expect(failed).toEqual([expect.stringContaining("pipe-0 could not be resized")]);
  });

  it("a pipe that cannot be resized does not keep the others from the size", async () => {
    const group = await start({ pipes: 3 });
    const [first] = group.pods("pipe-0");
    group.workloads.outcome = ({ metadata }) =>
      metadata.name === first?.metadata.name ? "Deferred" : "Done";
    group.request(4);
    await group.run(3 * MINUTE);
    expect(group.podSizes("pipe-1", "pipe-2")).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    expect(group.messages()).toContain("Cannot be resized in place, so waiting: pipe-0 (Deferred).");
  });

  it.each(["Deferred", "Infeasible", "Error", "NotObserved"] as const)(
    "the strategy InPlaceOrRollout replaces the pods of a pipe that waited (%s)",
    async (outcome) => {
      const group = await start({ pipes: 1, replicas: 2 });
      group.workloads.outcome = () => outcome;
      group.request(4);
      await group.run(10 * MINUTE);
      group.simulation.setStrategy(1, "InPlaceOrRollout");
      await group.run(MINUTE);
      group.expectSettled(4);
      expect(group.workloads.replaced).toEqual(["pipe-0"]);
    },
  );

  it("a request of the old size withdraws a deferred resize", async () => {
    const group = await start({ pipes: 1, replicas: 2 });
    group.workloads.outcome = () => "Deferred";
    group.request(4);
    await group.run(10 * MINUTE);
    group.request(1);
    await group.run(MINUTE);
    group.expectSettled(1);
    group.expectSamePods();
  });

  it("pods without the labels are not replaced, and the strategy InPlaceOrRollout replaces them", async () => {
    const group = await start({ pipes: 1, replicas: 2, deployment: { podLabels: {} } });
    group.request(4);
    await group.run(5 * MINUTE);
    expect(reportOf(group)).toEqual({ ...WAITS, reason: "PodsNotLabeled" });
    group.expectSamePods();
    group.simulation.setStrategy(1, "InPlaceOrRollout");
    await group.run(2 * MINUTE);
    expect(group.simulation.sizes("pipe-0")).toEqual(["4000m/16Gi"]);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });

  it("a pipe without any size in its template waits, and says that only new pods can get one", async () => {
    const group = await start({ pipes: 1 });
    const identity = { name: "pipe-1", namespace: "pipes", serviceId: idOf(1) };
    group.cluster.deploy(pipeDeployment({ ...identity, podLabels: labels() }));
    await group.run(5 * MINUTE);
    // Every pipe that the service had before ran the size.
    expect(reportOf(group)).toEqual({ ...WAITS, reason: "NotSupported", result: "Scaled" });
    expect(group.messages()).toContain("pipe-1 (NotSupported)");
    // The pipe has its first pods, and no others.
    expect(group.workloads.replaced).toEqual(["pipe-1"]);
  });

  it("a pipe without replicas gets the size at once, and is resized in place after it was scaled up", async () => {
    const group = await start({ pipes: 1, replicas: 0 });
    group.request(4);
    await group.run(10 * SECOND);
    group.expectSettled(4);
    group.cluster.change("pipe-0", { replicas: 2 });
    await group.run(10 * SECOND);
    group.before = group.uids();
    group.workloads.replaced.length = 0;
    group.request(2);
    await group.run(2 * MINUTE);
    group.expectSettled(2);
    group.expectSamePods();
  });

  it("a pipe without replicas whose pods fail after it was scaled up is not rolled back", async () => {
    const group = await start({ pipes: 1, replicas: 0 });
    group.request(4);
    await group.run(10 * SECOND);
    group.workloads.kubelets.startMs = () => undefined;
    group.cluster.change("pipe-0", { replicas: 2 });
    await group.run(SECOND);
    group.before = group.uids();
    group.workloads.replaced.length = 0;
    await group.run(40 * MINUTE);
    expect(group.workloads.replaced).toEqual([]);
    expect(group.uids()).toEqual(group.before);
  });

  it.each(["the resize of a pod", "the dry run of the commit", "the commit"])(
    "a policy that denies %s is not answered with a rollout, and the size follows when it allows it",
    async (what) => {
      const group = await start({ pipes: 1, replicas: 2 });
      group.cluster.fault = ({ path, query }) => {
        const isDryRun = query?.["dryRun"] !== undefined;
        if (path.endsWith("/resize")) return what === "the resize of a pod" ? DENIED : undefined;
        if (!path.includes("/deployments/")) return undefined;
        return what === (isDryRun ? "the dry run of the commit" : "the commit") ? DENIED : undefined;
      };
      group.request(4);
      await group.run(3 * HOUR);
      expect(group.messages()).toContain("not today");
      expect(group.busiest(group.cluster.clock.monotonic() - HOUR)).toEqual([]);
      group.cluster.fault = () => undefined;
      await group.run(HOUR + MINUTE);
      group.expectSettled(4);
      group.expectSamePods();
    },
  );

  it("a webhook that is down during the resize of a pod delays it for as long as it takes", async () => {
    const group = await start({ pipes: 1, replicas: 2 });
    group.cluster.webhooks.down("pods/resize", 2 * HOUR);
    group.request(4);
    await group.run(HOUR);
    expect(reportOf(group)).toMatchObject({ types: ["Stalled"], reason: "ResizeTimeout" });
    expect(group.busiest()).toEqual([]);
    await group.run(HOUR + 6 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
  });

  it.each([false, true])(
    "pods return to the old size after a container restarted, until a retry is requested (new controller: %s)",
    async (isRestarted) => {
      const group = await start({ pipes: 3 });
      const { workloads, simulation } = group;
      workloads.outcome = () => "Error";
      group.request(4);
      await group.run(10 * SECOND);
      const [pod] = group.pods("pipe-0");
      workloads.crash(pod?.metadata.name ?? "", SECOND);
      workloads.outcome = () => "Done";
      await group.run(10 * SECOND);
      if (isRestarted) simulation.start();
      await group.run(3 * HOUR);
      expect(group.podSizes()).toEqual(["1000m/4Gi", "1000m/4Gi", "1000m/4Gi"]);
      expect(group.messages()).toContain("Restarted");
      expect(reportOf(group)).toMatchObject({ ...STALLED, state: "Failed", reason: "Restarted" });
      expect(workloads.replaced).toEqual([]);
      simulation.askToRetry(1);
      await group.run(2 * MINUTE);
      group.expectSettled(4);
      expect(workloads.replaced).toEqual([]);
    },
  );

  it("a retry that is requested for later is made then, and the status has its time, after a container restarted", async () => {
    const group = await startedWithRestart();
    const { workloads, simulation } = group;
    await group.run(HOUR);
    simulation.askToRetry(1, HOUR);
    await group.run(HOUR - SECOND);
    expect(group.podSizes()).toEqual(["1000m/4Gi"]);
    expect(group.messages()).toMatch(/Restarted: .* the next one is at /);
    await group.run(MINUTE);
    group.expectSettled(4);
    expect(workloads.replaced).toEqual([]);
  });

  it.each(["Deferred", "Infeasible"] as const)(
    "a container that runs out of memory while its larger size is %s does not withdraw the size",
    async (outcome) => {
      const group = await start({ pipes: 2 });
      const { workloads } = group;
      workloads.outcome = () => outcome;
      group.request(4);
      await group.run(2 * MINUTE);
      const [pod] = group.pods("pipe-0");
      for (let times = 0; times < 5; times += 1) {
        workloads.crash(pod?.metadata.name ?? "", 10 * SECOND, "OOMKilled");
        await group.run(2 * MINUTE);
        expect(reportOf(group)).toMatchObject({ ...WAITS, reason: outcome });
        expect(group.podSizes()).toEqual(["1000m/4Gi", "1000m/4Gi"]);
      }
      workloads.outcome = () => "Done";
      workloads.look();
      await group.run(2 * MINUTE);
      group.expectSettled(4);
      expect(group.uids()).toEqual(group.before);
      expect(group.attemptsOf(/^pods/)).toBe(2);
    },
  );

  // The kubelet keeps the smaller limit of the pod, and reports the larger one.
  it("a size that the kubelet grants while a container is stopped is withdrawn, and tried again if the container had run out of memory", async () => {
    const group = await start({ pipes: 1 });
    const { workloads } = group;
    const { kubelets } = workloads;
    kubelets.grantsStopped = true;
    workloads.outcome = () => "Deferred";
    group.request(4);
    await group.run(2 * MINUTE);
    const [pod] = group.pods("pipe-0");
    workloads.crash(pod?.metadata.name ?? "", 10 * SECOND, "OOMKilled");
    await group.run(5 * SECOND);
    workloads.outcome = () => "Done";
    workloads.look();
    expect(kubelets.starved.size).toBe(1);
    await group.run(MINUTE);
    expect(group.podSizes()).toEqual(["1000m/4Gi"]);
    expect(reportOf(group)).toMatchObject({ state: "Failed", reason: "Restarted" });
    expect(group.messages()).toMatch(/Restarted: .* the next one is at /);
    await group.run(10 * MINUTE);
    group.expectSettled(4);
    expect(kubelets.starved.size).toBe(0);
    expect(group.uids()).toEqual(group.before);
  });

  // The kubelet would keep the smaller limit of the pod for good, and report the larger one.
  it("a container that a smaller memory stopped gets its old memory back when it runs again", async () => {
    const group = await start({ pipes: 1, replicas: 2, deployment: { cores: 4 } });
    const { cluster, workloads } = group;
    let stopped = "";
    const sizesWhileStopped = new Set<string>();
    cluster.onPod.push((pod) => {
      const { name } = pod.metadata;
      const size = sizeOf(pod.spec.containers[0]);
      if (name === stopped && !isRunning(pod)) sizesWhileStopped.add(size);
      if (stopped !== "" || size !== "1000m/4Gi") return;
      stopped = name;
      cluster.clock.after(100, () => workloads.crash(name, 10 * SECOND, "OOMKilled"));
    });
    group.request(1);
    await group.run(MINUTE);
    expect([...sizesWhileStopped]).toEqual(["1000m/4Gi"]);
    expect(group.podSizes()).toEqual(["4000m/16Gi", "4000m/16Gi"]);
    expect(reportOf(group)).toMatchObject({ state: "Failed", reason: "Restarted" });
    expect(workloads.replaced).toEqual([]);
  });

  it("a size with which a container restarted is tried again with another pod template", async () => {
    const group = await startedWithRestart();
    const { workloads, simulation } = group;
    await group.run(10 * MINUTE);
    expect(reportOf(group)).toMatchObject({ state: "Failed", reason: "Restarted" });
    simulation.setImage("pipe-0", "image:2");
    await group.run(5 * MINUTE);
    group.expectSettled(4);
    expect(workloads.replaced).toEqual(["pipe-0"]);
  });

  it("a Deployment that its owner paused waits until the owner resumes it", async () => {
    const group = await start({ pipes: 1 });
    group.cluster.change("pipe-0", { paused: true });
    await group.run(SECOND);
    group.request(4);
    await group.run(20 * MINUTE);
    expect(reportOf(group)).toMatchObject({ types: ["Stalled"], reason: "NotSettled" });
    group.cluster.change("pipe-0", { paused: null });
    await group.run(MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
  });

  it("labels that the owner adds to the pod template let the pipe be resized", async () => {
    const group = await start({ pipes: 1, deployment: { podLabels: {} } });
    group.request(4);
    await group.run(5 * MINUTE);
    group.cluster.change("pipe-0", { template: { metadata: { labels: labels() } } });
    await group.run(2 * MINUTE);
    group.expectSettled(4);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });

  it("a rollout that began before ends", async () => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    group.simulation.setStrategy(1, "Rollout");
    group.workloads.kubelets.startMs = () => MINUTE;
    group.request(4);
    await group.run(10 * SECOND);
    group.simulation.setStrategy(1, "InPlace");
    await group.run(5 * MINUTE);
    group.expectSettled(4);
    expect(group.workloads.replaced).toEqual(["pipe-0"]);
  });
});

function labels() {
  return { [SERVICE_LABEL]: idOf(1), [TYPE_LABEL]: "database" };
}

it.each([100, MINUTE])(
  "replaces no pod if ReplicaSets must not be listed for %d ms after the pause",
  async (durationMs) => {
    const pipe = await HeldPipe.start();
    const { simulation, cluster } = pipe;
    await pipe.request(2);
    simulation.setStrategy(1, "InPlace");
    await pipe.run(5 * SECOND);
    const message = 'replicasets.apps is forbidden: User "a" cannot list resource "replicasets"';
    const error = new KubeApiError("GET", 403, JSON.stringify({ message }));
    let untilMs = 0;
    pipe.at({ step: "pause", delayMs: 5 }, () => {
      untilMs = cluster.clock.monotonic() + durationMs;
    });
    cluster.fault = (request) => {
      const isForbidden = cluster.clock.monotonic() < untilMs;
      return isForbidden && actionOf(request).resource === "replicasets" ? { error } : undefined;
    };
    await pipe.request(4, 15 * MINUTE);
    expect(untilMs).toBeGreaterThan(0);
    expect(pipe.workloads.replaced).toEqual([]);
    pipe.expectSettled(4);
    pipe.expectNoRestart();
  },
);
