import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { WritePurpose } from "../../../../src/controller/observe/write-record.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { assessmentsIn, summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  resizedTo,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

const words = "0/3 nodes are available: 3 Insufficient cpu.";
const waiting = aPod(
  "a-1",
  { unschedulable: words, nodeName: "" },
  { resources: amounts(FOUR), isRunning: false },
);
const pods = new Map([["a", [waiting]]]);

/** No old pod runs any more, and no new one yet. */
const STOPPED = { ...UNDER_WAY, isAvailable: false, isAnyAvailable: false };

const strategies = ["Rollout", "InPlaceOrRollout"] as const;

describe.each(strategies)("with %s, a pipe that stopped its old pods for another size,", (strategy) => {
  const stopped = rollingTo("a", FOUR, {
    rollout: STOPPED,
    stopsOldPodsFirst: true,
    hasLabelledPods: true,
  });
  const snapshotOf = (pipes: readonly PipeView[], changes: Partial<Snapshot> = {}) =>
    aSnapshot(pipes, { strategy, pods, scaling: aScaling(8), ...changes });
  const actionsWith = (pipes: readonly PipeView[], changes: Partial<Snapshot> = {}) =>
    summaries(decide(snapshotOf(pipes, changes), DECIDE_OPTIONS).actions);
  const refusal = (attempts: number, agoMs: number, purpose: WritePurpose, subject: string) => {
    const outcome = failed({ reason: "Refused" });
    const record = { subject, attempts, lastAtMs: NOW_MS - agoMs, outcome };
    return { writes: someWrites([aWrite("uid-a", purpose, record)]) };
  };

  it("gets the requested size if possible", () => {
    expect(actionsWith([stopped])).toEqual(["a 8000m/32Gi"]);
  });

  it.each<[string, Partial<Snapshot>, Partial<PipeView>, PipeView[]]>([
    ["is rejected", refusal(1, 0, "resize", "8000m/32Gi"), {}, []],
    ["is above a CPU limit", {}, { cpuLimitMillicores: 6000 }, []],
    ["waits for the rollout window", { rolloutWindow: aWindow() }, {}, []],
    [
      "waits because of a failure",
      {},
      {},
      [rollingTo("b", sizeOfCores(8), { lastRollout: aRollout(sizeOfCores(8), { startedAtMs: 0 }) })],
    ],
  ])("is rolled back if the requested size %s", (_, changes, ofPipe, others) => {
    expect(actionsWith([{ ...stopped, ...ofPipe }, ...others], changes)[0]).toBe("a back to 1000m/4Gi");
  });

  it("gets the requested size before it is known whether a pod can start, and also while it is rolled back", () => {
    expect(actionsWith([stopped], { pods: new Map() })).toEqual(["a 8000m/32Gi"]);
    const lastRollout = aRollout(FOUR, { isRollback: true });
    expect(actionsWith([{ ...stopped, size: sizeOfCores(1), lastRollout }])).toEqual(["a 8000m/32Gi"]);
  });

  it("counts against the limit of the service if its rollback begins now", () => {
    const overdue = { ...stopped, lastRollout: aRollout(FOUR, { startedAtMs: 0 }) };
    const done = resizedTo("b", sizeOfCores(8));
    const others = ["c", "d", "e"].map((name) => aPipe(name));
    expect(actionsWith([overdue, done, ...others])).toEqual([
      "c 8000m/32Gi",
      "d 8000m/32Gi",
      "a back to 1000m/4Gi",
    ]);
  });

  it("gets the requested size instead of a rollback also after the timeout, if possible", () => {
    const overdue = { ...stopped, lastRollout: aRollout(FOUR, { startedAtMs: 0 }) };
    expect(actionsWith([overdue])).toEqual(["a 8000m/32Gi"]);
  });

  it("records the failed size, so that the requested one can still be tried", () => {
    const snapshot = snapshotOf([{ ...stopped, cpuLimitMillicores: 6000 }]);
    expect(decide(snapshot, DECIDE_OPTIONS).actions).toMatchObject([
      { rollout: { size: FOUR, isRollback: true, failure: { reason: "Unschedulable", message: words } } },
    ]);
  });

  it("is not rolled back again at once after a rejection", () => {
    const actionsAt = (attempts: number, agoMs: number) =>
      actionsWith(
        [{ ...stopped, cpuLimitMillicores: 6000 }],
        refusal(attempts, agoMs, "roll-back", "4000m/16Gi"),
      );
    expect(actionsAt(1, 299_999)).toEqual([]);
    expect(actionsAt(1, 300_000)).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is not rolled back while another write to it is in flight", () => {
    const pending = { subject: "8000m/32Gi", outcome: { type: "pending" } } as const;
    const writes = someWrites([aWrite("uid-a", "resize", pending)]);
    expect(actionsWith([stopped], { writes })).toEqual([]);
  });

  it("is not rolled back if its rollout succeeded and it failed later", () => {
    const pipe = { ...stopped, cpuLimitMillicores: 6000 };
    expect(actionsWith([{ ...pipe, lastRollout: aRollout(FOUR, { cameUp: true }) }])).toEqual([]);
    expect(actionsWith([pipe])).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is not rolled back if its rollout may still succeed, or is a rollback", () => {
    const window = { rolloutWindow: aWindow() };
    expect(actionsWith([stopped], { ...window, pods: new Map() })).toEqual([]);
    expect(actionsWith([{ ...stopped, stopsOldPodsFirst: false }], window)).toEqual([]);
    const back = aPipe("a", {
      rollout: UNDER_WAY,
      stopsOldPodsFirst: true,
      lastRollout: aRollout(FOUR, { isRollback: true }),
    });
    expect(actionsWith([back], window)).toEqual([]);
  });
});

