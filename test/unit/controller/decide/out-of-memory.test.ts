import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { annotationSubject, type LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { ContainerView, PodView } from "../../../../src/controller/observe/pod-view.ts";
import { summarizeConditions } from "../../../../src/controller/report/conditions.ts";
import { failuresOf } from "../../../../src/controller/report/failures.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { describeSize, type Size, sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { aPodWrite, aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const ONE = sizeOfCores(1);
const TWO = sizeOfCores(2);
const FOUR = sizeOfCores(4);
const FIVE = sizeOfCores(5);
/** Resources that are no valid size. */
const OWN = { requests: { cpu: "3", memory: "18Gi" }, limits: { memory: "20Gi" } };
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;
/** When the pods got one core, and when their template began to follow. */
const RESIZED_MS = NOW_MS - 5 * MINUTE;
const COMMITTED_MS = RESIZED_MS + SECOND;

/** The annotation of a pipe that was resized in place from four cores to one. */
function shrunk(changes: Partial<LastRollout> = {}): LastRollout {
  return aRollout(ONE, {
    lastGoodSize: FOUR,
    inPlaceStartedAtMs: RESIZED_MS,
    startedAtMs: COMMITTED_MS,
    cameUp: true,
    restarts: 0,
    ...changes,
  });
}

const RECORD = {
  size: ONE,
  previous: FOUR,
  pipe: "a",
  message: "OOM-killed twice",
  atMs: NOW_MS - MINUTE,
} as const;

const NO_LABEL = { reason: "PodsNotLabeled", message: "no label" } as const;
const SUSPENDED = aScaling(1, { spec: { ...aScaling(1).spec, suspend: true } });

/** A pod of one core whose container was killed this long after the resize. */
function killed(name: string, restartCount: number, afterMs = MINUTE, changes: Partial<ContainerView> = {}) {
  const restartedAtMs = RESIZED_MS + afterMs;
  return aPod(name, {}, { restartCount, restartedAtMs, isOomKilled: true, ...changes });
}

function shrunkPipe(name: string, pods: number, changes: Partial<PipeView> = {}): PipeView {
  const rollout = { ...COMPLETE, replicas: pods };
  return aLabelledPipe(name, { size: ONE, replicas: pods, rollout, lastRollout: shrunk(), ...changes });
}

interface Given {
  readonly pipe?: Partial<PipeView>;
  readonly others?: readonly PipeView[];
  readonly otherPods?: readonly (readonly [string, readonly PodView[]])[];
  readonly changes?: Partial<Snapshot>;
  readonly cores?: number;
}

function decided(pods: readonly PodView[], given: Given = {}, options = DECIDE_OPTIONS) {
  const { pipe = {}, others = [], otherPods = [], changes = {}, cores = 1 } = given;
  const scaling = aScaling(cores);
  const snapshot = aSnapshot([shrunkPipe("a", pods.length, pipe), ...others], {
    strategy: "InPlaceOrRollout",
    scaling,
    pods: new Map([["a", pods], ...otherPods]),
    ...changes,
  });
  const { actions, sizing } = decide(snapshot, options);
  const about = snapshot.scaling ?? scaling;
  const condition = summarizeConditions(
    about,
    snapshot.tier,
    sizing,
    failuresOf(sizing?.assessments ?? [], {}),
  );
  const status = statusOf(snapshot, about, { sizing }, DECIDE_OPTIONS.policy);
  return { actions, summary: summaries(actions), sizing, condition, status };
}

function tierOf(cores: number): Snapshot["tier"] {
  return { ok: true, value: { name: "basic", defaultSize: ONE, maximumSize: sizeOfCores(cores) } };
}

const isShort = (pods: readonly PodView[], given: Given = {}) =>
  decided(pods, given).actions.some((each) => "rollout" in each && each.rollout.outOfMemory !== undefined);

describe("a smaller memory in place is too small if", () => {
  it.each<[string, readonly PodView[]]>([
    ["a container was killed and restarted twice", [killed("a-1", 2)]],
    ["containers of two pods were killed", [killed("a-1", 1), killed("a-2", 1)]],
    ["a container was killed at the end of the ten minutes", [killed("a-1", 2, 10 * MINUTE + SECOND)]],
    [
      "a pod that was created later was killed twice",
      [{ ...killed("a-3", 2), createdAtMs: COMMITTED_MS + 1 }],
    ],
  ])("%s, so that is recorded before anything else", (_, pods) => {
    const { actions, condition } = decided(pods);
    expect(actions).toMatchObject([
      { type: "adopt", rollout: { size: ONE, outOfMemory: { size: ONE, previous: FOUR, pipe: "a" } } },
    ]);
    expect(condition).toMatchObject({ reason: "OutOfMemory" });
  });

  it.each<[string, LastRollout["lastGoodSize"], Size]>([
    ["less CPU for its memory", { cpuMillicores: 2000, memoryGib: 32 }, sizeOfCores(8)],
    [
      "a larger memory limit than request",
      { requests: { cpu: "1500m", memory: "2Gi" }, limits: { memory: "6Gi" } },
      sizeOfCores(2),
    ],
  ])(
    "its owner had chosen %s, and the smallest size that holds it is recorded",
    (_, lastGoodSize, previous) => {
      const { actions } = decided([killed("a-1", 2)], { pipe: { lastRollout: shrunk({ lastGoodSize }) } });
      expect(actions).toMatchObject([{ type: "adopt", rollout: { outOfMemory: { previous } } }]);
    },
  );

  it("it is recorded at the time of the last kill, so that a retry forgives it that is seen only later", () => {
    const recordedMs = (...afterMs: readonly number[]) => {
      const pods = afterMs.map((each, at) => killed(`a-${at}`, 1, each));
      const { actions } = decided(pods);
      return actions.flatMap((each) => ("rollout" in each && each.rollout.outOfMemory?.atMs) || []);
    };
    expect(recordedMs(MINUTE, 3 * MINUTE)).toEqual([RESIZED_MS + 3 * MINUTE]);
    // The clock of a node may be ahead.
    expect(recordedMs(MINUTE, 9 * MINUTE)).toEqual([NOW_MS]);
  });

  it("a container was killed twice, and another one had restarted before the resize", () => {
    const pods = [killed("a-1", 2), aPod("a-2", {}, { restartCount: 7, restartedAtMs: RESIZED_MS - MINUTE })];
    expect(isShort(pods, { pipe: { lastRollout: shrunk({ restarts: 7 }) } })).toBe(true);
  });

  it("a container was killed twice within the last ten minutes, and a clock was ahead at the time of the resize", () => {
    const aheadMs = NOW_MS + 60 * MINUTE;
    const times = { inPlaceStartedAtMs: aheadMs, startedAtMs: aheadMs + SECOND };
    const isShortAfter = (pod: PodView, restarts = 0) =>
      isShort([pod], { pipe: { lastRollout: shrunk({ ...times, restarts }) } });
    expect(isShortAfter(killed("a-1", 2))).toBe(true);
    expect(isShortAfter(killed("a-1", 9), 7)).toBe(true);
    expect(isShortAfter(killed("a-1", 1))).toBe(false);
    expect(isShortAfter(killed("a-1", 8), 7)).toBe(false);
    expect(isShortAfter(killed("a-1", 2, -6 * MINUTE))).toBe(false);
  });

  it("one container was killed in each of two pipes", () => {
    const others = [shrunkPipe("b", 1)];
    const otherPods = [["b", [killed("b-1", 1)]]] as const;
    expect(isShort([killed("a-1", 1)], { others, otherPods })).toBe(true);
  });

  it("the record is in the pipe with the last kill, and names its pod, whatever the order of the pipes", () => {
    for (const [afterMs, pipe, pod] of [
      [MINUTE, "b", "b-1"],
      [3 * MINUTE, "a", "a-1"],
    ] as const) {
      const others = [shrunkPipe("b", 1)];
      const otherPods = [["b", [killed("b-1", 1, 2 * MINUTE)]]] as const;
      const { actions } = decided([killed("a-1", 1, afterMs)], { others, otherPods });
      const message = expect.stringContaining(`last in the pod ${pod}`);
      expect(actions).toMatchObject([
        { pipe: { metadata: { name: pipe } }, rollout: { outOfMemory: { pipe, message } } },
      ]);
    }
  });

  it.each<[string, readonly PodView[], Given]>([
    ["one container was killed once", [killed("a-1", 1)], {}],
    ["it was killed twice before the resize", [killed("a-1", 2, -MINUTE)], {}],
    [
      "it had restarted before the resize",
      [killed("a-1", 8)],
      { pipe: { lastRollout: shrunk({ restarts: 7 }) } },
    ],
    ["it ended twice for another reason", [killed("a-1", 2, MINUTE, { isOomKilled: false })], {}],
    [
      "it was killed once, and another container ended for another reason",
      [killed("a-1", 1), killed("a-2", 1, MINUTE, { isOomKilled: false })],
      {},
    ],
    [
      "it was killed once, and another container was killed weeks later",
      [killed("a-1", 1), killed("a-2", 1, 20 * DAY)],
      {},
    ],
    [
      "it was killed once, and another container ended twice for another reason",
      [killed("a-1", 1), killed("a-2", 2, MINUTE, { isOomKilled: false })],
      {},
    ],
    [
      "it was killed once, and a later pod ended twice for another reason",
      [
        killed("a-1", 1),
        { ...killed("a-3", 2, MINUTE, { isOomKilled: false }), createdAtMs: COMMITTED_MS + 1 },
      ],
      {},
    ],
    [
      "it was killed once, and a node forgot why another container had restarted",
      [killed("a-1", 1), aPod("a-2", {}, { restartCount: 3, restartedAtMs: 0 })],
      {},
    ],
    [
      "it was killed later than ten minutes after the resize",
      [killed("a-1", 2, 10 * MINUTE + 2 * SECOND)],
      {},
    ],
    [
      "the size came by a rollout",
      [killed("a-1", 2)],
      { pipe: { lastRollout: aRollout(ONE, { lastGoodSize: FOUR }) } },
    ],
    [
      "the memory is not smaller than before",
      [killed("a-1", 2)],
      { pipe: { lastRollout: shrunk({ lastGoodSize: ONE }) } },
    ],
  ])("but not if %s", (_, pods, given) => {
    expect(isShort(pods, given)).toBe(false);
  });

  it("but not if the maximum of the tier is not larger, because nothing could be given back", () => {
    expect(isShort([killed("a-1", 2)], { changes: { tier: tierOf(1) } })).toBe(false);
    expect(isShort([killed("a-1", 2)], { changes: { tier: tierOf(2) } })).toBe(true);
  });

  describe("while its commit is repeated because it was undone, and", () => {
    /** The annotation has the old size again, and the other facts of the commit. */
    const undone = (changes: Partial<LastRollout> = {}): Partial<PipeView> => ({
      size: FOUR,
      lastRollout: shrunk({ size: FOUR, attempts: 0, ...changes }),
    });
    const undoneToOwn = (changes: Partial<LastRollout> = {}): Partial<PipeView> => ({
      size: undefined,
      otherResources: OWN,
      lastRollout: shrunk({ isRollback: true, lastGoodSize: OWN, generation: 0, attempts: 0, ...changes }),
    });
    const killedAt = (name: string, restartCount: number, resizedAtMs = RESIZED_MS) => ({
      ...killed(name, restartCount),
      resizedAtMs,
    });

    it.each<[string, readonly PodView[]]>([
      ["a container was killed twice", [killedAt("a-1", 2)]],
      ["containers of two pods were killed", [killedAt("a-1", 1), killedAt("a-2", 1)]],
    ])("%s, so the pods get the size of their template again", (_, pods) => {
      const { actions } = decided(pods, { pipe: undone() });
      const outOfMemory = { size: ONE, previous: FOUR, pipe: "a" };
      expect(actions).toMatchObject([{ type: "adopt", rollout: { size: FOUR, outOfMemory } }]);
      const pipe = undone({ outOfMemory: RECORD });
      expect(decided(pods, { pipe }).summary).toContain("resize-pod a-1");
    });

    it.each<[string, readonly PodView[], Partial<PipeView>]>([
      ["a container was killed once", [killedAt("a-1", 1)], undone()],
      ["a pod has another size", [killedAt("a-1", 2), aResizedPod("a-2")], undone()],
      ["a pod was resized later", [killedAt("a-1", 2, COMMITTED_MS + SECOND)], undone()],
      ["the commit was to the size of its template", [killedAt("a-1", 2)], undone({ attempts: 1 })],
      [
        "the template has another size than the commit left",
        [killedAt("a-1", 2)],
        { ...undone(), size: TWO },
      ],
      ["the template has no pods", [], undone()],
      [
        "another writer gave the template a size",
        [killedAt("a-1", 2)],
        { ...undoneToOwn(), size: TWO, otherResources: undefined },
      ],
      [
        "its resources were only recorded",
        [killedAt("a-1", 2)],
        undoneToOwn({ inPlaceStartedAtMs: undefined }),
      ],
    ])("but not if %s", (_, pods, pipe) => {
      expect(isShort(pods, { pipe })).toBe(false);
    });

    it("its template has resources of its owner that are no size, so the pods get the smallest size that holds them", () => {
      const pods = [killedAt("a-1", 2)];
      const { actions } = decided(pods, { pipe: undoneToOwn() });
      const outOfMemory = { size: ONE, previous: FIVE, pipe: "a" };
      expect(actions).toMatchObject([{ type: "adopt", rollout: { lastGoodSize: OWN, outOfMemory } }]);
      const pipe = undoneToOwn({ outOfMemory: { ...RECORD, previous: FIVE } });
      expect(decided(pods, { pipe }).actions).toMatchObject([
        { type: "resize-pod", resources: { requests: { memory: "20Gi" } } },
      ]);
    });
  });

  it("but not while its template is in its commit", () => {
    const lastRollout = shrunk({ isCommitting: true });
    const pipe = { lastRollout, isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: NOW_MS };
    expect(decided([killed("a-1", 2)], { pipe }).summary).not.toContain("adopt a with 1000m/4Gi");
  });
});

describe("a service that ran out of memory", () => {
  const recorded = { lastRollout: shrunk({ outOfMemory: RECORD }) };

  it("gets the previous size in place, all pipes at once, outside of the rollout window too", () => {
    const others = [shrunkPipe("b", 1), shrunkPipe("c", 1)];
    const otherPods = [
      ["b", [aPod("b-1")]],
      ["c", [aPod("c-1")]],
    ] as const;
    const rolloutWindow = aWindow({ schedule: "0 0 1 1 *", appliesTo: "all" });
    for (const changes of [{}, { rolloutWindow }]) {
      const { actions } = decided([killed("a-1", 2)], { pipe: recorded, others, otherPods, changes });
      expect(summaries(actions)).toEqual(["resize-pod a-1", "resize-pod b-1", "resize-pod c-1"]);
      for (const action of actions)
        expect(action).toMatchObject({ resources: { requests: { memory: "16Gi" } } });
    }
  });

  it("gets it by a rollout, where it is necessary, only when another pipe has proven it in place", () => {
    const others = [shrunkPipe("b", 1, { templateProblem: NO_LABEL }), shrunkPipe("c", 1)];
    const otherPods = [
      ["b", [aPod("b-1")]],
      ["c", [aPod("c-1")]],
    ] as const;
    const given = { pipe: recorded, others, otherPods };
    const { summary, sizing } = decided([killed("a-1", 2)], given);
    expect(summary).toEqual(["resize-pod a-1", "resize-pod c-1"]);
    expect(sizing).toMatchObject({ waitReason: "canary", blockedBy: ["a", "c"] });
    expect(decided([aResizedPod("a-1")], given).summary).toContain("b 4000m/16Gi");
  });

  it("gets it by a rollout although all pods of another pipe are terminating, for however long", () => {
    const { inTurn, rollout } = aStatefulPipe({ status: { replicas: 1, updatedReplicas: 0 } });
    const others = [shrunkPipe("b", 1, { inTurn, rollout })];
    const otherPods = [["b", [aPod("b-0", { isTerminating: true, isActive: false })]]] as const;
    const pipe = { ...recorded, templateProblem: NO_LABEL };
    expect(decided([killed("a-1", 2)], { pipe, others, otherPods }).summary).toEqual(["a 4000m/16Gi"]);
  });

  describe("while the rollout window is closed, and a pipe needs a rollout", () => {
    const rolloutWindow = aWindow({ schedule: "0 0 1 1 *", appliesTo: "all" });
    const inPlaceFailure = { size: FOUR, reason: "Deferred", message: "no room", atMs: NOW_MS } as const;
    const fallen = { lastRollout: shrunk({ outOfMemory: RECORD, inPlaceFailure }) };
    const restarted = {
      ...fallen.lastRollout,
      inPlaceFailure: { ...inPlaceFailure, reason: "Restarted" },
    } as const;
    const actionsFor = (pod: PodView, pipe: Partial<PipeView> = fallen, changes: Partial<Snapshot> = {}) =>
      decided([pod], { pipe, changes: { rolloutWindow, ...changes } });

    it("gets it at once if its own container was killed with the smaller size, whatever brought that", () => {
      expect(actionsFor(killed("a-1", 2)).summary).toEqual(["a 4000m/16Gi"]);
      const { inPlaceStartedAtMs: _, ...lastRollout } = fallen.lastRollout;
      expect(actionsFor(killed("a-1", 1, 2 * SECOND), { lastRollout }).summary).toEqual(["a 4000m/16Gi"]);
      expect(actionsFor(killed("a-1", 1, -SECOND), { lastRollout }).summary).toEqual([]);
    });

    it("gets it at once as well if a clock was ahead when it was resized", () => {
      const aheadMs = NOW_MS + 60 * MINUTE;
      const times = { inPlaceStartedAtMs: aheadMs, startedAtMs: aheadMs };
      const lastRollout = { ...fallen.lastRollout, ...times };
      expect(actionsFor(killed("a-1", 2), { lastRollout }).summary).toEqual(["a 4000m/16Gi"]);
      expect(actionsFor(killed("a-1", 2, -6 * MINUTE), { lastRollout }).summary).toEqual([]);
    });

    it("goes on if the first rollout to the previous size failed", () => {
      const startedAtMs = NOW_MS - 10 * MINUTE;
      const lastRollout = aRollout(FOUR, { isRollback: true, startedAtMs, outOfMemory: RECORD });
      expect(
        actionsFor(killed("a-1", 3, 4 * MINUTE), { lastRollout, templateProblem: NO_LABEL }).summary,
      ).toEqual(["a 4000m/16Gi"]);
    });

    it.each<[string, PodView]>([
      ["never", aPod("a-1")],
      ["for another reason", killed("a-1", 2, MINUTE, { isOomKilled: false })],
      ["before the resize", killed("a-1", 2, -MINUTE)],
    ])("waits for the window if its containers ended %s", (_, pod) => {
      const { summary, sizing } = actionsFor(pod);
      expect(summary).toEqual([]);
      expect(sizing).toMatchObject({ waitReason: "window" });
    });

    it("waits as well if another pipe was killed, which does not wait", () => {
      const others = [shrunkPipe("b", 1, fallen)];
      const otherPods = [["b", [aPod("b-1")]]] as const;
      const given = { pipe: fallen, others, otherPods, changes: { rolloutWindow } };
      const { summary, sizing } = decided([killed("a-1", 2)], given);
      expect(summary).toEqual(["a 4000m/16Gi"]);
      expect(sizing).toMatchObject({ waitReason: "window" });
    });

    it("keeps the memory that its pods have meanwhile, unless no rollout follows", () => {
      const pod = aResizedPod(
        "a-1",
        {},
        { restartCount: 3, restartedAtMs: NOW_MS - MINUTE, isOomKilled: true },
      );
      expect(actionsFor(pod, { lastRollout: restarted }).summary).toEqual(["a 4000m/16Gi"]);
      expect(actionsFor(pod, { lastRollout: restarted }, { strategy: "InPlace" }).summary).toEqual([
        "return-pod a-1",
      ]);
      const other = aResizedPod("a-1", {}, { restartCount: 1, restartedAtMs: NOW_MS - MINUTE });
      expect(actionsFor(other, { lastRollout: restarted }).summary).toEqual(["return-pod a-1"]);
    });

    describe("although its container was killed before,", () => {
      const EIGHT = sizeOfCores(8);
      const deferral = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
      const runs = (size: Size, killedAtMs: number, pod: Partial<PodView> = {}, asked = size) =>
        aPod("a-1", pod, {
          resources: amounts(asked),
          actual: amounts(size),
          restartCount: 2,
          restartedAtMs: killedAtMs,
          isOomKilled: true,
        });
      /** A pipe that got this size half an hour ago, and whose service ran out of memory an hour ago. */
      const settled = (size: Size, changes: Partial<LastRollout> = {}): Partial<PipeView> => ({
        size,
        lastRollout: aRollout(size, {
          lastGoodSize: ONE,
          inPlaceStartedAtMs: NOW_MS - 30 * MINUTE,
          startedAtMs: NOW_MS - 29 * MINUTE,
          cameUp: true,
          outOfMemory: { ...RECORD, atMs: NOW_MS - 60 * MINUTE },
          ...changes,
        }),
      });
      const earlier = NOW_MS - 60 * MINUTE;
      const later = NOW_MS - 10 * MINUTE;

      it.each<[string, number]>([
        ["when its service ran out of memory", earlier],
        ["since then", earlier + 10 * MINUTE],
        ["with the larger size of the boost", later],
      ])("waits for the window at the end of a boost if that was %s", (_, killedAtMs) => {
        const failure = { ...inPlaceFailure, reason: "ResizeError" } as const;
        const { summary, sizing } = actionsFor(
          runs(EIGHT, killedAtMs),
          settled(EIGHT, { inPlaceFailure: failure }),
        );
        expect(summary).toEqual([]);
        expect(sizing).toMatchObject({ waitReason: "window" });
      });

      it.each([earlier, later])("waits for the window if its tier got a smaller maximum", (killedAtMs) => {
        const failure = { ...inPlaceFailure, size: TWO, reason: "ResizeError" } as const;
        const { summary, sizing } = actionsFor(
          runs(FOUR, killedAtMs),
          settled(FOUR, { inPlaceFailure: failure }),
          { tier: tierOf(2) },
        );
        expect(summary).toEqual([]);
        expect(sizing).toMatchObject({ waitReason: "window" });
      });

      it("waits for the window if its tier got a larger maximum, unless it was killed with the smaller one", () => {
        const pipe = settled(TWO, { inPlaceFailure });
        expect(actionsFor(runs(TWO, earlier), pipe).summary).toEqual([]);
        expect(actionsFor(runs(TWO, later), pipe).summary).toEqual(["a 4000m/16Gi"]);
        const deferred = { resize: deferral, resizedAtMs: NOW_MS - 2 * MINUTE };
        const recreated = { ...settled(TWO), stopsOldPodsFirst: true };
        expect(actionsFor(runs(TWO, earlier, deferred, FOUR), recreated).summary).toEqual([]);
        expect(actionsFor(runs(TWO, later, deferred, FOUR), recreated).summary).toEqual([
          "search room for a",
        ]);
      });

      it("does not wait if its service runs out of memory at the size that it had returned to", () => {
        const outOfMemory = { ...RECORD, previous: EIGHT, pipe: "b" };
        const pipe = settled(FOUR, { outOfMemory, inPlaceFailure: { ...inPlaceFailure, size: EIGHT } });
        expect(actionsFor(runs(FOUR, later), pipe).summary).toEqual(["a 8000m/32Gi"]);
        expect(actionsFor(runs(EIGHT, later), pipe).summary).toEqual(["a 8000m/32Gi"]);
        expect(actionsFor(runs(FOUR, earlier), pipe).summary).toEqual([]);
      });

      describe("while its template has its old size again, and its pods cannot get that in place,", () => {
        const outOfMemory = { ...RECORD, pipe: "b" };
        const inPlace = { ...inPlaceFailure, reason: "Infeasible" } as const;
        const infeasible = { resize: { ...deferral, reason: "Infeasible" }, resizedAtMs: NOW_MS - MINUTE };
        const stuck = (killedAtMs: number) => runs(ONE, killedAtMs, infeasible, FOUR);

        it("does not wait if the commit to the smaller size was undone", () => {
          const undone = settled(FOUR, { attempts: 0, outOfMemory, inPlaceFailure: inPlace });
          expect(actionsFor(stuck(later), undone).summary).toEqual(["replace-pods a"]);
          expect(actionsFor(stuck(earlier), undone).summary).toEqual([]);
          const { lastRollout } = settled(ONE, { attempts: 0, outOfMemory, inPlaceFailure: inPlace });
          const other = { isRollback: true, lastGoodSize: FOUR, generation: 0 } as const;
          const adopted = { ...undone, lastRollout: lastRollout && { ...lastRollout, ...other } };
          expect(actionsFor(stuck(later), adopted).summary).toEqual(["replace-pods a"]);
        });

        it("waits for the window if the container that was killed has its old size", () => {
          const undone = settled(FOUR, { attempts: 0, outOfMemory, inPlaceFailure: inPlace });
          const { containers } = runs(FOUR, later);
          const healthy = { ...stuck(0), metadata: { ...aPod("a-2").metadata } };
          const pods = [{ ...aPod("a-1"), containers }, healthy];
          const { summary, sizing } = decided(pods, { pipe: undone, changes: { rolloutWindow } });
          expect(summary).toEqual([]);
          expect(sizing).toMatchObject({ waitReason: "window" });
        });

        it("waits for the window if its template never had the smaller one, and the kill may have come before that", () => {
          const pipe = settled(FOUR, { outOfMemory, inPlaceFailure: inPlace });
          expect(actionsFor(stuck(later), pipe).summary).toEqual([]);
          expect(actionsFor(stuck(RECORD.atMs + SECOND), pipe).summary).toEqual(["replace-pods a"]);
        });
      });
    });

    it("is searched room on other nodes if it stops its old pods first", () => {
      const resize = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
      const { resources } = aResizedPod("a-1").containers[0] ?? {};
      const deferred = (changes: Partial<ContainerView>) =>
        aPod("a-1", { resize, resizedAtMs: NOW_MS - 2 * MINUTE }, { resources, ...changes });
      const pipe = { lastRollout: shrunk({ outOfMemory: RECORD }), stopsOldPodsFirst: true };
      const oom = { restartCount: 2, restartedAtMs: NOW_MS - 3 * MINUTE, isOomKilled: true };
      expect(actionsFor(deferred(oom), pipe).summary).toEqual(["search room for a"]);
      expect(actionsFor(deferred({}), pipe).summary).toEqual([]);
    });
  });

  it("does not wait for the dry run of a pipe that needs a rollout", () => {
    const others = [shrunkPipe("b", 1, { templateProblem: NO_LABEL })];
    const otherPods = [["b", [aPod("b-1")]]] as const;
    const pods = [killed("a-1", 2)];
    const options = { ...DECIDE_OPTIONS, makesDryRuns: true };
    const given = { pipe: recorded, others, otherPods };
    expect(decided(pods, given, options).summary).toEqual(["dry run of a"]);
  });

  it("gets at most the maximum of the tier, and the status says so", () => {
    const changes = { tier: tierOf(2) };
    const { actions, condition } = decided([killed("a-1", 2)], { pipe: recorded, changes });
    expect(actions).toMatchObject([{ type: "resize-pod", resources: { requests: { memory: "8Gi" } } }]);
    expect(condition.message).toContain("; the tier limits them to 2 cpu / 8 Gi");
  });

  it("gets at most the memory of the maximum of the tier, whatever the annotation has", () => {
    const previous = { cpuMillicores: 2000, memoryGib: 32 };
    const lastRollout = shrunk({ lastGoodSize: previous, outOfMemory: { ...RECORD, previous } });
    const changes = { tier: tierOf(4) };
    const { actions, condition } = decided([killed("a-1", 2)], { pipe: { lastRollout }, changes });
    expect(actions).toMatchObject([
      { type: "resize-pod", resources: { requests: { cpu: "2000m", memory: "16Gi" } } },
    ]);
    expect(condition.message).toContain("; the tier limits them to 2 cpu / 16 Gi");
  });

  it("never gets more than the maximum of the tier, and never less memory than was requested", () => {
    const size = fc.record<Size>({
      cpuMillicores: fc.integer({ min: 1, max: 48_000 }),
      memoryGib: fc.integer({ min: 1, max: 192 }),
    });
    const cores = fc.integer({ min: 1, max: 24 });
    fc.assert(
      fc.property(size, cores, fc.boolean(), (previous, maximumCores, isRecorded) => {
        const outOfMemory = isRecorded ? { ...RECORD, previous } : undefined;
        const pipe = { lastRollout: shrunk({ lastGoodSize: previous, outOfMemory }) };
        const changes = { tier: tierOf(maximumCores) };
        const { sizing } = decided([killed("a-1", 2)], { pipe, changes });
        const maximum = sizeOfCores(maximumCores);
        for (const { subject } of sizing?.assessments ?? []) {
          const about = `${describeSize(subject.desired)} instead of ${describeSize(previous)}`;
          expect(subject.desired.cpuMillicores, about).toBeLessThanOrEqual(maximum.cpuMillicores);
          expect(subject.desired.memoryGib, about).toBeLessThanOrEqual(maximum.memoryGib);
          expect(subject.desired.memoryGib, about).toBeGreaterThanOrEqual(ONE.memoryGib);
        }
      }),
    );
  });

  it("gets the requested size again if the tier allows no larger one any more", () => {
    const changes = { tier: tierOf(1) };
    const { actions, condition } = decided([aResizedPod("a-1")], { pipe: recorded, changes });
    expect(actions).toMatchObject([{ type: "resize-pod", resources: { requests: { memory: "4Gi" } } }]);
    expect(condition.reason).not.toBe("OutOfMemory");
  });

  it("does not get it because of a pipe that ran out of memory in another service", () => {
    const serviceId = "another";
    for (const lastRollout of [shrunk({ serviceId }), shrunk({ serviceId, outOfMemory: RECORD })]) {
      const { actions } = decided([killed("a-1", 2)], { pipe: { lastRollout } });
      expect(actions).not.toContainEqual(expect.objectContaining({ type: "resize-pod" }));
      const rollout = expect.objectContaining({ outOfMemory: expect.anything() });
      expect(actions).not.toContainEqual(expect.objectContaining({ rollout }));
    }
  });

  it("gets it although its containers are not available, and when they run", () => {
    const rollout = { ...COMPLETE, isComplete: false, isAvailable: false };
    const pipe = { ...recorded, rollout };
    const stopped = killed("a-1", 2, 4 * MINUTE, { isRunning: false });
    expect(decided([stopped], { pipe }).summary).toEqual([]);
    expect(decided([killed("a-1", 2)], { pipe }).summary).toEqual(["resize-pod a-1"]);
  });

  it("gets a rollout to it if its container does not start again within five minutes", () => {
    const stopped = killed("a-1", 2, 0, { isRunning: false });
    expect(decided([stopped], { pipe: recorded }).summary).toEqual(["a 4000m/16Gi"]);
  });

  it("has the record in the annotation of each pipe whose template follows", () => {
    const others = [shrunkPipe("b", 1)];
    const otherPods = [["b", [aResizedPod("b-1")]]] as const;
    const { actions } = decided([killed("a-1", 2)], { pipe: recorded, others, otherPods });
    expect(actions).toContainEqual(
      expect.objectContaining({
        type: "commit",
        rollout: expect.objectContaining({ size: FOUR, outOfMemory: RECORD }),
      }),
    );
  });

  it("is still being returned while a template has the smaller size, and no pipe counts as updated", () => {
    const { condition, status } = decided([aResizedPod("a-1")], { pipe: recorded });
    expect(condition).toMatchObject({ type: "Reconciling", reason: "OutOfMemory" });
    expect(status.pipes).toMatchObject({ updated: 0, pending: [{ name: "a", state: "Rolling" }] });
  });

  const back = {
    size: FOUR,
    lastRollout: aRollout(FOUR, { cameUp: true, lastGoodSize: ONE, outOfMemory: RECORD }),
  };

  it("keeps the previous size while it is suspended, although that is too small, too", () => {
    const lastRollout = shrunk({ size: FOUR, lastGoodSize: sizeOfCores(8), outOfMemory: RECORD });
    const pod = { ...aResizedPod("a-1", {}, killed("a-1", 2).containers[0]), resizedAtMs: RESIZED_MS };
    const given = (scaling = aScaling(1)) => ({ pipe: { size: FOUR, lastRollout }, changes: { scaling } });
    const own = { resources: amounts(FOUR), allocated: amounts(FOUR).requests, actual: amounts(FOUR) };
    const pods = [{ ...pod, containers: pod.containers.map((each) => ({ ...each, ...own })) }];
    expect(decided(pods, given()).actions).toMatchObject([
      { type: "adopt", rollout: { size: FOUR, outOfMemory: { size: ONE, previous: sizeOfCores(8) } } },
    ]);
    const { actions, sizing } = decided(pods, given(SUSPENDED));
    expect(actions).toEqual([]);
    expect(sizing?.assessments).toMatchObject([{ subject: { desired: FOUR } }]);
  });

  it("has failed with the requested size when all pipes have the previous one, and stays there", () => {
    const others = [shrunkPipe("b", 1, back)];
    const otherPods = [["b", [aResizedPod("b-1")]]] as const;
    const { summary, condition, status } = decided([aResizedPod("a-1")], { pipe: back, others, otherPods });
    expect(summary).toEqual([]);
    expect(condition).toMatchObject({ type: "Stalled", reason: "OutOfMemory" });
    expect(condition.message).toContain(`a could not be resized to 1 cpu / 4 Gi: ${RECORD.message}`);
    expect(status).toMatchObject({
      desired: { replicaCpuMillicores: 1000 },
      effective: { replicaCpuMillicores: 4000 },
      pipes: {
        total: 2,
        updated: 0,
        pending: [
          { name: "a", state: "Failed", message: RECORD.message },
          { name: "b", state: "Waiting", message: "waiting because of the failure" },
        ],
      },
      failures: [{ pipe: "a", reason: "OutOfMemory", size: { replicaCpuMillicores: 1000 } }],
      history: [{ result: "Failed" }],
    });
    expect(status.failures?.[0]).not.toHaveProperty("nextRetryAt");
  });

  it("has a failure about the previous size if a pipe cannot get that", () => {
    const outcome = failed({ reason: "Refused", message: "exceeded quota" });
    const writes = someWrites([
      aWrite("uid-a", "resize", { subject: "4000m/16Gi", outcome, lastAtMs: NOW_MS }),
    ]);
    const stopped = killed("a-1", 2, 0, { isRunning: false });
    const { status } = decided([stopped], { pipe: recorded, changes: { writes } });
    expect(status.failures).toMatchObject([{ reason: "Refused", size: { replicaCpuMillicores: 4000 } }]);
  });

  it("has not failed yet while another pipe does not have the previous size", () => {
    const others = [shrunkPipe("b", 1)];
    const otherPods = [["b", [aPod("b-1")]]] as const;
    const { condition, summary } = decided([aResizedPod("a-1")], { pipe: back, others, otherPods });
    expect(summary).toEqual(["resize-pod b-1"]);
    expect(condition).toMatchObject({ type: "Reconciling", reason: "OutOfMemory" });
  });

  it("is resized again when people ask for a retry", () => {
    const scaling = aScaling(1, { retryRequestedAtMs: NOW_MS });
    const { actions } = decided([aResizedPod("a-1")], { pipe: back, changes: { scaling } });
    expect(actions).toMatchObject([{ type: "resize-pod", resources: { requests: { memory: "4Gi" } } }]);
  });

  it("gets any other size, and forgets the record, so that the size may be requested again", () => {
    expect(decided([aResizedPod("a-1")], { pipe: back, cores: 2 }).summary).toEqual(["resize-pod a-1"]);
    const { actions } = decided([aResizedPod("a-1")], { pipe: back, cores: 4 });
    expect(actions).toMatchObject([{ type: "adopt", rollout: { size: FOUR, outOfMemory: undefined } }]);
  });

  it("reports the error if its annotation cannot be written", () => {
    const outcome = failed({ message: "webhook down" });
    const subject = annotationSubject(shrunk());
    const writes = someWrites([aWrite("uid-a", "adopt", { subject, outcome, lastAtMs: NOW_MS })]);
    const { summary, condition } = decided([killed("a-1", 2)], { changes: { writes } });
    expect(summary).toEqual([]);
    expect(condition.message).toContain("webhook down");
  });

  it("keeps its pods while it is suspended", () => {
    expect(decided([killed("a-1", 2)], { pipe: recorded, changes: { scaling: SUSPENDED } }).summary).toEqual(
      [],
    );
  });

  it("announces a next step while it is suspended only of a pipe that is not back yet", () => {
    const waiting = "waiting while the service is suspended";
    const nextStep = "its next step waits while the service is suspended";
    const messagesWith = (pods: readonly PodView[], pipe: Partial<PipeView>) => {
      const others = [shrunkPipe("b", 1, back), shrunkPipe("c", pods.length, pipe)];
      const otherPods = [
        ["b", [aResizedPod("b-1")]],
        ["c", pods],
      ] as const;
      const given = { pipe: back, others, otherPods, changes: { scaling: SUSPENDED } };
      const { pipes } = decided([aResizedPod("a-1")], given).status;
      return pipes?.pending?.map(({ name, message }) => `${name}: ${message}`);
    };
    const named = `a: ${RECORD.message}`;
    expect(messagesWith([aResizedPod("c-1")], back)).toEqual([named, `b: ${waiting}`, `c: ${waiting}`]);
    const moving = [`c: ${nextStep}`, named, `b: ${waiting}`];
    expect(messagesWith([aResizedPod("c-1")], {})).toEqual(moving);
    expect(messagesWith([aResizedPod("c-1"), aPod("c-2")], {})).toEqual(moving);
  });

  it("says how many pipes have the previous size, also if it is refused or the service is suspended", () => {
    const others = [shrunkPipe("b", 1, back)];
    const given = { pipe: recorded, others, otherPods: [["b", [aResizedPod("b-1")]]] as const };
    const outcome = failed({ reason: "Refused", message: "exceeded quota" });
    const lastAtMs = NOW_MS - SECOND;
    const writes = someWrites([aPodWrite("a-1", { outcome, lastAtMs })]);
    for (const changes of [{}, { writes }, { scaling: SUSPENDED }]) {
      const { condition } = decided([killed("a-1", 2)], { ...given, changes });
      expect(condition.message).toContain("1 of 2 pipes have 4 cpu / 16 Gi instead of 1 cpu / 4 Gi.");
      expect(condition.message).not.toContain("pipes run");
    }
    const { condition } = decided([aResizedPod("a-1")], { ...given, pipe: back });
    expect(condition.message).toContain("2 of 2 pipes have 4 cpu / 16 Gi instead of 1 cpu / 4 Gi.");
  });
});

describe("a service that runs out of memory while nothing can be recorded", () => {
  const ahead = shrunk({ scalingGeneration: 2 });

  it.each<[string, Given["changes"], Partial<typeof DECIDE_OPTIONS>, Partial<PipeView>]>([
    ["it is suspended", { scaling: SUSPENDED }, {}, {}],
    ["the controller is ending", {}, { isEnding: true }, {}],
    ["the PipeScaling has to be read first", {}, {}, { lastRollout: ahead }],
  ])("is reported with the size that its pipes run, because %s", (_, changes = {}, options, pipe) => {
    const others = [shrunkPipe("b", 1)];
    const otherPods = [["b", [aPod("b-1")]]] as const;
    const given = { pipe, others, otherPods, changes };
    const { condition, status } = decided([killed("a-1", 2)], given, { ...DECIDE_OPTIONS, ...options });
    expect(condition.message).toContain("All 2 pipes run 1 cpu / 4 Gi.");
    expect(condition.reason).not.toBe("OutOfMemory");
    expect(status).toMatchObject({ pipes: { updated: 2, pending: undefined }, failures: undefined });
  });

  it("is recorded when it is no longer suspended", () => {
    const scaling = { ...SUSPENDED, spec: { ...SUSPENDED.spec, suspend: false } };
    expect(isShort([killed("a-1", 2)], { changes: { scaling: SUSPENDED } })).toBe(false);
    expect(isShort([killed("a-1", 2)], { changes: { scaling } })).toBe(true);
  });
});
