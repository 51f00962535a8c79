import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import type { WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
const SIZED = {
  size: FOUR,
  lastRollout: aRollout(FOUR, { generation: 3, inPlaceStartedAtMs: NOW_MS - 1000 }),
};

/** Returns the decision and the status for a pipe with four cores. @param cameUp its entry in the status */
function decisionFor(
  cameUp: string | undefined,
  changes: Partial<DeploymentView> = {},
  { cores = 4, overallFree = 50 } = {},
) {
  const status = {
    pipes: { total: 1, updated: 1, summary: "1/1", ...(cameUp ? { cameUp: { a: cameUp } } : {}) },
  };
  const scaling = aScaling(cores, { status });
  const snapshot = aSnapshot([aPipe("a", { ...SIZED, ...changes })], {
    scaling,
    strategy: "InPlaceOrRollout",
  });
  const { actions, sizing } = decide(snapshot, { ...DECIDE_OPTIONS, overallFree });
  return {
    actions: actions.map(({ type }) => type),
    states: sizing?.assessments.map(({ state }) => state),
    cameUp: statusOf(snapshot, scaling, sizing, POLICY).pipes?.cameUp?.["a"],
  };
}

describe("a pipe whose template has the size", () => {
  const rollout = { lastRollout: aRollout(FOUR, { generation: 3 }) };
  it.each([
    ["after a commit that another process made", "uid-a/~/1000m/4Gi", {}],
    ["after an unfinished resize to another size", "uid-a/~/4000m/16Gi", {}],
    ["after a rollout that may have returned to pods of another size", "uid-a/~/1000m/4Gi", rollout],
  ])("is not done until its pods are listed %s", (_, cameUp, changes) => {
    expect(decisionFor(cameUp, changes)).toEqual({
      actions: ["begin-in-place"],
      states: ["rolling"],
      cameUp,
    });
  });

  it.each([
    ["it came up with the size", "uid-a/3/4000m/16Gi", {}],
    ["nothing is known about it", undefined, {}],
    ["a rollout applied the size to the pods", "uid-a/-/1000m/4Gi", rollout],
    ["the entry is of another Deployment", "another/-/4000m/16Gi", {}],
  ])("is done if %s", (_, cameUp, changes) => {
    expect(decisionFor(cameUp, changes)).toMatchObject({ states: ["done"], cameUp: "uid-a/3/4000m/16Gi" });
  });

  it.each(["-", "~"])("is rolling if its pods are being replaced, and keeps the mark %s", (mark) => {
    const cameUp = `uid-a/${mark}/1000m/4Gi`;
    expect(decisionFor(cameUp, { ...rollout, rollout: UNDER_WAY })).toEqual({
      actions: [],
      states: ["rolling"],
      cameUp,
    });
  });
});

describe("a pipe with a new desired size", () => {
  const unseen = { ...UNDER_WAY, isSeen: false };
  const cameUp = "uid-a/3/4000m/16Gi";
  it.each<[string, Partial<DeploymentView>, string, string?]>([
    ["it is scaled after it has come up", { rollout: UNDER_WAY }, "begin-in-place", cameUp],
    ["the Deployment controller has not observed the end of a commit", { rollout: unseen }, "begin-in-place"],
    [
      "its owner scales it or rolls out a change",
      { lastRollout: undefined, rollout: UNDER_WAY },
      "begin-in-place",
    ],
    ["old pods are terminating", { rollout: { ...COMPLETE, terminatingReplicas: 1 } }, "begin-in-place"],
    ["the controller is rolling out another size", { rollout: UNDER_WAY }, "resize"],
    [
      "the Deployment controller has not observed a rollout",
      { rollout: unseen, lastRollout: aRollout(FOUR, { generation: 3, revision: 2 }) },
      "resize",
    ],
  ])("is resized immediately if %s", (_, changes, action, known) => {
    expect(decisionFor(known, changes, { cores: 2 }).actions).toEqual([action]);
  });
});

describe("a pipe that was rolled back", () => {
  it("has come up again with the size of its template, even if another size is desired", () => {
    const changes = { lastRollout: aRollout(FOUR, { generation: 3, isRollback: true, lastGoodSize: FOUR }) };
    const { cameUp } = decisionFor("uid-a/-/4000m/16Gi", changes, { cores: 2, overallFree: 0 });
    expect(cameUp).toBe("uid-a/3/4000m/16Gi");
  });
});

describe("a pipe that waits for another size after an unfinished resize in place", () => {
  it("must come up again with the size of its template", () => {
    const cameUp = "uid-a/~/4000m/16Gi";
    expect(decisionFor(cameUp, {}, { cores: 2, overallFree: 0 })).toEqual({
      actions: [],
      states: ["waiting"],
      cameUp,
    });
  });
});

describe("a pipe whose resize in place another process did not end", () => {
  /** The next actions for it and for another pipe that comes first by name, if its last write failed so often. */
  const actionsAfter = (attempts: number) => {
    const pipe = aPipe("b");
    const status = {
      pipes: { total: 2, updated: 0, summary: "0/2", cameUp: { b: "uid-b/~/1000m/4Gi" } },
    };
    const failed: WriteRecord = {
      ...{ purpose: "resize", size: "4000m/16Gi", attempts, lastAtMs: NOW_MS },
      outcome: { type: "failed", error: { reason: "WriteFailed", message: "down" }, generation: 1 },
    };
    const snapshot = aSnapshot([aPipe("a"), pipe], {
      ...{ scaling: aScaling(4, { status }), strategy: "InPlaceOrRollout" },
      writes: attempts === 0 ? new Map() : new Map([["uid-b", failed]]),
    });
    return decide(snapshot, DECIDE_OPTIONS).actions.map((action) =>
      "pipe" in action ? `${action.type} ${action.pipe.metadata.name}` : action.type,
    );
  };

  it("is the canary, because its pods may have the size already", () => {
    expect(actionsAfter(0)).toEqual(["begin-in-place b"]);
  });

  it("is the only canary while its write is repeated, for about a minute", () => {
    expect(actionsAfter(1)).toEqual([]);
    expect(actionsAfter(6)).toEqual([]);
    expect(actionsAfter(7)).toEqual(["begin-in-place a"]);
  });
});

describe("a pipe of the size that had no replicas when the controller first saw it", () => {
  const untried = { lastRollout: undefined };
  const unavailable = { ...untried, rollout: { ...COMPLETE, isAvailable: false } };

  it("has an entry without a size", () => {
    expect(decisionFor(undefined, { ...untried, replicas: 0 })).toMatchObject({ cameUp: "uid-a/0" });
  });

  it("is not done before its pods are available, although Kubernetes announces a complete rollout", () => {
    expect(decisionFor("uid-a/0", unavailable)).toMatchObject({ states: ["rolling"], cameUp: "uid-a/0" });
  });

  it("stays done after its pods were available once", () => {
    const up = decisionFor("uid-a/0", untried);
    expect(up).toMatchObject({ states: ["done"], cameUp: "uid-a/0/4000m/16Gi" });
    expect(decisionFor(up.cameUp, unavailable).states).toEqual(["done"]);
  });

  it("is done without available pods if another Deployment of its name was the one without replicas", () => {
    expect(decisionFor("uid-b/0", unavailable).states).toEqual(["done"]);
  });
});