describe("with the strategy InPlaceOrRollout, a pipe whose rollout", () => {
  const decided = (changes: Partial<PipeView>, ofSnapshot: Partial<Snapshot> = {}) => {
    const ofPipe = { rollout: STOPPED, stopsOldPodsFirst: true, hasLabelledPods: true, ...changes };
    const pipe = rollingTo("a", FOUR, ofPipe);
    const strategy = "InPlaceOrRollout";
    const snapshot = aSnapshot([pipe], { strategy, pods, scaling: aScaling(8), ...ofSnapshot });
    return summaries(decide(snapshot, DECIDE_OPTIONS).actions);
  };

  it("keeps its old pods waits for the end of the rollout, because it may be resized in place then", () => {
    expect(decided({ stopsOldPodsFirst: false })).toEqual([]);
  });

  it("may be complete, because Kubernetes has not reported about it, waits", () => {
    const rollout = { ...STOPPED, isSeen: false };
    expect(decided({ rollout }, { pods: new Map() })).toEqual([]);
  });

  it("has replaced some pods, which are available, waits for its end, because it may be resized in place then", () => {
    const rollout = { ...STOPPED, isAnyAvailable: true };
    expect(decided({ rollout, replicas: 2 }, { pods: new Map() })).toEqual([]);
  });

  it("replaced the pods of its template, because they could not be resized, does not wait", () => {
    const inPlaceFailure = { size: FOUR, reason: "Deferred", message: "", atMs: NOW_MS - 30_000 } as const;
    const lastRollout = aRollout(FOUR, { cameUp: true, inPlaceFailure: { ...inPlaceFailure, revision: 1 } });
    expect(decided({ lastRollout, revision: 2 })).toEqual(["a 8000m/32Gi"]);
    expect(decided({ lastRollout, revision: 1 })).toEqual([]);
  });

  // The template followed a pod that was resized in place, and then that pod was evicted.
  it("replaced no pod waits, but is rolled back as soon as it is known that its pod cannot start", () => {
    const lastRollout = aRollout(FOUR, { inPlaceStartedAtMs: NOW_MS - 61_000 });
    expect(decided({ lastRollout }, { pods: new Map() })).toEqual([]);
    expect(decided({ lastRollout })).toEqual(["a back to 1000m/4Gi"]);
  });
});

it("with the strategy InPlace, a pipe whose rollout stopped its old pods before is rolled back although another size is requested", () => {
  const pipe = rollingTo("a", FOUR, { stopsOldPodsFirst: true, hasLabelledPods: true });
  const snapshot = aSnapshot([pipe], { strategy: "InPlace", pods, scaling: aScaling(8) });
  expect(summaries(decide(snapshot, DECIDE_OPTIONS).actions)).toEqual(["a back to 1000m/4Gi"]);
});

it("with the strategy InPlace, a pipe whose rollout stopped its old pods before waits for the end of the rollout, which is no hindrance", () => {
  const pipe = rollingTo("a", FOUR, { rollout: STOPPED, stopsOldPodsFirst: true, hasLabelledPods: true });
  const snapshot = aSnapshot([pipe], { strategy: "InPlace", pods: new Map(), scaling: aScaling(8) });
  const decision = decide(snapshot, DECIDE_OPTIONS);
  expect(decision.actions).toEqual([]);
  const [assessment] = assessmentsIn(decision);
  expect([assessment?.state, assessment?.hindrance]).toEqual(["waiting", undefined]);
});

