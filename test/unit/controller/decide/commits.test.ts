import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { recheckAtMs } from "../../../../src/controller/decide/recheck.ts";
import { anInPlaceView, aPipe, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";

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

  it("says that a pipe waits for its commit, and does not poll for it", () => {
    const { decision } = committed(0);
    expect(decision.waitsForCommit).toBe(true);
    expect(recheckAtMs(snapshot, decision, DECIDE_OPTIONS)).toBeUndefined();
    expect(committed(3).decision.waitsForCommit).toBeUndefined();
  });

  it("records in the annotation when the pods began to be resized", () => {
    expect(committed(1).decision.actions).toMatchObject([
      { type: "resize", isCommit: true, rollout: { inPlaceStartedAtMs: snapshot.nowMs - 5000 } },
    ]);
  });
});
