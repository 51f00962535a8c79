import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { LOST_ANSWER } from "../../../support/simulation/cluster.ts";
import { deployResizable } from "../../../support/simulation/in-place-scenario.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";

const SECOND = 1000;
const HOUR = 3600 * SECOND;

const isWrite = ({ path, method = "GET" }: KubeRequest) => method !== "GET" && path.includes("/deployments/");

type Fails = (group: PipeGroup) => void;
/** Each write takes longer than a reconciliation waits for it. */
const FAILURES: readonly [string, "Rollout" | "InPlace", Fails][] = [
  [
    "the webhook of a rollout",
    "Rollout",
    ({ cluster }) => cluster.webhooks.down("deployments", HOUR, { isSilent: true }),
  ],
  [
    "the webhook of the dry run",
    "InPlace",
    ({ cluster }) => cluster.webhooks.down("deployments", HOUR, { isSilent: true }),
  ],
  [
    "the API server",
    "Rollout",
    ({ cluster }) => {
      cluster.latencyMs = (request) => (isWrite(request) ? 35 * SECOND : 5);
      cluster.fault = (request) =>
        isWrite(request) ? { error: new KubeUnreachableError("no response") } : undefined;
    },
  ],
];

describe("a write that does not get a response again and again", () => {
  it.each(FAILURES)(
    "of %s: one Event, at most 20 writes of the status, and it always has the failure",
    async (_, strategy, fails) => {
      const group = await PipeGroup.start({ pipes: 1 });
      const { simulation, cluster } = group;
      simulation.start(strategy);
      await group.run(5 * SECOND);
      fails(group);
      simulation.events.length = 0;
      const sinceMs = cluster.clock.monotonic();
      group.request(4);
      await group.run(2 * 35 * SECOND);
      let silentS = 0;
      for (let ms = 2 * 35 * SECOND; ms < HOUR - SECOND; ms += SECOND) {
        await group.run(SECOND);
        if (simulation.status(1).failures === undefined) silentS += 1;
      }
      expect({
        events: simulation.events.filter(({ reason }) => reason === "WriteFailed").length,
        isBounded: group.attemptsOf(/^pipescalings\/status/, { sinceMs }) <= 20,
        silentS,
      }).toEqual({ events: 1, isBounded: true, silentS: 0 });
    },
  );

  it("to list the nodes: one Event, and at most 20 writes of the status", async () => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
    const { simulation, cluster } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    const isNodes = ({ path }: KubeRequest) => path.endsWith("/nodes");
    cluster.latencyMs = (request) => (isNodes(request) ? 8 * SECOND : 5);
    cluster.fault = (request) =>
      isNodes(request) ? { error: new KubeApiError("GET", 500, "{}") } : undefined;
    simulation.events.length = 0;
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(HOUR - SECOND);
    expect(simulation.events.map(({ reason }) => reason)).toEqual(["WriteFailed"]);
    expect(group.attemptsOf(/^pipescalings\/status/, { sinceMs })).toBeLessThanOrEqual(20);
  });
});

describe("a pipe that stops its old pods first, whose checks come before each write", () => {
  const start = async () => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy: "Recreate" } });
    group.simulation.start("Rollout");
    await group.run(5 * SECOND);
    return group;
  };
  const checksOf = ({ cluster }: PipeGroup, sinceMs: number) =>
    cluster.attempts.filter(({ atMs, isDryRun, target }) => {
      return atMs >= sinceMs && isDryRun && target === "pods/resize pipe-0-1-2";
    }).length;

  it("is rolled out although each dry run takes 30 s", async () => {
    const group = await start();
    const { cluster } = group;
    cluster.latencyMs = ({ query }) => (query?.["dryRun"] === undefined ? 5 : 30 * SECOND);
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(5 * 60 * SECOND);
    group.expectSettled(4);
    expect(checksOf(group, sinceMs)).toBe(1);
  });

  it("is tried again and again, and not only checked, while its writes get no response", async () => {
    const group = await start();
    const { cluster } = group;
    const isReal = (request: KubeRequest) => isWrite(request) && request.query?.["dryRun"] === undefined;
    cluster.latencyMs = (request) => (isReal(request) ? 30 * SECOND : 5);
    cluster.fault = (request) =>
      isReal(request) ? { error: new KubeUnreachableError("no response") } : undefined;
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(HOUR - SECOND);
    const writes = group.attemptsOf("deployments pipe-0", { sinceMs });
    expect(writes).toBeGreaterThan(12);
    expect(writes).toBeLessThanOrEqual(20);
    expect(checksOf(group, sinceMs)).toBeLessThanOrEqual(writes);
  });
});

