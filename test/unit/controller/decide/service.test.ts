import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor } from "../../../support/fixtures/decisions.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

describe("a service without work", () => {
  const pipe = aPipe("a");
  const unknown = { ok: false, obstacle: { reason: "UnknownTier", message: "" } } as const;
  it.each<[string, Snapshot]>([
    ["if the service is unknown", aSnapshot([pipe], { namespace: undefined, tier: unknown })],
    ["if the tier is unknown", aSnapshot([pipe], { tier: unknown })],
    [
      "while the PipeScaling is being deleted",
      aSnapshot([pipe], { scaling: aScaling(4, { isBeingDeleted: true }) }),
    ],
    [
      "while the service is suspended",
      aSnapshot([pipe], { scaling: aScaling(4, { spec: { ...aScaling(4).spec, suspend: true } }) }),
    ],
    [
      "if the pipes have the size",
      aSnapshot([aPipe("a", { size: FOUR, lastRollout: aRollout(FOUR, { cameUp: true }) })]),
    ],
    [
      "if the pipes have the default size of the tier",
      aSnapshot([aPipe("a")], { scaling: aScaling(undefined) }),
    ],
    [
      "if the container of a pipe is ambiguous",
      aSnapshot([aPipe("a", { container: { problem: "two" }, size: undefined })]),
    ],
    ["if there are no pipes", aSnapshot([], { scaling: undefined })],
  ])("has no actions %s", (_, snapshot) => expect(actionsFor(snapshot)).toEqual([]));
});

describe("a service with a pipe that records a newer generation of the PipeScaling than the cache", () => {
  const ahead = aPipe("a", { lastRollout: aRollout(sizeOfCores(8), { scalingGeneration: 2 }) });
  it("is not resized until the generation is confirmed", () => {
    expect(actionsFor(aSnapshot([ahead, aPipe("b")]))).toEqual(["confirm the generation for a"]);
  });
  it("is resized as usual if the generation belongs to another PipeScaling", () => {
    const lastRollout = aRollout(sizeOfCores(8), { scalingGeneration: 2, scalingUid: "another" });
    expect(actionsFor(aSnapshot([aPipe("a", { lastRollout })]))).toEqual(["a 4000m/16Gi"]);
  });
});

