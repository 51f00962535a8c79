import { describe, expect, it } from "vitest";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor, statesFor } from "../../../support/fixtures/decisions.ts";
import { aPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  resizedTo,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const FOUR = sizeOfCores(4);

describe("the pipes of a service that is rescaled", () => {
  it("begin with one canary", () => {
    expect(actionsFor(aSnapshot([aPipe("a"), aPipe("b"), aPipe("c")]))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(aSnapshot([rollingTo("a", FOUR), aPipe("b"), aPipe("c")]))).toEqual([]);
  });

  it("begin with a healthy one", () => {
    const ill = aPipe("a", { rollout: UNDER_WAY });
    expect(actionsFor(aSnapshot([ill, aPipe("b")]))).toEqual(["b 4000m/16Gi"]);
    const crashing = aPipe("a", { rollout: { ...COMPLETE, isAvailable: false } });
    expect(actionsFor(aSnapshot([crashing, aPipe("b")]))).toEqual(["b 4000m/16Gi"]);
  });

  it("do not wait for one whose pods are all terminating, and which is resized in place when it has new ones", () => {
    const { inTurn, rollout } = aStatefulPipe({ status: { replicas: 1, updatedReplicas: 0 } });
    const ending = aLabelledPipe("a", { replicas: 1, inTurn, rollout });
    const crashing = aPipe("b", { rollout: { ...COMPLETE, isAvailable: false } });
    const ended = new Map([["a", [aPod("a-0", { isTerminating: true, isActive: false })]]]);
    const next = (pods: typeof ended) =>
      actionsFor(aSnapshot([ending, crashing], { strategy: "InPlaceOrRollout", pods }));
    expect(next(ended)).toEqual(["b 4000m/16Gi"]);
    expect(next(new Map([["a", [aPod("a-0")]]]))).not.toContain("b 4000m/16Gi");
  });

  it("follow the canary within the limits", () => {
    const done = resizedTo("a", FOUR);
    const pipes = [done, aPipe("b"), aPipe("c"), aPipe("d"), aPipe("e")];
    expect(actionsFor(aSnapshot(pipes))).toEqual(["b 4000m/16Gi", "c 4000m/16Gi", "d 4000m/16Gi"]);
    expect(actionsFor(aSnapshot(pipes), { ...DECIDE_OPTIONS, overallFree: 1 })).toEqual(["b 4000m/16Gi"]);
  });

  it("are done without replicas as soon as their templates have the size", () => {
    const unseen = { ...UNDER_WAY, isSeen: false };
    const idle = { replicas: 0, lastRollout: aRollout(FOUR, { replicas: 0 }) };
    expect(statesFor(aSnapshot([rollingTo("a", FOUR, { ...idle, rollout: unseen })]))).toEqual(["done"]);
    expect(statesFor(aSnapshot([rollingTo("a", FOUR, { ...idle, rollout: COMPLETE })]))).toEqual(["done"]);
  });

  it("wait for pods that are still terminating", () => {
    const ending = { ...COMPLETE, terminatingReplicas: 1 };
    const done = ["a", "b", "c"].map((name) => resizedTo(name, FOUR, { rollout: ending }));
    expect(actionsFor(aSnapshot([...done, aPipe("d")]))).toEqual([]);
  });

  it("do not wait for a paused one", () => {
    const done = resizedTo("a", FOUR);
    const paused = ["b", "c", "d"].map((name) => rollingTo(name, FOUR, { isPaused: true }));
    expect(actionsFor(aSnapshot([done, ...paused, aPipe("e")]))).toEqual(["e 4000m/16Gi"]);
  });

  it("go directly to the newest size", () => {
    const older = rollingTo("a", sizeOfCores(2));
    expect(actionsFor(aSnapshot([older, aPipe("b")], { scaling: aScaling(8) }))).toEqual(["a 8000m/32Gi"]);
  });

  it.each([
    [
      "get the newest size during a rollout, even if the limit across all services is reached",
      1,
      ["a 8000m/32Gi"],
    ],
    ["do not get the newest size after a rollout that timed out while that limit is reached", 0, []],
  ])("%s", (_, leftMs, actions) => {
    const startedAtMs = NOW_MS - POLICY.rolloutTimeoutMs + leftMs;
    const older = rollingTo("a", sizeOfCores(2), { lastRollout: aRollout(sizeOfCores(2), { startedAtMs }) });
    const snapshot = aSnapshot([older], { scaling: aScaling(8) });
    expect(actionsFor(snapshot, { ...DECIDE_OPTIONS, overallFree: 0 })).toEqual(actions);
  });
});