describe("a pipe that stopped its old pods, in a service that must not be resized,", () => {
  const stopped = rollingTo("a", FOUR, { rollout: STOPPED, stopsOldPodsFirst: true, hasLabelledPods: true });
  const decisionFor = (changes: Partial<Snapshot>, ofPipe: Partial<PipeView> = {}) => {
    const snapshot = aSnapshot([{ ...stopped, ...ofPipe }], { pods, ...changes });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    return { actions: summaries(decision.actions), atMs: recheckAtMs(snapshot, decision) };
  };
  const unknown = { tier: { ok: false, obstacle: { reason: "UnknownTier", message: "" } } } as const;
  const suspended = aScaling(4, { spec: { suspend: true } });
  const recreated = { ...suspended, metadata: { ...suspended.metadata, uid: "recreated" } };

  it.each<[string, Partial<Snapshot>]>([
    ["its tier is unknown", unknown],
    ["its PipeScaling is being deleted", { scaling: aScaling(4, { isBeingDeleted: true }) }],
    ["its tier is unknown, and another size is requested", { ...unknown, scaling: aScaling(8) }],
    ["the controller suspended it after a deletion", { scaling: recreated }],
  ])("is rolled back if %s, once its new pod cannot start", (_, changes) => {
    expect(decisionFor(changes).actions).toEqual(["a back to 1000m/4Gi"]);
    const endedPods = new Map([["a", { atMs: NOW_MS - 14_000, containers: [] }]]);
    expect(decisionFor({ ...changes, endedPods })).toEqual({ actions: [], atMs: NOW_MS + 1000 });
    const refused = aWrite("uid-a", "roll-back", {
      subject: "4000m/16Gi",
      lastAtMs: NOW_MS,
      outcome: failed({ reason: "WriteFailed" }),
    });
    const writes = someWrites([refused]);
    expect(decisionFor({ ...changes, writes })).toEqual({ actions: [], atMs: NOW_MS + 1000 });
  });

  it.each<[string, Partial<Snapshot>, string]>([
    ["its tier is unknown", { ...unknown, scaling: aScaling(8) }, "UnknownTier"],
    ["its PipeScaling is being deleted", { scaling: aScaling(4, { isBeingDeleted: true }) }, "Deleting"],
    ["the controller suspended it after a deletion", { scaling: recreated }, "Suspended"],
  ])("has its failure in the status with the next rollback if %s", (_, changes, reason) => {
    const outcome = failed({ reason: "Refused", message: "the policy says no" });
    const record = { subject: "4000m/16Gi", lastAtMs: NOW_MS, outcome };
    const writes = someWrites([aWrite("uid-a", "roll-back", record)]);
    const snapshot = aSnapshot([stopped], { pods, writes, ...changes });
    const { conditions, failures } = statusOf(
      snapshot,
      snapshot.scaling ?? aScaling(4),
      decide(snapshot, DECIDE_OPTIONS),
      POLICY,
    );
    const next = new Date(NOW_MS + 300_000).toISOString();
    const message = `${words}; the rollback failed: the policy says no (attempt 1, next at ${next})`;
    expect(failures).toMatchObject([
      { pipe: "a", size: { summary: "4 cpu / 16 Gi" }, reason: "Unschedulable", message },
    ]);
    const ready = conditions?.find(({ type }) => type === "Ready");
    expect(ready?.reason).toBe(reason);
    if (reason !== "Suspended") expect(ready?.message).toContain(message);
  });

  it("keeps its deleted PipeScaling in the annotation of a rollback, which otherwise gets the present one", () => {
    const annotated = (changes: Partial<Snapshot>) =>
      decide(aSnapshot([stopped], { pods, ...changes }), DECIDE_OPTIONS).actions;
    const { uid } = recreated.metadata;
    const rollout = { isRollback: true, scalingUid: stopped.lastRollout?.scalingUid };
    expect(annotated({ scaling: recreated })).toMatchObject([{ type: "roll-back", rollout }]);
    const resumed = { ...aScaling(4), metadata: recreated.metadata };
    const ofPresent = { isRollback: true, scalingUid: uid };
    expect(annotated({ scaling: resumed })).toMatchObject([{ type: "roll-back", rollout: ofPresent }]);
  });

  it.each<[string, Partial<Snapshot>, Partial<PipeView>]>([
    ["it keeps its old pods", unknown, { stopsOldPodsFirst: false }],
    ["its owner paused it", unknown, { isPaused: true }],
    ["it has the size", unknown, { lastRollout: aRollout(FOUR, { cameUp: true }) }],
    [
      "it is rolled back",
      unknown,
      { size: sizeOfCores(1), lastRollout: aRollout(FOUR, { isRollback: true }) },
    ],
    ["its last good size is unknown", unknown, { lastRollout: aRollout(FOUR, { lastGoodSize: undefined }) }],
    ["it records a later generation", unknown, { lastRollout: aRollout(FOUR, { scalingGeneration: 2 }) }],
    ["a person suspended the service", { scaling: suspended }, {}],
    ["there is no PipeScaling", { ...unknown, scaling: undefined }, {}],
  ])("stays as it is if %s", (_, changes, ofPipe) => {
    expect(decisionFor(changes, ofPipe).actions).toEqual([]);
  });

  it("is left to the next controller while the process is ending", () => {
    const { actions } = decide(aSnapshot([stopped], { pods, ...unknown }), {
      ...DECIDE_OPTIONS,
      isEnding: true,
    });
    expect(actions).toEqual([]);
  });
});
