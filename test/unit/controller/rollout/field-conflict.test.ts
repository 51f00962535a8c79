import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { WritePurpose, WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import {
  actionsFor,
  assessmentsIn,
  failuresIn,
  statesFor,
  summaries,
} from "../../../support/fixtures/decisions.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { annotated, aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

describe("a pipe whose size another writer takes away", () => {
  const withWrite = (changes: Partial<WriteRecord>, purpose: WritePurpose = "resize"): Partial<Snapshot> => ({
    writes: someWrites([aWrite("uid-a", purpose, { outcome: annotated(aRollout(FOUR)), ...changes })]),
  });
  const decided = (changes: Partial<WriteRecord>, purpose?: WritePurpose) =>
    decide(aSnapshot([aPipe("a")], withWrite(changes, purpose)), DECIDE_OPTIONS);

  it("is reported with the name of the other writer", () => {
    const taken = { lastRollout: aRollout(FOUR, { attempts: 4 }) };
    const messageOf = (otherManagers: readonly string[]) =>
      failuresIn(decide(aSnapshot([aPipe("a", { ...taken, otherManagers })]), DECIDE_OPTIONS))[0]?.message;
    expect(messageOf(["helm", "somebody"])).toMatch(/^another writer, "helm" and "somebody", has changed/);
    expect(messageOf([])).toMatch(/^another writer has changed/);
  });

  it("gets its size four times in total, with growing delays", () => {
    const taken = (attempts: number, agoMs: number) =>
      aSnapshot([aPipe("a", { lastRollout: aRollout(FOUR, { attempts, startedAtMs: NOW_MS - agoMs }) })]);
    expect(actionsFor(taken(1, 0))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(taken(2, 9_999))).toEqual([]);
    expect(actionsFor(taken(2, 10_000))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(taken(3, 60_000))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(taken(4, 86_400_000))).toEqual([]);
  });

  it("counts each commit of a resize in place like a rollout", () => {
    expect(summaries(decided({ attempts: 1 }, "commit").actions)).toEqual(["a 4000m/16Gi"]);
    expect(decided({ attempts: 2, lastAtMs: NOW_MS - 9999 }, "commit").actions).toEqual([]);
    expect(failuresIn(decided({ attempts: 4 }, "commit"))).toMatchObject([
      { reason: "FieldConflict", attempts: 4 },
    ]);
  });

  it("does not get it for ever if a rollout failed before its commits, and waits after one that failed since", () => {
    const afterRollout = (agoMs: number) => {
      const outcome = failed({ reason: "Refused" });
      const commit = aWrite("uid-a", "commit", { attempts: 4, lastAtMs: NOW_MS - 600_000 });
      const rollout = aWrite("uid-a", "resize", { lastAtMs: NOW_MS - agoMs, outcome });
      return decide(aSnapshot([aPipe("a")], { writes: someWrites([commit, rollout]) }), DECIDE_OPTIONS);
    };
    expect(afterRollout(600_001).actions).toEqual([]);
    expect(failuresIn(afterRollout(600_001))).toMatchObject([{ reason: "FieldConflict", attempts: 4 }]);
    expect(failuresIn(afterRollout(60_000))).toMatchObject([{ reason: "Refused" }]);
  });

  it("gets it again at once, with a new count, after a week without a conflict", () => {
    const lastRollout = aRollout(FOUR, { attempts: 4, startedAtMs: NOW_MS - 8 * 86_400_000 });
    expect(actionsFor(aSnapshot([aPipe("a", { lastRollout })]))).toEqual(["a 4000m/16Gi"]);
  });

  it("gets its size four times in total, even if its annotation is removed, too", () => {
    expect(summaries(decided({ attempts: 1 }).actions)).toEqual(["a 4000m/16Gi"]);
    expect(decided({ attempts: 2 }).actions).toEqual([]);
    expect(failuresIn(decided({ attempts: 4, lastAtMs: NOW_MS - 86_400_000 }))).toMatchObject([
      { pipe: "a", reason: "FieldConflict", attempts: 4 },
    ]);
  });

  it("is not adopted without end if its annotation is removed each time", () => {
    const sized = aPipe("a", { size: FOUR });
    expect(summaries(decide(aSnapshot([sized]), DECIDE_OPTIONS).actions)).toEqual([
      "adopt a with 4000m/16Gi",
    ]);
    const outcome = annotated(aRollout(FOUR), { isStripped: true });
    const stripped = decide(aSnapshot([sized], withWrite({ attempts: 4, outcome }, "adopt")), DECIDE_OPTIONS);
    expect(stripped.actions).toEqual([]);
    expect(failuresIn(stripped)).toMatchObject([{ reason: "FieldConflict" }]);
  });

  it("is adopted after a move from another service only when its rollout has ended", () => {
    const lastRollout = aRollout(FOUR, { serviceId: "another" });
    const moved = (changes: Partial<PipeView>) =>
      actionsFor(aSnapshot([rollingTo("a", FOUR, { lastRollout, ...changes })]));
    expect(moved({})).toEqual([]);
    expect(moved({ rollout: COMPLETE })).toEqual(["adopt a with 4000m/16Gi"]);
    expect(moved({ lastRollout: { ...lastRollout, startedAtMs: 0 } })).toEqual(["a back to 1000m/4Gi"]);
  });
});

describe("a pipe that has the size, and whose annotation another writer removes", () => {
  const pipe = rollingTo("a", FOUR, { rollout: COMPLETE });

  function stripped(attempts: number, agoMs: number, scaling = aScaling(4)): Snapshot {
    const outcome = annotated(aRollout(FOUR), { isStripped: true });
    const write = aWrite("uid-a", "adopt", { attempts, lastAtMs: NOW_MS - agoMs, outcome });
    return aSnapshot([pipe], { scaling, writes: someWrites([write]) });
  }

  it("has a field conflict, and gets the annotation again only when a retry is requested", () => {
    expect(statesFor(stripped(1, 60_000))).toEqual(["failed"]);
    expect(actionsFor(stripped(1, 60_000))).toEqual([]);
    const asked = aScaling(4, { retryRequestedAtMs: NOW_MS - 1000 });
    expect(actionsFor(stripped(1, 60_000, asked))).toEqual(["adopt a with 4000m/16Gi"]);
    expect(actionsFor(stripped(2, 500, asked))).toEqual([]);
  });

  it("shows when a retry is requested for later", () => {
    const failureAt = (retryRequestedAtMs: number) => {
      const snapshot = stripped(1, 60_000, aScaling(4, { retryRequestedAtMs }));
      return assessmentsIn(decide(snapshot, DECIDE_OPTIONS))[0]?.failure;
    };
    expect(failureAt(NOW_MS + 1000)?.retryAtMs).toBe(NOW_MS + 1000);
    expect(failureAt(NOW_MS - 60_000)).not.toHaveProperty("retryAtMs");
  });

  it("is still rolled back after a rollout that failed", () => {
    const failing = rollingTo("a", FOUR, { stopsOldPodsFirst: true });
    const pod = aPod("a-1", { unschedulable: "no node" }, { resources: amounts(FOUR) });
    const snapshot = { ...stripped(4, 1000), pipes: [failing], pods: new Map([["a", [pod]]]) };
    expect(actionsFor(snapshot)).toEqual(["a back to 1000m/4Gi"]);
  });

  it("gets the annotation of the same rollout again if a retry is requested", () => {
    const { actions } = decide(
      stripped(4, 1000, aScaling(4, { retryRequestedAtMs: NOW_MS })),
      DECIDE_OPTIONS,
    );
    expect(actions).toMatchObject([{ type: "adopt", rollout: aRollout(FOUR) }]);
  });
});
