import { describe, expect, it } from "vitest";
import type { Assessment } from "../../../../src/controller/decide/assessment.ts";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import type { Snapshot } from "../../../../src/controller/observe/snapshot.ts";
import { whyPending } from "../../../../src/controller/report/waiting.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);

/** Returns why each of the pipes is pending, when the service is decided with these changes. */
function reasonsFor(
  pipes: readonly DeploymentView[],
  changes: Partial<Snapshot> = {},
  options: Partial<typeof DECIDE_OPTIONS> = {},
): (string | undefined)[] {
  const { sizing } = decide(aSnapshot(pipes, changes), { ...DECIDE_OPTIONS, ...options });
  if (!sizing) throw new Error("the service is not resized");
  return sizing.assessments.map((each) => whyPending(each, sizing, undefined));
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
      "waiting for rolling, b, c, because the limit of concurrent rollouts is reached",
    );
  });

  it("is the limit across all services", () => {
    expect(reasonsFor([waiting], {}, { overallFree: 0 })).toEqual(["waiting for rollouts of other services"]);
  });

  it("is the rollout window, with the time when it opens", () => {
    const rolloutWindow = { schedule: "0 2 * * *", durationMs: 3_600_000, timeZone: "UTC" };
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
    expect(reasonsFor([waiting, aPipe("b")], {}, { validatesFirst: true })).toEqual(
      Array(2).fill("waiting for the dry runs of its pipes"),
    );
  });

  it("is that the service is suspended", () => {
    const scaling = aScaling(4, { spec: { ...aScaling(4).spec, suspend: true } });
    expect(reasonsFor([waiting], { scaling })).toEqual(["waiting while the service is suspended"]);
  });

  it("is a size of a later generation, until the PipeScaling is read", () => {
    const later = aRollout(sizeOfCores(1), { scalingGeneration: 9 });
    expect(reasonsFor([aPipe("a", { lastRollout: later })])).toEqual([
      "waiting for the PipeScaling to be read, because a pipe has a later size",
    ]);
  });

  it("is that no node has room for the new pod", () => {
    const unschedulable = new Map([["rolling", "0/3 nodes are available"]]);
    expect(reasonsFor([rolling], { unschedulable })).toEqual(["0/3 nodes are available"]);
  });

  it("is that its owner paused the Deployment", () => {
    const paused = rollingTo("paused", FOUR, { isPaused: true });
    expect(reasonsFor([paused])).toEqual(["its owner paused the Deployment: resume it"]);
  });
});

describe("the reason why pods are replaced", () => {
  it("takes precedence over the resize in place that did not succeed", () => {
    const snapshot = aSnapshot([rollingTo("a", FOUR)], { nowMs: NOW_MS });
    const { sizing } = decide(snapshot, DECIDE_OPTIONS);
    const [assessment] = sizing?.assessments ?? [];
    const begun: Assessment | undefined = assessment && { ...assessment, inPlace: "begin" };
    expect(sizing && begun && whyPending(begun, sizing, "no room")).toBe(
      "its pods cannot be resized in place and are being replaced: no room",
    );
    expect(sizing && begun && whyPending(begun, sizing, undefined)).toBe(
      "its pods are being resized in place",
    );
  });
});
