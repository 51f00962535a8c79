import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView, ResizeCondition } from "../../../../src/controller/observe/pod-view.ts";
import type { WriteError, WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { WINDOW_SCOPES } from "../../../../src/domain/rollout-window.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
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
import { aPodWrite, aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const MINUTE = 60_000;
const FULL = "its pod would request 4 cpu / 16 Gi, and no node has room";
const DEFERRED = {
  type: "PodResizePending",
  reason: "Deferred",
  message: "Node didn't have enough cpu",
} as const;
const OPTIONS = { ...DECIDE_OPTIONS, makesDryRuns: true };

interface Deferred {
  /** For so long. */
  readonly forMs?: number;
  /** The last search for room. */
  readonly search?: Partial<WriteRecord> | undefined;
  /** The last dry run. */
  readonly tried?: Partial<WriteRecord>;
  readonly strategy?: Snapshot["strategy"];
  readonly pipe?: Partial<PipeView>;
  readonly changes?: Partial<Snapshot>;
  /** The pod was to get the size of its template again, in vain. */
  readonly isReturned?: boolean;
}

/** A decision about a pipe whose pod is deferred. */
function decided({
  forMs = MINUTE,
  search,
  tried,
  pipe,
  changes = {},
  strategy = "InPlaceOrRollout",
  isReturned = false,
}: Deferred) {
  const subject = "1/pipe/true/4000m/16Gi";
  const writes = [
    aPodWrite("a-1", { lastAtMs: NOW_MS - forMs }, isReturned ? "return-pod" : "resize-pod"),
    ...(search ? [aWrite("uid-a", "check-room", { subject, ...search })] : []),
    ...(tried ? [aWrite("uid-a", "dry-run", { subject, ...tried })] : []),
  ];
  const snapshot = aSnapshot([aLabelledPipe("a", { stopsOldPodsFirst: true, ...pipe })], {
    strategy,
    writes: someWrites(writes),
    pods: new Map([["a", [aResizedPod("a-1", { resize: DEFERRED })]]]),
    ...changes,
  });
  const decision = decide(snapshot, OPTIONS);
  const [assessment] = decision.sizing?.assessments ?? [];
  const inMs = recheckAtMs(snapshot, decision) - NOW_MS;
  return { actions: decision.actions, summary: summaries(decision.actions), assessment, inMs };
}

const nothing = (agoMs: number, attempts = 1): Partial<WriteRecord> => ({
  attempts,
  lastAtMs: NOW_MS - agoMs,
  outcome: failed({ reason: "NoNodeHasRoom", message: FULL }),
});

describe("a deferred resize of a pipe that stops its old pods first", () => {
  it("waits for a minute, and then for a search for room that counts the room of its own pods", () => {
    expect(decided({ forMs: MINUTE - 1 })).toMatchObject({ summary: [], inMs: 1 });
    const { actions, summary } = decided({});
    expect(summary).toEqual(["search room for a"]);
    expect(actions).toMatchObject([
      {
        type: "check-room",
        stopping: [{ metadata: { name: "a-1" } }],
        fullNodes: ["node"],
        rollout: { size: sizeOfCores(4) },
      },
    ]);
  });

  it("names only nodes that defer a resize as those without room", () => {
    const deferred = aResizedPod("a-1", { resize: DEFERRED });
    const pods = new Map([["a", [deferred, aResizedPod("a-2", { nodeName: "other" })]]]);
    expect(decided({ pipe: { replicas: 2 }, changes: { pods } }).actions).toMatchObject([
      { type: "check-room", fullNodes: ["node"] },
    ]);
  });

  it("waits without a search if its strategy replaces no pod", () => {
    const { summary, assessment } = decided({ strategy: "InPlace", forMs: 5 * MINUTE });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({ state: "waiting", hindrance: { reason: "Deferred" } });
  });

  it("goes on waiting while the search is in flight, and while no node has room", () => {
    const begun = { lastAtMs: NOW_MS - 5 * MINUTE, outcome: { type: "pending" } } as const;
    expect(decided({ forMs: 6 * MINUTE, search: begun }).summary).toEqual([]);
    const { summary, assessment, inMs } = decided({ search: nothing(10_000) });
    expect(summary).toEqual([]);
    expect(inMs).toBe(50_000);
    expect(assessment).toMatchObject({
      state: "rolling",
      phase: "resizing",
      failure: undefined,
      obstacle: `pod a-1 waits for room on its node (Node didn't have enough cpu); ${FULL}`,
    });
  });

  it("searches again after a minute, doubling to 10 minutes, and at once when a retry is requested", () => {
    const at = (agoMs: number, attempts: number, changes: Partial<Snapshot> = {}) =>
      decided({ forMs: 5 * MINUTE, search: nothing(agoMs, attempts), changes }).summary;
    const searched = ["search room for a"];
    expect(at(MINUTE - 1, 1)).toEqual([]);
    expect(at(MINUTE, 1)).toEqual(searched);
    expect(at(2 * MINUTE - 1, 2)).toEqual([]);
    expect(at(2 * MINUTE, 2)).toEqual(searched);
    expect(at(10 * MINUTE - 1, 9)).toEqual([]);
    expect(at(10 * MINUTE, 9)).toEqual(searched);
    expect(at(1000, 3, { scaling: aScaling(4, { retryRequestedAtMs: NOW_MS }) })).toEqual(searched);
  });

  it.each<[string, number, WriteError, number]>([
    ["at once after a conflict", 1, { reason: "WriteFailed", message: "changed", isConflict: true }, 0],
    ["after a second if it had no response", 1, { reason: "WriteFailed", message: "no response" }, 1000],
    ["after two seconds, and so on", 2, { reason: "WriteFailed", message: "no response" }, 2000],
  ])("searches again %s, because nothing is known about the room", (_, attempts, error, delayMs) => {
    const at = (agoMs: number) => {
      const search = { attempts, lastAtMs: NOW_MS - agoMs, outcome: failed(error) };
      return decided({ forMs: 5 * MINUTE, search }).summary;
    };
    expect(at(delayMs)).toEqual(["search room for a"]);
    if (delayMs > 0) expect(at(delayMs - 1)).toEqual([]);
  });

  it.each(WINDOW_SCOPES)(
    "waits without a search, and although one has found room, while a window with the scope %s is closed",
    (appliesTo) => {
      const rolloutWindow = { ...aWindow(), appliesTo };
      const opensInMs = Date.parse("2026-06-06T02:00:00Z") - NOW_MS;
      const held = (search?: Partial<WriteRecord>) =>
        decided({ forMs: 20 * MINUTE, search, changes: { rolloutWindow } });
      for (const search of [undefined, nothing(10 * MINUTE), { lastAtMs: NOW_MS - 1000 }]) {
        const { summary, assessment } = held(search);
        expect(summary).toEqual([]);
        expect(assessment).toMatchObject({ state: "waiting", failure: undefined });
      }
      expect(held().inMs).toBe(opensInMs);
      const scaling = aScaling(4, { windowIgnoredUntilMs: NOW_MS + 1 });
      expect(decided({ changes: { rolloutWindow, scaling } }).summary).toEqual(["search room for a"]);
    },
  );

  it("is decided about again when another pod fails, while the window is closed", () => {
    const resizing = aResizedPod("a-2", { resize: { type: "PodResizeInProgress", reason: "", message: "" } });
    const pods = new Map([["a", [aResizedPod("a-1", { resize: DEFERRED }), resizing]]]);
    const writes = someWrites([
      aPodWrite("a-1", { lastAtMs: NOW_MS - MINUTE }),
      aPodWrite("a-2", { lastAtMs: NOW_MS - MINUTE }),
    ]);
    const changes = { pods, writes, rolloutWindow: aWindow() };
    expect(decided({ pipe: { replicas: 2 }, changes })).toMatchObject({ summary: [], inMs: MINUTE });
  });

  it("is a failure with the time of the next search when it has taken as long as a rollout may", () => {
    const { assessment, inMs } = decided({ forMs: 15 * MINUTE, search: nothing(MINUTE, 5) });
    expect(assessment).toMatchObject({
      state: "failed",
      failure: { reason: "NoNodeHasRoom", attempts: 5, retryAtMs: NOW_MS + 9 * MINUTE },
    });
    expect(inMs).toBe(9 * MINUTE);
    expect(decided({ forMs: 15 * MINUTE - 1, search: nothing(MINUTE, 5) })).toMatchObject({
      assessment: { state: "rolling" },
      inMs: 1,
    });
  });

  it.each<[string, Partial<WriteRecord> | undefined, number]>([
    ["has not begun", undefined, Number.POSITIVE_INFINITY],
    ["is in flight", { outcome: { type: "pending" } }, Number.POSITIVE_INFINITY],
    ["is made again after one that found room", { lastAtMs: NOW_MS - MINUTE }, Number.POSITIVE_INFINITY],
    [
      "had a conflict, and is made again later",
      {
        lastAtMs: NOW_MS,
        outcome: failed({ reason: "WriteFailed", message: "changed", isConflict: true, retryAfterMs: 1000 }),
      },
      1000,
    ],
  ])(
    "is no failure yet, however long it has taken, while the first search for room %s",
    (_, search, inMs) => {
      const late = decided({ forMs: 12 * 60 * MINUTE, search });
      expect(late.inMs).toBe(inMs);
      expect(late.assessment).toMatchObject({
        state: "rolling",
        failure: undefined,
        obstacle: expect.stringMatching(/; other nodes are being searched for room$/),
      });
    },
  );

  it("is a failure while a search is repeated that ended without room", () => {
    const before = { reason: "NoNodeHasRoom", message: FULL } as const;
    const search = { outcome: { type: "pending", before }, attempts: 2 } as const;
    const { assessment } = decided({ forMs: 15 * MINUTE, search });
    expect(assessment).toMatchObject({ state: "failed", failure: { reason: "NoNodeHasRoom", attempts: 2 } });
  });

  it("falls back to a rollout when a search has found room, and not later than a minute after that", () => {
    const found = (agoMs: number) =>
      decided({ forMs: 5 * MINUTE, search: { attempts: 5, lastAtMs: NOW_MS - agoMs } });
    expect(found(0).actions).toMatchObject([
      { type: "adopt", rollout: { inPlaceFailure: { reason: "Deferred" } } },
    ]);
    expect(found(MINUTE - 1).summary).toEqual([expect.stringMatching(/^adopt a /)]);
    expect(found(MINUTE).summary).toEqual(["search room for a"]);
  });

  it("falls back without a search if its rollout keeps the old pods, and so does a size that its node can never have", () => {
    expect(decided({ pipe: { stopsOldPodsFirst: false } }).summary).toEqual([
      expect.stringMatching(/^adopt a /),
    ]);
    const resize = { ...DEFERRED, reason: "Infeasible" };
    const pods = new Map([["a", [aResizedPod("a-1", { resize })]]]);
    expect(decided({ changes: { pods } }).summary).toEqual([expect.stringMatching(/^adopt a /)]);
  });
});

describe("the rollout of a pipe that stops its old pods first, after a deferred resize", () => {
  const atMs = NOW_MS - 1000;
  const inPlaceFailure = { size: sizeOfCores(4), reason: "Deferred", message: "no room", atMs } as const;
  const pipe = { lastRollout: aRollout(sizeOfCores(1), { inPlaceFailure, cameUp: true }) };
  const pods = new Map([["a", [aPod("a-1")]]]);

  it("tries its size on the pod, and searches for room unless that was found a moment ago", () => {
    const changes = { pods };
    expect(decided({ pipe, changes }).actions).toMatchObject([
      { type: "dry-run", checksNodes: true, triedPod: { metadata: { name: "a-1" } } },
    ]);
    expect(decided({ pipe, changes, tried: {} }).actions).toMatchObject([
      { type: "check-room", stopping: [{ metadata: { name: "a-1" } }], fullNodes: [] },
    ]);
    const begun = decided({ pipe, changes, tried: {}, search: { lastAtMs: NOW_MS - 1000 } });
    expect(begun.summary).toEqual(["a 4000m/16Gi"]);
    const late = { lastAtMs: NOW_MS - MINUTE };
    expect(decided({ pipe, changes, tried: {}, search: late }).summary).toEqual(["search room for a"]);
    expect(decided({ pipe, changes, tried: late, search: {} }).summary).toEqual(["dry run of a"]);
  });

  it("is a failure while no node has room, and begins without it only if a retry is requested", () => {
    const search = nothing(10_000);
    const { summary, assessment } = decided({ pipe, changes: { pods }, tried: {}, search });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({
      state: "failed",
      failure: { reason: "NoNodeHasRoom", retryAtMs: NOW_MS + 50_000 },
    });
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    const requested = { pipe: { ...pipe, lastRollout: undefined }, search, strategy: "Rollout" } as const;
    expect(decided({ ...requested, changes: { pods, scaling }, tried: {} }).summary).toEqual([
      "a 4000m/16Gi",
    ]);
    // The dry run of the retry has replaced that of the failure.
    const retried = { ...requested, search: undefined, changes: { pods, scaling } };
    expect(decided({ ...retried, tried: { isRequested: true } }).summary).toEqual(["a 4000m/16Gi"]);
    expect(decided({ ...retried, tried: {} }).summary).toEqual(["search room for a"]);
    const late = { isRequested: true, lastAtMs: NOW_MS - MINUTE };
    expect(decided({ ...retried, tried: late }).summary).toEqual(["dry run of a"]);
  });
});

describe("a pipe that stops its old pods first, whose template has the size and whose pod cannot get it in place", () => {
  const four = sizeOfCores(4);
  const inPlaceFailure = { size: four, reason: "Infeasible", message: "no", atMs: NOW_MS - 30_000 } as const;
  const pipe = { size: four, lastRollout: aRollout(four, { inPlaceFailure, cameUp: true }) };
  const pods = new Map([["a", [aPod("a-1")]]]);
  const afterSearch = (search: Partial<WriteRecord>) =>
    decided({ pipe, changes: { pods }, tried: {}, search, isReturned: true });

  it("keeps the pod until a node has room for another one", () => {
    expect(decided({ pipe, changes: { pods }, isReturned: true }).actions).toMatchObject([
      { type: "dry-run", checksNodes: true, triedPod: { metadata: { name: "a-1" } } },
    ]);
    const { summary, assessment } = afterSearch(nothing(10_000));
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({
      state: "failed",
      failure: { reason: "NoNodeHasRoom", retryAtMs: NOW_MS + 50_000 },
    });
    expect(afterSearch(nothing(MINUTE)).summary).toEqual(["search room for a"]);
    expect(afterSearch({}).summary).toEqual(["replace-pods a"]);
  });

  const resize = (type: ResizeCondition["type"], reason: string) => ({ type, reason, message: "no" });
  /** The second pod is in this state since three minutes ago. */
  const beside = (second: PodView) =>
    decided({
      pipe: { ...pipe, replicas: 2 },
      changes: { pods: new Map([["a", [aPod("a-1"), second]]]) },
      tried: {},
      search: nothing(10_000),
      isReturned: true,
    });
  const resizedAtMs = NOW_MS - 3 * MINUTE;

  it.each<[string, Partial<PodView>]>([
    ["has the size", {}],
    ["can never get it on its node", { resize: resize("PodResizePending", "Infeasible") }],
    ["cannot get it yet", { resize: resize("PodResizeInProgress", "Error"), resizedAtMs }],
    ["has not got it in time", { resize: resize("PodResizeInProgress", ""), resizedAtMs }],
  ])("fails with the reason while no node has room, although another pod %s", (_, changes) => {
    const { summary, assessment } = beside(aResizedPod("a-2", changes));
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({
      state: "failed",
      failure: { reason: "NoNodeHasRoom", message: FULL, retryAtMs: NOW_MS + 50_000 },
    });
  });

  /** The return of the second pod has failed or is repeated, while no node has room. */
  const returning = (changes: Partial<WriteRecord>, replicas = 2) => {
    const back = aPodWrite("a-2", { outcome: failed(), ...changes }, "return-pod");
    const search = aWrite("uid-a", "check-room", { subject: "1/pipe/true/4000m/16Gi", ...nothing(10_000) });
    return decided({
      pipe: { ...pipe, replicas, rollout: { ...COMPLETE, replicas } },
      changes: {
        pods: new Map([["a", [aResizedPod("a-1"), aPod("a-2")]]]),
        writes: someWrites([back, search, aWrite("uid-a", "dry-run", { subject: search.record.subject })]),
      },
    });
  };

  it("gives a pod that size again although no node has room, as soon as the delay after a failure has passed", () => {
    expect(returning({ lastAtMs: NOW_MS - 999 })).toMatchObject({
      summary: [],
      assessment: { failure: { reason: "NoNodeHasRoom" } },
      inMs: 1,
    });
    expect(returning({ lastAtMs: NOW_MS - 1000 })).toMatchObject({
      summary: ["return-pod a-2"],
      assessment: { state: "rolling", failure: undefined },
    });
  });

  it("has not failed while that write is in flight", () => {
    const { summary, assessment } = returning({ outcome: { type: "pending" } });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({ state: "rolling", failure: undefined });
  });

  it("keeps its pods until the next search if not all of them are seen, because then none can get it again", () => {
    const { summary, assessment } = returning({ lastAtMs: NOW_MS - 1000 }, 3);
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({ state: "failed", failure: { reason: "NoNodeHasRoom" } });
  });

  it("goes on waiting for a pod that may still get it in place", () => {
    const { assessment } = beside(aResizedPod("a-2", { resize: DEFERRED, resizedAtMs }));
    expect(assessment).toMatchObject({
      state: "rolling",
      obstacle: expect.stringContaining("pod a-2 waits"),
    });
    const begun = aResizedPod("a-2", { resize: resize("PodResizeInProgress", ""), resizedAtMs: NOW_MS });
    expect(beside(begun).assessment?.failure).toBeUndefined();
  });
});