describe("a rollout that fails although its write succeeded without a response", () => {
  it.each<[string, "RollingUpdate" | "Recreate", number]>([
    ["after 5, 10 and 20 min, like any other", "RollingUpdate", 8],
    ["never, if it stops its old pods first", "Recreate", 2],
  ])("is tried again %s", async (_, strategy, writes) => {
    const group = await PipeGroup.start({ pipes: 1, deployment: { strategy, podLabels: {} } });
    const { simulation, cluster, workloads } = group;
    simulation.start("Rollout");
    await group.run(5 * SECOND);
    workloads.scheduler.limits.set({ max: 2000 });
    const isRollout = (request: KubeRequest) =>
      isWrite(request) && !JSON.stringify(request.body).includes('\\"isRollback\\":true');
    cluster.fault = (request) => (isRollout(request) ? LOST_ANSWER : undefined);
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    await group.run(HOUR - SECOND);
    expect(simulation.condition(1)).toMatchObject({ type: "Stalled", reason: "FailedCreate" });
    expect(group.attemptsOf("deployments pipe-0", { sinceMs })).toBe(writes);
  });
});

const slowly = (group: PipeGroup, isHit: (request: KubeRequest) => boolean, error: Error) => {
  group.cluster.latencyMs = (request) => (isHit(request) ? 8 * SECOND : 5);
  group.cluster.fault = (request) => (isHit(request) ? { error } : undefined);
};

const isResize = ({ path, query }: KubeRequest) =>
  path.endsWith("/resize") && query?.["dryRun"] === undefined;
const isDryRun = (request: KubeRequest) => isWrite(request) && request.query?.["dryRun"] !== undefined;
const answer = (code: number, message: string) =>
  new KubeApiError("PATCH", code, JSON.stringify({ message }));
const FAILURE = answer(500, "no");
const DENIAL = answer(403, 'admission webhook "sizes" denied the request: not today');
const QUOTA = answer(403, 'pods "pipe-0" is forbidden: exceeded quota: small');

/** Runs for an hour. Returns the reasons of Ready and of the Events in their order, without repetitions of Ready. */
async function reasonsOf(group: PipeGroup) {
  const { simulation } = group;
  const ready: string[] = [];
  for (let ms = SECOND; ms < HOUR; ms += SECOND) {
    await group.run(SECOND);
    const reason = simulation.status(1).conditions?.find(({ type }) => type === "Ready")?.reason ?? "";
    if (reason !== ready.at(-1)) ready.push(reason);
  }
  return { ready, events: simulation.events.map(({ reason }) => reason) };
}

