import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { sampleOf } from "../../../support/num-runs.ts";
import { refusal } from "../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { RevertingOwner } from "../../../support/simulation/reverting-owner.ts";
import { targetOf } from "../../../support/simulation/selectors.ts";
import type { WebhookKind } from "../../../support/simulation/webhooks.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** The size is reapplied after 0, 10 and 60 s. */
const MOST_COMMITS = 4;

describe.each([3, 30, 100, 400])("an operator that writes the template back after %i ms", (delayMs) => {
  it.each([
    ["only the template", false],
    ["the pause, too", true],
  ])("causes few commits, and a field conflict with its name, if it writes %s", async (_, isResuming) => {
    const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
    const { simulation, cluster, workloads } = group;
    const owner = new RevertingOwner(cluster, "pipe-0", { delayMs, manager: "pipe-operator", isResuming });
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(10 * MINUTE);
    expect(simulation.condition(1)).toMatchObject({
      type: "Stalled",
      reason: "FieldConflict",
      message: expect.stringContaining("pipe-operator"),
    });
    const { writes } = owner;
    expect(writes).toBeLessThanOrEqual(2 * MOST_COMMITS);
    expect(workloads.replaced.length).toBeLessThanOrEqual(MOST_COMMITS);
    await group.run(HOUR - 10 * MINUTE);
    expect(group.busiest(sinceMs)).toEqual([]);
    expect(owner.writes).toBe(writes);
    expect(group.paused()).toEqual([]);
    expect(cluster.readyJudge.violations).toEqual([]);
  });
});

it("an operator that writes the template back causes few commits also if a rollout was refused before", async () => {
  const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
  const { simulation, cluster } = group;
  const owner = new RevertingOwner(cluster, "pipe-0", { delayMs: 20 * SECOND });
  simulation.start("Rollout");
  cluster.fault = (request) =>
    request.method === "PATCH" && targetOf(request).resource === "deployments" ? refusal("no") : undefined;
  group.request(4);
  await group.run(4 * MINUTE);
  expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "Refused" });
  cluster.fault = () => undefined;
  simulation.setStrategy(1, "InPlace");
  await group.run(HOUR);
  expect(owner.writes).toBe(MOST_COMMITS);
  expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
});

it("an operator that stops writing the template back does not prevent a retry", async () => {
  const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
  const owner = new RevertingOwner(group.cluster, "pipe-0", { delayMs: 30 });
  group.request(4);
  await group.run(10 * MINUTE);
  owner.stop();
  group.simulation.askToRetry(1);
  await group.run(10 * MINUTE);
  group.expectSettled(4);
});

const KINDS: readonly WebhookKind[] = ["deployments", "replicasets", "pipescalings/status"];
const OUTAGES: readonly [string, number, { readonly isSilent: boolean }][] = [
  ["refuses connections for 15 s", 15 * SECOND, { isSilent: false }],
  ["refuses connections for 20 s", 20 * SECOND, { isSilent: false }],
  ["does not respond for 20 s", 20 * SECOND, { isSilent: true }],
  ["refuses connections for 5 min", 5 * MINUTE, { isSilent: false }],
  ["does not respond for 5 min", 5 * MINUTE, { isSilent: true }],
];

/** Pipes whose commit follows: all pods run the size, and the template does not have it. */
function committable(group: PipeGroup): readonly string[] {
  return group.names.filter(
    (name) => group.hasPods(name, "4000m/16Gi") && group.simulation.sizes(name)[0] === "1000m/4Gi",
  );
}

/** When the webhook goes down. */
const TIMES: readonly [string, (group: PipeGroup) => boolean][] = [
  ["before the first commit", (group) => committable(group).length > 0],
  ["before the commits of two pipes", (group) => committable(group).length > 1],
  ["during the first commit", (group) => group.paused().length > 0],
  ["after the first commit", (group) => group.simulation.sizes(...group.names).includes("4000m/16Gi")],
];

const CASES = KINDS.flatMap((kind) =>
  TIMES.flatMap(([time, isTime]) =>
    OUTAGES.map(([outage, durationMs, options]) => ({ kind, time, isTime, outage, durationMs, options })),
  ),
);

