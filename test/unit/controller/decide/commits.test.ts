import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { recheckAtMs } from "../../../../src/controller/decide/recheck.ts";
import { formatSize, sizeOfCores } from "../../../../src/domain/size.ts";
import {
  anInPlaceView,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
} from "../../../support/fixtures/snapshot.ts";

describe("decide, with pipes whose pods all have the size", () => {
  const pipes = [aPipe("a"), aPipe("b"), aPipe("c")];
  const inPlace = new Map(pipes.map(({ metadata }) => [metadata.uid, anInPlaceView()]));
  const snapshot = aSnapshot(pipes, { strategy: "InPlaceOrRollout", inPlace });
  const committed = (freeCommits: number) => {
    const decision = decide(snapshot, { ...DECIDE_OPTIONS, freeCommits });
    const names = decision.actions.flatMap((action) => ("pipe" in action ? [action.pipe.metadata.name] : []));
    return { names, decision };
  };

  it("starts only as many commits as the rate across all services allows", () => {
    expect(committed(1).names).toEqual(["a"]);
    expect(committed(0).names).toEqual([]);
    expect(committed(3).names).toEqual(["a", "b", "c"]);
  });

  it("reports that a pipe waits for its commit, and does not poll", () => {
    const { decision } = committed(0);
    expect(decision.waitsForCommit).toBe(true);
    expect(recheckAtMs(snapshot, decision, DECIDE_OPTIONS)).toBeUndefined();
    expect(committed(3).decision.waitsForCommit).toBeUndefined();
  });

  it("records in the annotation when the resize of the pods started", () => {
    expect(committed(1).decision.actions).toMatchObject([
      { type: "resize", isCommit: true, rollout: { inPlaceStartedAtMs: snapshot.nowMs - 5000 } },
    ]);
  });
});

describe("a commit whose Deployment has a second ReplicaSet with pods", () => {
  it.each([
    [4, { reason: "NotSettled", message: "its pods are of several ReplicaSets", size: "4000m/16Gi" }],
    [2, undefined],
  ])(
    "ends in a rollout, with a reason only if its size of 4 cores is still desired: %s cores are desired",
    (cores, fallback) => {
      const pipe = aPipe("a", {
        ...{ size: sizeOfCores(4), isPaused: true, isPausedByUs: true },
        lastRollout: aRollout(sizeOfCores(4)),
      });
      const { replicaSets } = anInPlaceView();
      const size = formatSize(sizeOfCores(cores));
      const view = anInPlaceView({ size, replicaSets: [...replicaSets, ...replicaSets] });
      const inPlace = new Map([[pipe.metadata.uid, view]]);
      const snapshot = aSnapshot([pipe], {
        ...{ scaling: aScaling(cores), strategy: "InPlaceOrRollout", inPlace },
      });
      const { actions } = decide(snapshot, DECIDE_OPTIONS);
      expect(actions).toEqual([{ type: "resume", pipe, ...(fallback ? { fallback } : {}) }]);
    },
  );
});