describe("while a write that failed slowly is in flight again, the status has its failure", () => {
  it.each<
    [string, "InPlace" | "InPlaceOrRollout", (request: KubeRequest) => boolean, Error, string[], string[]]
  >([
    [
      "a resize of a pod that fails",
      "InPlace",
      isResize,
      FAILURE,
      ["WriteFailed", "Progressing", "NotResizedInPlace"],
      ["WriteFailed", "NotResizedInPlace"],
    ],
    [
      "a resize of a pod that is denied",
      "InPlace",
      isResize,
      DENIAL,
      ["NotResizedInPlace"],
      ["NotResizedInPlace"],
    ],
    ["a dry run that is denied", "InPlace", isDryRun, DENIAL, ["NotResizedInPlace"], ["NotResizedInPlace"]],
    ["a size that a quota refuses", "InPlace", isResize, QUOTA, ["Refused"], ["Refused"]],
    ["a size that a quota refuses", "InPlaceOrRollout", isResize, QUOTA, ["Refused"], ["Refused"]],
  ])("%s, with the strategy %s", async (_, strategy, isHit, error, reasons, events) => {
    const group = await PipeGroup.start({ pipes: 1 });
    const { simulation, cluster } = group;
    simulation.start(strategy);
    await group.run(5 * SECOND);
    slowly(group, isHit, error);
    simulation.events.length = 0;
    const sinceMs = cluster.clock.monotonic();
    group.request(4);
    expect(await reasonsOf(group)).toEqual({ ready: ["Scaled", "Progressing", ...reasons], events });
    expect(group.attemptsOf(/^pipescalings\/status/, { sinceMs })).toBeLessThanOrEqual(20);
    slowly(group, () => false, error);
    await group.run(HOUR);
    group.expectSettled(4);
    group.expectSamePods();
  });
});

describe("a commit whose write to the ReplicaSet fails is undone, and a pipe gets at most 20 writes an hour", () => {
  it.each<[string, "InPlace" | "InPlaceOrRollout", number, Error]>([
    ["is denied", "InPlace", 5, DENIAL],
    ["is denied slowly", "InPlace", 8 * SECOND, DENIAL],
    ["fails", "InPlace", 5, FAILURE],
    ["fails slowly", "InPlace", 8 * SECOND, FAILURE],
    ["fails", "InPlaceOrRollout", 5, FAILURE],
    ["fails slowly", "InPlaceOrRollout", 8 * SECOND, FAILURE],
  ])("if it %s, with the strategy %s", async (_, strategy, latencyMs, error) => {
    const group = await PipeGroup.start({ pipes: 1 });
    const { simulation, cluster } = group;
    simulation.start(strategy);
    await group.run(5 * SECOND);
    const isHit = ({ path, method = "GET", query }: KubeRequest) =>
      method !== "GET" && path.includes("/replicasets/") && query?.["dryRun"] === undefined;
    cluster.latencyMs = (request) => (isHit(request) ? latencyMs : 5);
    cluster.fault = (request) => (isHit(request) ? { error } : undefined);
    group.request(4);
    await expectFewWrites(group);
  });
});

const isPatch = (request: KubeRequest) => isWrite(request) && !isDryRun(request);
const isResumption = (request: KubeRequest) =>
  isPatch(request) && JSON.stringify(request.body).includes('"paused":null');
const isOfReplicaSet = ({ path, method = "GET", query }: KubeRequest) =>
  method !== "GET" && path.includes("/replicasets/") && query?.["dryRun"] === undefined;
const CONFLICT = answer(409, "the object has been modified");

describe("each failure is one Event for each pipe, however often it is repeated", () => {
  it.each<
    [string, "InPlace" | "InPlaceOrRollout" | "Rollout", number, Error, (request: KubeRequest) => boolean]
  >([
    ["a refused dry run", "InPlaceOrRollout", 5, DENIAL, isDryRun],
    ["a refused dry run that is slow", "InPlaceOrRollout", 8 * SECOND, DENIAL, isDryRun],
    ["a slow rollout that fails", "Rollout", 8 * SECOND, FAILURE, isPatch],
    ["a slow rollout with conflicts", "Rollout", 8 * SECOND, CONFLICT, isPatch],
    ["a commit whose ReplicaSets conflict", "InPlace", 8 * SECOND, CONFLICT, isOfReplicaSet],
  ])("%s, with the strategy %s and a latency of %i ms", async (_, strategy, latencyMs, error, isHit) => {
    const group = await PipeGroup.start({ pipes: 3 });
    const { simulation, cluster } = group;
    simulation.start(strategy);
    await group.run(5 * SECOND);
    cluster.latencyMs = (request) => (isHit(request) ? latencyMs : 5);
    cluster.fault = (request) => (isHit(request) ? { error } : undefined);
    group.request(4);
    await group.run(2 * HOUR);
    const notes = simulation.events.filter(({ type }) => type === "Warning").map(({ note }) => note);
    const pipes = notes.map((note) => group.names.find((name) => note.startsWith(name)));
    expect(pipes.toSorted()).toEqual(group.names);
    cluster.fault = () => undefined;
    await group.run(HOUR);
    group.expectSettled(4);
  });
});