it.each(sampleOf(CASES))(
  "a webhook on $kind causes no restart if it $outage $time",
  async ({ kind, isTime, durationMs, options }) => {
    const group = await PipeGroup.start({ pipes: 8, replicas: 3 });
    const { cluster } = group;
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    expect(await group.runUntil(() => isTime(group), MINUTE)).toBeDefined();
    cluster.webhooks.down(kind, durationMs, options);
    await group.run(durationMs + 15 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
    expect(group.busiest(sinceMs)).toEqual([]);
  },
);

describe.each<WebhookKind>(["deployments", "replicasets"])("a webhook on %s that is down", (kind) => {
  it("is named in the status, and the size can be requested back meanwhile without a restart", async () => {
    const group = await PipeGroup.start({ pipes: 3, replicas: 2 });
    const { cluster } = group;
    group.request(4);
    expect(await group.runUntil(() => group.paused().length > 0, MINUTE)).toBeDefined();
    cluster.webhooks.down(kind, HOUR);
    await group.run(30 * SECOND);
    expect(group.messages()).toContain("failed calling webhook");
    group.request(1);
    await group.run(2 * MINUTE);
    cluster.webhooks.up();
    await group.run(15 * MINUTE);
    group.expectSettled(1);
    group.expectSamePods();
  });
});

it.each([429, 503])(
  "a webhook that responds %i to each status, and asks for a minute, makes no commit wait",
  async (code) => {
    const group = await PipeGroup.start({ pipes: 3, replicas: 2 });
    const { cluster } = group;
    // The controller reports while it waits for the Deployment controller.
    group.workloads.syncMs = SECOND;
    const message = 'admission webhook "quiet.example" denied the request: later';
    const error = new KubeApiError("PATCH", code, JSON.stringify({ message }), { retryAfterHeader: "60" });
    cluster.fault = (request) =>
      targetOf(request).resource === "pipescalings/status" ? { error } : undefined;
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(90 * SECOND);
    expect(group.simulation.sizes(...group.names)).toEqual(group.names.map(() => "4000m/16Gi"));
    expect(cluster.judge.longestPauseMs).toBeLessThan(5 * SECOND);
    expect(group.attemptsOf(/^pipescalings/, { sinceMs })).toBe(2);
    cluster.fault = () => undefined;
    await group.run(2 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
  },
);

it("a webhook on replicasets that is down for two hours causes few writes and one pause", async () => {
  const group = await PipeGroup.start({ pipes: 1, replicas: 2 });
  const { cluster } = group;
  const pauses = new Set<number | undefined>();
  cluster.onDeployment.push(({ metadata, spec }) => {
    if (spec.paused) pauses.add(metadata.generation);
  });
  const sinceMs = cluster.clock.monotonic();
  cluster.webhooks.down("replicasets", 2 * HOUR);
  group.request(4);
  await group.run(HOUR);
  expect(group.busiest(sinceMs)).toEqual([]);
  expect(group.messages()).toContain("failed calling webhook");
  await group.run(90 * MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
  // One when the webhook was down, and one after that.
  expect(pauses.size).toBe(2);
});

describe.each([40 * SECOND, 90 * SECOND, 10 * MINUTE])(
  "a controller manager that is away for %i ms",
  (awayMs) => {
    it("pauses few Deployments for at most 30 s, and causes no restart", async () => {
      const group = await PipeGroup.start({ pipes: 36 });
      const { cluster, workloads } = group;
      const sinceMs = cluster.clock.monotonic();
      group.request(4);
      expect(await group.runUntil(() => group.paused().length > 0, MINUTE)).toBeDefined();
      workloads.killControllerManager();
      let mostPaused = 0;
      for (let ms = 0; ms < awayMs; ms += 100) {
        await group.run(100);
        mostPaused = Math.max(mostPaused, group.paused().length);
      }
      expect(mostPaused).toBeLessThanOrEqual(6);
      expect(cluster.judge.longestPauseMs).toBeLessThan(35 * SECOND);
      expect(group.paused()).toEqual([]);
      workloads.startControllerManager();
      await group.run(20 * MINUTE);
      group.expectSettled(4);
      group.expectSamePods();
      expect(group.busiest(sinceMs)).toEqual([]);
    });
  },
);

it("six pipes that Kubernetes never sees delay the templates of other services for two minutes", async () => {
  const group = await PipeGroup.start({ pipes: 6 });
  const { simulation, workloads } = group;
  simulation.addService(2);
  deployResizable(simulation, "other", 2);
  await group.run(10 * SECOND);
  for (const name of group.names) workloads.ignore(name);
  group.request(4);
  await group.run(10 * SECOND);
  simulation.requestSize(2, 4);
  await group.run(3 * MINUTE);
  expect(simulation.sizes("other")).toEqual(["4000m/16Gi"]);
  expect(simulation.condition(2)).toMatchObject({ type: "Ready", status: "True" });
  expect(group.paused()).toEqual([]);
  await group.run(HOUR);
  expect(group.busiest()).toEqual([]);
  // Nothing is tried before Kubernetes has seen them.
  expect(group.messages()).toContain("the Deployment controller did not respond");
  expect(group.messages()).not.toContain("the next one is at");
});

it("a controller manager that is away does not delay the size of the pods", async () => {
  const group = await PipeGroup.start({ pipes: 36 });
  group.workloads.killControllerManager();
  group.request(4);
  await group.run(10 * SECOND);
  expect(new Set(group.podSizes())).toEqual(new Set(["4000m/16Gi"]));
  group.workloads.startControllerManager();
  await group.run(20 * MINUTE);
  group.expectSettled(4);
  group.expectSamePods();
});

describe("a controller manager that dies for 40 s", () => {
  it.each(["pause", "write to the ReplicaSet", "resumption"] as const)(
    "at the %s causes no restart",
    async (step) => {
      const pipe = await HeldPipe.start();
      pipe.onArrival(step, () => pipe.workloads.killControllerManager());
      await pipe.request(4, 40 * SECOND);
      pipe.workloads.startControllerManager();
      await pipe.run(15 * MINUTE);
      pipe.expectSettled(4);
      expect(pipe.uids()).toEqual(pipe.before);
      expect(pipe.replicaSets()).toHaveLength(1);
    },
  );
});

describe.each<[WebhookKind, RegExp]>([
  ["pods/resize", /^pods\/resize /],
  ["replicasets", /^replicasets /],
  ["deployments", /^deployments /],
])("a webhook on %s that is down in a service with ten changes per second", (kind, target) => {
  it("gets few writes to each object, and is named in the status", async () => {
    const group = await PipeGroup.start({ pipes: 2, replicas: 1 });
    const { cluster } = group;
    group.keepBusy("pipe-1", MINUTE);
    cluster.webhooks.down(kind, MINUTE);
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(40 * SECOND);
    expect(group.messages()).toContain("failed calling webhook");
    await group.run(MINUTE);
    const counts = new Map<string, number>();
    for (const { atMs, target: object } of cluster.attempts)
      if (atMs >= sinceMs && target.test(object)) counts.set(object, (counts.get(object) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > 12)).toEqual([]);
    await group.run(20 * MINUTE);
    group.expectSettled(4);
    expect(group.busiest(sinceMs)).toEqual([]);
  });
});

describe("a status update that conflicts again and again", () => {
  it("is repeated a few times, not with each of ten changes per second", async () => {
    const group = await PipeGroup.start({ pipes: 2, replicas: 1 });
    const { cluster } = group;
    group.keepBusy("pipe-1", 30 * SECOND);
    await group.run(SECOND);
    const sinceMs = cluster.clock.monotonic();
    cluster.fault = ({ path }) =>
      path.endsWith("/status") ? { error: new KubeApiError("PATCH", 409, "{}") } : undefined;
    group.request(4);
    await group.run(5 * SECOND);
    expect(group.attemptsOf(/^pipescalings\/status/, { sinceMs })).toBeLessThanOrEqual(6);
    cluster.fault = () => undefined;
    await group.run(2 * MINUTE);
    group.expectSettled(4);
  });
});
