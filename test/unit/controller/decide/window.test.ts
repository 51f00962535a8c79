import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { summarizeConditions } from "../../../../src/controller/report/conditions.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);

describe("a service with a rollout window", () => {
  // NOW_MS is a Monday, 12:00 UTC.
  const rolloutWindow = aWindow();
  const OPEN = { ...rolloutWindow, schedule: "0 11 * * 1" };
  const opensAtMs = Date.parse("2026-06-06T02:00:00Z");
  const decided = (pipes: readonly PipeView[], changes: Partial<Snapshot> = {}) =>
    decide(aSnapshot(pipes, { rolloutWindow, ...changes }), DECIDE_OPTIONS);

  it("starts no rollout that restarts pods before the window opens, and rechecks when it opens", () => {
    const snapshot = aSnapshot([aPipe("a"), aPipe("b")], { rolloutWindow });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(decision.sizing).toMatchObject({ waitReason: "window", window: { open: false, opensAtMs } });
    expect(recheckAtMs(snapshot, decision)).toBe(opensAtMs);
  });

  it("starts rollouts while the window is open", () => {
    expect(summaries(decided([aPipe("a"), aPipe("b")], { rolloutWindow: OPEN }).actions)).toEqual([
      "a 4000m/16Gi",
    ]);
  });

  it("resizes pipes without replicas and rolls back at any time", () => {
    const failed = rollingTo("a", FOUR, {
      lastRollout: aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs }),
    });
    expect(summaries(decided([failed, aPipe("b", { replicas: 0 })]).actions)).toEqual([
      "b 4000m/16Gi",
      "a back to 1000m/4Gi",
    ]);
  });

  describe("and pods that can be resized in place", () => {
    const pods = new Map(["a", "b"].map((name) => [name, [aPod(`${name}-1`)]] as const));
    const inPlace = (changes: Partial<Snapshot> = {}, pipes = [aLabelledPipe("a"), aLabelledPipe("b")]) =>
      decided(pipes, { strategy: "InPlaceOrRollout", pods, ...changes });

    it("tries one that waits for the window in place again when a retry is requested for a time before that", () => {
      const reason = { reason: "Deferred", message: "no room", atMs: NOW_MS - 1000 } as const;
      const lastRollout = aRollout(sizeOfCores(1), {
        cameUp: true,
        inPlaceFailure: { size: FOUR, ...reason },
      });
      const at = (nowMs: number) => {
        const snapshot = aSnapshot([aLabelledPipe("a", { lastRollout })], {
          rolloutWindow,
          strategy: "InPlaceOrRollout",
          pods,
          scaling: aScaling(4, { retryRequestedAtMs: NOW_MS + 60_000 }),
          nowMs,
        });
        const decision = decide(snapshot, DECIDE_OPTIONS);
        return { summary: summaries(decision.actions), atMs: recheckAtMs(snapshot, decision) };
      };
      expect(at(NOW_MS)).toEqual({ summary: [], atMs: NOW_MS + 60_000 });
      expect(at(NOW_MS + 60_000).summary).toEqual(["resize-pod a-1"]);
    });

    const inPlaceFailure = { size: FOUR, reason: "Infeasible", message: "no room", atMs: NOW_MS } as const;
    const lastRollout = aRollout(sizeOfCores(1), { inPlaceFailure, cameUp: true });
    const fallen = aLabelledPipe("a", { lastRollout });

    it("resizes them at any time", () => {
      expect(summaries(inPlace().actions)).toEqual(["resize-pod a-1"]);
    });

    it("waits with them, too, if the window applies to everything", () => {
      const { actions, sizing } = inPlace({ rolloutWindow: aWindow({ appliesTo: "all" }) });
      expect(actions).toEqual([]);
      expect(sizing?.waitReason).toBe("window");
    });

    it("goes on with the others while a pipe that fell back waits with its old size", () => {
      const resized = new Map([...pods, ["a", [aResizedPod("a-1")]]]);
      expect(summaries(inPlace({ pods: resized }, [fallen, aLabelledPipe("b")]).actions)).toEqual([
        "return-pod a-1",
      ]);
      const returned = inPlace({}, [fallen, aLabelledPipe("b")]);
      expect(summaries(returned.actions)).toEqual(["resize-pod b-1"]);
      expect(returned.sizing?.waitReason).toBe("window");
    });

    it("begins with the pipe that fell back when the window opens", () => {
      const { actions } = inPlace({ rolloutWindow: OPEN }, [fallen]);
      expect(summaries(actions)).toEqual(["a 4000m/16Gi"]);
    });
  });

  it("ignores the window until a time that an administrator set", () => {
    const until = (ms: number) => ({ scaling: aScaling(4, { windowIgnoredUntilMs: ms }) });
    expect(summaries(decided([aPipe("a")], until(NOW_MS + 1)).actions)).toEqual(["a 4000m/16Gi"]);
    expect(decided([aPipe("a")], until(NOW_MS)).actions).toEqual([]);
  });

  it("reports in the conditions when the window opens", () => {
    const scaling = aScaling(4);
    const { sizing } = decided([aPipe("a"), aPipe("b")]);
    expect(summarizeConditions(scaling, aSnapshot([]).tier, sizing, [])).toMatchObject({
      type: "Reconciling",
      reason: "WaitingForWindow",
      message:
        "0 of 2 pipes run 4 cpu / 16 Gi. 2 waiting for the rollout window, which opens at 2026-06-06T02:00:00Z.",
    });
  });
});