it("a commit that was undone after conflicts is repeated only after a minute", async () => {
  const group = await PipeGroup.start({ pipes: 1 });
  const { simulation, cluster } = group;
  simulation.start("InPlace");
  await group.run(5 * SECOND);
  slowly(group, isOfReplicaSet, CONFLICT);
  group.request(4);
  await group.run(5 * SECOND);
  const undone = await group.runUntil(() => group.paused().length === 0, 40 * SECOND);
  const sinceMs = cluster.clock.monotonic();
  await group.run(50 * SECOND);
  expect({
    isUndone: undone !== undefined,
    again: group.attemptsOf("deployments pipe-0", { sinceMs }),
  }).toEqual({
    isUndone: true,
    again: 0,
  });
});

it.each([
  ["always fails", Number.POSITIVE_INFINITY],
  ["fails twice each time", 2],
])("a pipe whose resumption %s gets at most 20 writes an hour, the pauses included", async (_, failures) => {
  const group = await PipeGroup.start({ pipes: 1 });
  const { simulation, cluster } = group;
  simulation.start("InPlace");
  await group.run(5 * SECOND);
  let failed = 0;
  cluster.fault = (request) => {
    if (isOfReplicaSet(request)) return { error: FAILURE };
    if (!isResumption(request)) return undefined;
    failed = failed === failures ? 0 : failed + 1;
    return failed === 0 ? undefined : { error: FAILURE };
  };
  group.request(4);
  await expectFewWrites(group);
});

it("a service waits for the only rollout for no longer than the slow write of another service takes", async () => {
  const group = await PipeGroup.start({ pipes: 8, mostRollouts: 1 });
  const { simulation, cluster } = group;
  simulation.addService(2);
  deployResizable(simulation, "other-0", 2, 1, {});
  simulation.start("Rollout");
  await group.run(10 * SECOND);
  const isHit = (request: KubeRequest) => isPatch(request) && request.path.includes("/pipe-");
  cluster.latencyMs = (request) => (isHit(request) ? 30 * SECOND : 5);
  cluster.fault = (request) => (isHit(request) ? { error: FAILURE } : undefined);
  group.request(4);
  await group.run(50 * SECOND);
  simulation.requestSize(2, 2);
  await group.run(31 * SECOND);
  expect(simulation.sizes("other-0")).toEqual(["2000m/8Gi"]);
});

it("a rollback that fails slowly causes one write of the status for each attempt", async () => {
  const group = await PipeGroup.start({ pipes: 1 });
  const { simulation, cluster, workloads } = group;
  simulation.start("Rollout");
  await group.run(5 * SECOND);
  workloads.scheduler.capacityMillicores = 1;
  group.request(4);
  await group.run(60 * SECOND);
  slowly(group, isPatch, FAILURE);
  await group.run(HOUR);
  const sinceMs = cluster.clock.monotonic();
  await group.run(HOUR);
  const attempts = group.attemptsOf("deployments pipe-0", { sinceMs });
  expect(attempts).toBeGreaterThan(5);
  expect(group.attemptsOf(/^pipescalings\/status/, { sinceMs })).toBeLessThanOrEqual(attempts + 1);
});

/** Expects few writes in each of three hours of failures, and the size with the same pods when they have ended. */
async function expectFewWrites(group: PipeGroup): Promise<void> {
  const { cluster } = group;
  for (let hour = 0; hour < 3; hour += 1) {
    const sinceMs = cluster.clock.monotonic();
    await group.run(HOUR);
    expect(group.busiest(sinceMs)).toEqual([]);
  }
  cluster.fault = () => undefined;
  await group.run(HOUR);
  group.expectSettled(4);
  group.expectSamePods();
}