describe("a service without a PipeScaling", () => {
  const sizeSpec = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
  const bare = aPipe("a", { size: undefined });

  it("gets one without a size if its pipes have no resources, and otherwise one with their size", () => {
    expect(actionsFor(aSnapshot([bare], { scaling: undefined }))).toEqual(["create {}"]);
    const sized = aPipe("b", { size: FOUR });
    expect(actionsFor(aSnapshot([sized], { scaling: undefined }))).toEqual([
      `create ${JSON.stringify(sizeSpec)}`,
    ]);
  });

  it("gets one with the newest size of its pipes, and a suspended one if a pipe has another size", () => {
    const older = rollingTo("a", sizeOfCores(2), {
      lastRollout: aRollout(sizeOfCores(2), { startedAtMs: 1 }),
    });
    const at = (...pipes: PipeView[]) => actionsFor(aSnapshot(pipes, { scaling: undefined }));
    expect(at(rollingTo("a", FOUR), rollingTo("b", FOUR))).toEqual([`create ${JSON.stringify(sizeSpec)}`]);
    expect(at(older, rollingTo("b", FOUR))).toEqual([
      `create ${JSON.stringify({ ...sizeSpec, suspend: true })}`,
    ]);
  });

  it.each([
    ["with resources", FOUR, [`create ${JSON.stringify(sizeSpec)}`]],
    ["without resources", undefined, ["create {}"]],
  ])(
    "gets one when its other pipes have had time to get their labels, after pipes %s",
    (_, size, created) => {
      const labeled = (...agoMs: readonly number[]) => {
        const pipes = agoMs.map((ago, index) => aPipe(`${index}`, { size, labeledAtMs: NOW_MS - ago }));
        const snapshot = aSnapshot(pipes, { scaling: undefined });
        return {
          actions: actionsFor(snapshot),
          atMs: recheckAtMs(snapshot, decide(snapshot, DECIDE_OPTIONS)),
        };
      };
      expect(labeled(4_999, 0)).toEqual({ actions: [], atMs: NOW_MS + 1 });
      expect(labeled(5_000, 0).actions).toEqual(created);
    },
  );

  it("gets one at once if all of its pipes got their labels when they were created, without resources", () => {
    const [agoMs, laterMs] = [NOW_MS - 100, NOW_MS];
    const made = { size: undefined, createdAtMs: agoMs, labeledAtMs: agoMs };
    const created = aPipe("a", made);
    const at = (...pipes: PipeView[]) => actionsFor(aSnapshot(pipes, { scaling: undefined }));
    expect(at(created, aPipe("b", made))).toEqual(["create {}"]);
    expect(at(created, aPipe("b", { ...made, labeledAtMs: laterMs }))).toEqual([]);
    expect(at(created, aPipe("b", { ...made, size: FOUR }))).toEqual([]);
  });

  it("gets none too early by a clock that is slightly behind, and does not wait for one that is wrong", () => {
    const labeled = (...aheadMs: readonly number[]) => {
      const pipes = aheadMs.map((ms, i) => aPipe(`${i}`, { size: FOUR, labeledAtMs: NOW_MS + ms }));
      const snapshot = aSnapshot(pipes, { scaling: undefined });
      return { actions: actionsFor(snapshot), atMs: recheckAtMs(snapshot, decide(snapshot, DECIDE_OPTIONS)) };
    };
    expect(labeled(1)).toEqual({ actions: [], atMs: NOW_MS + 5_001 });
    expect(labeled(5_000, 9_000)).toEqual({ actions: [], atMs: NOW_MS + 10_000 });
    expect(labeled(5_001, 9_000).actions).toEqual([`create ${JSON.stringify(sizeSpec)}`]);
    expect(labeled(3_600_000, 0).actions).toEqual([]);
  });

  it("gets one with the size of a pipe that moved from another service", () => {
    const movedIn = rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, { serviceId: "another" }) });
    expect(actionsFor(aSnapshot([movedIn, aPipe("b")], { scaling: undefined }))).toEqual([
      `create ${JSON.stringify(sizeSpec)}`,
    ]);
  });

  it("gets one again after a grace period if the deletion was observed", () => {
    const at = (atMs: number) =>
      actionsFor(aSnapshot([bare], { scaling: undefined, recreation: { atMs, isSeen: true } }));
    expect(at(NOW_MS + 1)).toEqual([]);
    expect(at(NOW_MS)).toEqual(["create {}"]);
  });

  it("waits for the grace period of an unseen deletion only if a pipe was resized before", () => {
    const at = (pipe: PipeView, atMs: number, pods: readonly PodView[] = []) => {
      const given = { scaling: undefined, recreation: { atMs, isSeen: false }, pods: new Map([["a", pods]]) };
      return actionsFor(aSnapshot([pipe, aPipe("b", { size: FOUR })], given));
    };
    expect(at(rollingTo("a", FOUR), NOW_MS + 1)).toEqual([]);
    expect(at(rollingTo("a", FOUR), NOW_MS)).toEqual([`create ${JSON.stringify(sizeSpec)}`]);
    expect(at(aPipe("a"), NOW_MS + 1)).toEqual([`create ${JSON.stringify(sizeSpec)}`]);
    // The first resize of all, before a template has followed its pods.
    const pods = [aResizedPod("a-1", { resizedAtMs: NOW_MS })];
    expect(at(aPipe("a"), NOW_MS + 1, pods)).toEqual([]);
    expect(at(aPipe("a"), NOW_MS + 1, [aPod("a-1")])).toHaveLength(1);
  });

  it("gets none at once again if its creation was refused", () => {
    const refused = (agoMs: number) =>
      aWrite("pipes/service", "create", {
        subject: "",
        lastAtMs: NOW_MS - agoMs,
        outcome: failed({ reason: "Forbidden" }, 0),
      });
    const snapshotAfter = (agoMs: number) =>
      aSnapshot([bare], { scaling: undefined, writes: someWrites([refused(agoMs)]) });
    expect(actionsFor(snapshotAfter(999))).toEqual([]);
    expect(actionsFor(snapshotAfter(1000))).toEqual(["create {}"]);
  });
});
