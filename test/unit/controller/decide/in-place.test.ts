import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { recheckAtMs } from "../../../../src/controller/decide/recheck.ts";
import { waitingFor } from "../../../../src/controller/report/waiting.ts";
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
    expect(committed(3).decision.waitsForCommit).toBe(false);
  });

  it("records that time as the annotation can store it, although a monotonic clock has fractions", () => {
    const view = anInPlaceView();
    const measured = new Map(
      pipes.map(({ metadata }) => [metadata.uid, { ...view, nowMs: view.beganAtMs + 5000.25 }]),
    );
    const { actions } = decide({ ...snapshot, inPlace: measured }, { ...DECIDE_OPTIONS, freeCommits: 1 });
    expect(actions).toMatchObject([{ rollout: { inPlaceStartedAtMs: snapshot.nowMs - 5001 } }]);
  });

  it("records in the annotation when the resize of the pods started", () => {
    expect(committed(1).decision.actions).toMatchObject([
      { type: "resize", isCommit: true, rollout: { inPlaceStartedAtMs: snapshot.nowMs - 5000 } },
    ]);
  });
});

describe("decide, with pipes that can be resized in place", () => {
  const done = aPipe("done", { size: sizeOfCores(4), lastRollout: aRollout(sizeOfCores(4)) });
  const waiting = ["a", "b", "c"].map((name) => aPipe(name));
  const begun = (freeBegins: number, pipes = [done, ...waiting]) => {
    const snapshot = aSnapshot(pipes, { strategy: "InPlaceOrRollout" });
    const decision = decide(snapshot, { ...DECIDE_OPTIONS, freeBegins });
    const names = decision.actions.flatMap((action) =>
      action.type === "begin-in-place" ? [action.pipe.metadata.name] : [],
    );
    return { names, actions: decision.actions, sizing: decision.sizing, snapshot, decision };
  };

  it("begins only as many as the rate across all services allows, and reports what the others wait for", () => {
    expect(begun(3)).toMatchObject({ names: ["a", "b", "c"], sizing: { holdBack: "nothing" } });
    const { names, sizing } = begun(2);
    expect(names).toEqual(["a", "b"]);
    expect(sizing && waitingFor(sizing)).toBe(" because at most three pipes per second are resized in place");
  });

  it("does not poll while a pipe waits for its turn", () => {
    const { actions, snapshot, decision } = begun(0);
    expect(actions).toEqual([]);
    expect(recheckAtMs(snapshot, decision, DECIDE_OPTIONS)).toBeUndefined();
  });

  it("does not let other pipes begin before the canary", () => {
    expect(begun(0, waiting)).toMatchObject({ names: [], sizing: { holdBack: "in-place-pace" } });
    expect(begun(1, waiting)).toMatchObject({ names: ["a"], sizing: { holdBack: "canary" } });
  });

  it("starts rollouts without a turn, for pipes without replicas or after a fallback", () => {
    const fallback = { reason: "NotSupported", message: "the API server cannot resize pods" } as const;
    const fellBack = aPipe("a");
    const inPlace = new Map([[fellBack.metadata.uid, anInPlaceView({ fallback })]]);
    const status = {
      desired: {
        replicaCpuMillicores: 4000,
        replicaMemoryGb: 16,
        summary: "4 cpu / 16 Gi",
        source: "Spec" as const,
      },
      pipes: { total: 3, updated: 1, summary: "1/3", fallbacks: [{ pipe: "a", ...fallback }] },
    };
    const pipes = [done, fellBack, aPipe("idle", { replicas: 0 })];
    const scaling = aScaling(4, { status });
    const snapshot = aSnapshot(pipes, { strategy: "InPlaceOrRollout", inPlace, scaling });
    const { actions, sizing } = decide(snapshot, { ...DECIDE_OPTIONS, freeBegins: 0 });
    expect(actions).toMatchObject([
      { type: "resize", pipe: { metadata: { name: "a" } } },
      { type: "resize", pipe: { metadata: { name: "idle" } } },
    ]);
    expect(sizing?.holdBack).toBe("nothing");
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
