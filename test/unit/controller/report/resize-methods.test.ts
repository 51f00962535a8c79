import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Fallback, InPlaceView } from "../../../../src/controller/in-place/view.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { MAX_FALLBACKS, type PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { mergePatch } from "../../../../src/runtime/merge-patch.ts";
import {
  anInPlaceView,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
const DEFERRED: Fallback = { reason: "Deferred", message: "pod a-1: the node has no room" };
/** After the commit: the pods are listed, and all of them have the size. */
const listed = anInPlaceView({ replicaSets: [] });
const fellBack = anInPlaceView({ fallback: DEFERRED });

function resized(name: string, changes: Partial<LastRollout> = {}): DeploymentView {
  return aPipe(name, { size: FOUR, lastRollout: aRollout(FOUR, changes) });
}

function inPlace(name: string): DeploymentView {
  return resized(name, { inPlaceStartedAtMs: NOW_MS - 65_000 });
}

/** Returns the pipes of the status after a controller with these `views` has reconciled; four cores are desired. */
function pipesOf(
  pipes: readonly DeploymentView[],
  views: Readonly<Record<string, InPlaceView>> = {},
  status: PipeScalingStatus = {},
): PipeScalingStatus {
  const scaling = aScaling(4, { status });
  const known = new Map(Object.entries(views).map(([name, view]) => [`uid-${name}`, view]));
  const snapshot = aSnapshot(pipes, { scaling, strategy: "InPlaceOrRollout", inPlace: known });
  return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS).sizing, POLICY);
}

describe("the status", () => {
  it("reports for each pipe whether it was resized in place or by a rollout", () => {
    const deployed = aPipe("c", { size: FOUR });
    const empty = resized("d", { replicas: 0 });
    expect(pipesOf([inPlace("a"), resized("b"), deployed, empty]).pipes).toMatchObject({
      updated: 4,
      inPlace: 1,
      resizedBy: { a: "InPlace", b: "Rollout" },
    });
  });

  it("reports the resize method only for the desired size", () => {
    const two = aPipe("a", { size: sizeOfCores(2), lastRollout: aRollout(sizeOfCores(2)) });
    const { inPlace, resizedBy } = pipesOf([two]).pipes ?? {};
    expect({ inPlace, resizedBy }).toEqual({ inPlace: undefined, resizedBy: undefined });
  });

  it("reports why a pipe fell back to a rollout, even after the rollout has completed", () => {
    const fallbacks = [{ pipe: "a", ...DEFERRED }];
    const rolling = pipesOf([rollingTo("a", FOUR), aPipe("b")], { a: fellBack });
    expect(rolling.pipes).toMatchObject({
      fallbacks,
      pending: [
        {
          name: "a",
          message: expect.stringContaining("cannot be resized in place and are being replaced: pod a-1"),
        },
        { name: "b", state: "Waiting" },
      ],
    });
    expect(pipesOf([resized("a"), resized("b")], { a: fellBack }, rolling).pipes).toMatchObject({
      fallbacks,
      resizedBy: { a: "Rollout", b: "Rollout" },
    });
  });

  it("keeps the reason across a restart of the controller until another size is desired", () => {
    const before = pipesOf([resized("a")], { a: fellBack });
    expect(pipesOf([resized("a")], {}, before).pipes?.fallbacks).toEqual([{ pipe: "a", ...DEFERRED }]);
    const { fallbacks } = pipesOf([resized("a")], {}, { ...before, desired: undefined }).pipes ?? {};
    expect(fallbacks).toBeUndefined();
  });

  it("keeps the reason while the next controller lists the pods after the rollout", () => {
    const before = pipesOf([resized("a")], { a: fellBack });
    const { fallbacks } = pipesOf([resized("a")], { a: listed }, before).pipes ?? {};
    expect(fallbacks).toEqual([{ pipe: "a", ...DEFERRED }]);
  });

  it("drops the reason when the next controller retries the resize in place", () => {
    const before = pipesOf([aPipe("a")], { a: fellBack });
    expect(pipesOf([aPipe("a")], { a: anInPlaceView() }, before).pipes?.fallbacks).toBeUndefined();
    expect(pipesOf([inPlace("a")], { a: listed }, pipesOf([aPipe("a")])).pipes).toMatchObject({ inPlace: 1 });
  });

  it("reports a rollout if the pods were replaced after their resize", () => {
    expect(pipesOf([inPlace("a")], { a: fellBack }).pipes?.resizedBy).toEqual({ a: "Rollout" });
  });

  it("reports a rollout after the commit even if only the previous controller observed it", () => {
    const replaced = { ...inPlace("a"), revision: 2 };
    const next = anInPlaceView({ replicaSets: [], revision: 2 });
    expect(pipesOf([replaced], { a: next }).pipes?.resizedBy).toEqual({ a: "Rollout" });
  });

  it("does not report a later rollout by the owner", () => {
    const before = pipesOf([inPlace("a")]);
    const updated = { ...inPlace("a"), revision: 2 };
    expect(pipesOf([updated], {}, before).pipes?.resizedBy).toEqual({ a: "InPlace" });
  });

  it("grows by one entry per resized pipe, and so does the patch, for any number of resized pipes", () => {
    const patchSize = (done: number) => {
      const pipes = (count: number) =>
        Array.from({ length: 400 }, (_, at) => (at < count ? inPlace(`pipe-${at}`) : aPipe(`pipe-${at}`)));
      const before = pipesOf(pipes(done));
      const patch = mergePatch(before, pipesOf(pipes(done + 1), { [`pipe-${done}`]: listed }, before));
      expect(patch).toMatchObject({ pipes: { resizedBy: { [`pipe-${done}`]: "InPlace" } } });
      return JSON.stringify(patch).length;
    };
    expect(patchSize(300)).toBeLessThan(patchSize(100) + 100);
  });

  it("limits the number of reasons", () => {
    const names = Array.from({ length: 30 }, (_, at) => `pipe-${at}`);
    const views = Object.fromEntries(names.map((name) => [name, fellBack]));
    expect(
      pipesOf(
        names.map((name) => resized(name)),
        views,
      ).pipes?.fallbacks,
    ).toHaveLength(MAX_FALLBACKS);
  });
});
