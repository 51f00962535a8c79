import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { InPlaceFailure, LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { MAX_FALLBACKS, type PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { mergePatch } from "../../../../src/runtime/merge-patch.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const FOUR = sizeOfCores(4);
const inPlaceFailure: InPlaceFailure = {
  size: FOUR,
  reason: "Deferred",
  message: "pod a-1: the node has no room",
  atMs: NOW_MS - 60_000,
};
const FALLBACKS = [{ pipe: "a", reason: "Deferred", message: inPlaceFailure.message }];

function resized(name: string, changes: Partial<LastRollout> = {}): PipeView {
  return aPipe(name, { size: FOUR, lastRollout: aRollout(FOUR, { cameUp: true, ...changes }) });
}

function inPlace(name: string, changes: Partial<LastRollout> = {}): PipeView {
  return resized(name, { inPlaceStartedAtMs: NOW_MS - 65_000, ...changes });
}

/** The status of pipes that should have so many cores. */
function statusFor(
  pipes: readonly PipeView[],
  status: PipeScalingStatus = {},
  cores = 4,
  changes: Partial<PipeScalingView> = {},
  observed: Partial<Snapshot> = {},
) {
  const scaling = aScaling(cores, { status, ...changes });
  const snapshot = aSnapshot(pipes, { scaling, strategy: "InPlaceOrRollout", ...observed });
  return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
}

describe("the status", () => {
  it("reports for each pipe whether it was resized in place or by a rollout", () => {
    const deployed = aPipe("c", { size: FOUR });
    const empty = resized("d", { replicas: 0 });
    expect(statusFor([inPlace("a"), resized("b"), deployed, empty]).pipes).toMatchObject({
      updated: 4,
      inPlace: 1,
      resizedBy: { a: "InPlace", b: "Rollout" },
    });
  });

  it("reports the resize method only for the desired size", () => {
    const two = aPipe("a", { size: sizeOfCores(2), lastRollout: aRollout(sizeOfCores(2)) });
    const { inPlace, resizedBy } = statusFor([two]).pipes ?? {};
    expect({ inPlace, resizedBy }).toEqual({ inPlace: undefined, resizedBy: undefined });
  });

  it("reports why a pipe fell back to a rollout, even after the rollout has completed", () => {
    const rolling = rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, { inPlaceFailure }) });
    expect(statusFor([rolling, aPipe("b")]).pipes).toMatchObject({
      fallbacks: FALLBACKS,
      pending: [
        { name: "a", state: "Rolling" },
        { name: "b", state: "Waiting" },
      ],
    });
    expect(statusFor([resized("a", { inPlaceFailure })]).pipes).toMatchObject({
      fallbacks: FALLBACKS,
      resizedBy: { a: "Rollout" },
    });
  });

  const adopted = aRollout(FOUR, { generation: 0, isRollback: true, inPlaceFailure });
  const onDelete = { options: { updateStrategy: { type: "OnDelete" } } } as const;

  it.each<[string, PipeView]>([
    ["waits for a request", aPipe("a", { lastRollout: adopted })],
    ["is left to its owner", aStatefulPipe(onDelete, aRollout(sizeOfCores(1), { inPlaceFailure }))],
  ])("reports no fallback for a pipe that %s, because no rollout follows", (_, pipe) => {
    const changes = { isUnrequested: !pipe.inTurn };
    expect(statusFor([pipe], {}, 4, changes).pipes).toMatchObject({ pending: [{}], fallbacks: undefined });
  });

  it.each([
    [true, undefined, "its pods get their old size again"],
    [false, FALLBACKS, "its pods get their old size again before they are replaced"],
  ])(
    "says whether a rollout follows when pods return to their size (%s: no request)",
    (isUnrequested, fallbacks, message) => {
      const pipe = aLabelledPipe("a", { lastRollout: adopted });
      const pods = new Map([["a", [aResizedPod("a-1")]]]);
      const { pipes } = statusFor([pipe], {}, 4, { isUnrequested }, { pods });
      expect(pipes).toMatchObject({ fallbacks, pending: [{ message }] });
    },
  );

  describe("with the strategy InPlace, if a new pod cannot get the size that its template had before", () => {
    const failure = { ...inPlaceFailure, reason: "Reverted", revision: 1 } as const;
    const fallbacks = [{ ...FALLBACKS[0], reason: "Reverted" }];
    const done = { startedAtMs: NOW_MS - 3_600_000, cameUp: true, inPlaceFailure: failure };
    const report = (lastRollout: Partial<LastRollout>, pods = [aResizedPod("a-1")], changes = {}) => {
      const rollout = aRollout(FOUR, { ...done, ...lastRollout });
      const pipe = aLabelledPipe("a", { size: FOUR, lastRollout: rollout, ...changes });
      return statusFor([pipe], {}, 4, {}, { pods: new Map([["a", pods]]), strategy: "InPlace" });
    };
    const inPlaceStartedAtMs = NOW_MS - 3_700_000;

    it("reports no fallback, because the pipe waits", () => {
      for (const lastRollout of [{}, { inPlaceStartedAtMs }, { generation: 0, startedAtMs: failure.atMs }])
        expect(report(lastRollout, [aPod("a-1")]).pipes).toMatchObject({
          pending: [{ state: "Waiting" }],
          fallbacks: undefined,
        });
    });

    it("reports no fallback when the pod has the size, also after a change of the template by its owner", () => {
      for (const revision of [1, 2]) {
        const { pipes } = report({ inPlaceStartedAtMs }, undefined, { revision });
        expect(pipes).toMatchObject({ updated: 1, resizedBy: { a: "InPlace" }, fallbacks: undefined });
      }
    });

    it("does not say that it is the reason why the owner replaces pods", () => {
      const { conditions } = report({}, undefined, { revision: 2, rollout: UNDER_WAY });
      expect(conditions?.[0]?.message).not.toContain("cannot be resized in place");
    });

    it("still reports the fallback to the rollout that began with a failure", () => {
      const { pipes } = report({ startedAtMs: failure.atMs + 10_000 });
      expect(pipes).toMatchObject({ resizedBy: { a: "Rollout" }, fallbacks });
    });
  });

  it("says that pods are being replaced for this reason only while that happens", () => {
    const messageFor = (pipe: PipeView) => statusFor([pipe]).conditions?.[0]?.message;
    const sentence = "The pods of a are being replaced because they cannot be resized in place";
    const lastRollout = aRollout(FOUR, { inPlaceFailure });
    expect(messageFor(rollingTo("a", FOUR, { lastRollout }))).toContain(sentence);
    expect(messageFor(resized("a", { inPlaceFailure }))).not.toContain(sentence);
    const rolledBack = aPipe("a", { lastRollout: { ...lastRollout, isRollback: true } });
    expect(messageFor(rolledBack)).not.toContain(sentence);
  });

  it("takes the reasons from the annotations, whatever it was before", () => {
    const pipe = resized("a", { inPlaceFailure });
    const status = statusFor([pipe]);
    expect(statusFor([pipe], status).pipes).toEqual(status.pipes);
    expect(statusFor([pipe], { pipes: { total: 9, updated: 9, summary: "" } }).pipes).toEqual(status.pipes);
  });

  it("drops the reason when another size is desired", () => {
    const pipe = resized("a", { inPlaceFailure });
    expect(statusFor([pipe], statusFor([pipe]), 2).pipes?.fallbacks).toBeUndefined();
  });

  it("reports a rollout if the pods were replaced after their resize", () => {
    expect(statusFor([inPlace("a", { inPlaceFailure })]).pipes?.resizedBy).toEqual({ a: "Rollout" });
  });

  it("does not report a later rollout by the owner", () => {
    const updated = { ...inPlace("a"), revision: 2 };
    expect(statusFor([updated], statusFor([inPlace("a")])).pipes?.resizedBy).toEqual({ a: "InPlace" });
  });

  it("grows by one entry per resized pipe, and so does the patch, for any number of resized pipes", () => {
    const patchSize = (done: number) => {
      const pipes = (count: number) =>
        Array.from({ length: 400 }, (_, at) => (at < count ? inPlace(`pipe-${at}`) : aPipe(`pipe-${at}`)));
      const before = statusFor(pipes(done));
      const patch = mergePatch(before, statusFor(pipes(done + 1), before));
      expect(patch).toMatchObject({ pipes: { resizedBy: { [`pipe-${done}`]: "InPlace" } } });
      return JSON.stringify(patch).length;
    };
    expect(patchSize(300)).toBeLessThan(patchSize(100) + 100);
  });

  it("limits the number of reasons", () => {
    const pipes = Array.from({ length: 30 }, (_, at) => resized(`pipe-${at}`, { inPlaceFailure }));
    expect(statusFor(pipes).pipes?.fallbacks).toHaveLength(MAX_FALLBACKS);
  });
});
