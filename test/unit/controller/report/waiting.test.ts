import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { whyPending } from "../../../../src/controller/report/conditions.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  DECIDE_OPTIONS,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);

/** Returns why each of the pipes is pending, when the service is decided with these changes. */
function reasonsFor(
  pipes: readonly PipeView[],
  changes: Partial<Snapshot> = {},
  options: Partial<typeof DECIDE_OPTIONS> = {},
): (string | undefined)[] {
  const { sizing } = decide(aSnapshot(pipes, changes), { ...DECIDE_OPTIONS, ...options });
  if (!sizing) throw new Error("the service is not resized");
  return sizing.assessments.map((each) => whyPending(each, sizing));
}

describe("the reason why a pipe waits", () => {
  const waiting = aPipe("waiting");
  const rolling = rollingTo("rolling", FOUR);

  it("is the canary", () => {
    expect(reasonsFor([rolling, waiting])).toEqual([undefined, "waiting for rolling to prove the size"]);
  });

  it("is the limit of the service", () => {
    const done = aPipe("done", { size: FOUR, lastRollout: aRollout(FOUR) });
    const others = ["b", "c"].map((name) => rollingTo(name, FOUR));
    expect(reasonsFor([done, rolling, ...others, waiting]).at(-1)).toBe(
      "waiting for rolling, b, c, because the limit of concurrent resizes and rollouts is reached",
    );
  });

  it("is the limit across all services", () => {
    expect(reasonsFor([waiting], {}, { overallFree: 0 })).toEqual([
      "waiting because the limit of concurrent rollouts across all services is reached",
    ]);
  });

  it("is the rollout window, with the time when it opens", () => {
    const rolloutWindow = aWindow({ schedule: "0 2 * * *" });
    expect(reasonsFor([waiting], { rolloutWindow })).toEqual([
      "waiting for the rollout window, which opens at 2026-06-02T02:00:00Z",
    ]);
  });

  it("is the failure of another pipe", () => {
    const failed = rollingTo("failed", FOUR, { lastRollout: aRollout(FOUR, { startedAtMs: 0 }) });
    expect(reasonsFor([failed, waiting])).toEqual([
      "the rollout has not completed in 15 min",
      "waiting because of the failure",
    ]);
  });

  it("is the dry runs of all pipes", () => {
    expect(reasonsFor([waiting, aPipe("b")], {}, { makesDryRuns: true })).toEqual(
      Array(2).fill("waiting for dry runs of the pipes of the service"),
    );
  });

  it("is that the service is suspended", () => {
    const scaling = aScaling(4, { spec: { ...aScaling(4).spec, suspend: true } });
    expect(reasonsFor([waiting], { scaling })).toEqual(["waiting while the service is suspended"]);
  });

  it("is a size of a later generation, until the PipeScaling is read", () => {
    const later = aRollout(sizeOfCores(1), { scalingGeneration: 9 });
    expect(reasonsFor([aPipe("a", { lastRollout: later })])).toEqual([
      "waiting for a read of the PipeScaling, because a pipe records a later generation of it",
    ]);
  });

  it("is that no node has room for the new pod", () => {
    const pod = aPod("rolling-1", { unschedulable: "0/3 nodes are available" }, { resources: amounts(FOUR) });
    const pods = new Map([["rolling", [pod]]]);
    expect(reasonsFor([rolling], { pods })).toEqual(["0/3 nodes are available"]);
  });

  it("is that its owner paused the Deployment", () => {
    const paused = rollingTo("paused", FOUR, { isPaused: true });
    expect(reasonsFor([paused])).toEqual(["its owner paused the Deployment: resume it"]);
  });
});

describe("what happens to a pipe that is resized in place", () => {
  const [a, b] = [aLabelledPipe("a"), aLabelledPipe("b")];
  const reasonsWith = (pods: Snapshot["pods"], pipes = [a, b]) =>
    reasonsFor(pipes, { strategy: "InPlaceOrRollout", pods });

  it("is said of its pods, and the others wait for it", () => {
    const resizing = aResizedPod("a-1", { observedGeneration: 1 });
    const pods = new Map([
      ["a", [resizing]],
      ["b", [aPod("b-1")]],
    ]);
    expect(reasonsWith(pods)).toEqual([
      "its pods are being resized in place",
      "waiting for a to prove the size",
    ]);
  });

  it("is said of its template when the pods have the size", () => {
    expect(reasonsWith(new Map([["a", [aResizedPod("a-1")]]]), [a])).toEqual([
      "its template follows its pods",
    ]);
  });

  it("is said of its owner if a paused Deployment keeps its template from following", () => {
    const paused = { ...a, isPaused: true };
    expect(reasonsWith(new Map([["a", [aResizedPod("a-1")]]]), [paused])).toEqual([
      "its owner paused the Deployment: resume it",
    ]);
  });
});
