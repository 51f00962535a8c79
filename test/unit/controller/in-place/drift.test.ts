import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { summarizeConditions } from "../../../../src/controller/report/conditions.ts";
import { failuresOf } from "../../../../src/controller/report/failures.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";
import { aPodWrite, failed, someWrites, type Write } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);
const SECOND = 1000;
const WEEK = 7 * 24 * 3600 * SECOND;
const SIZED = { size: FOUR, lastRollout: aRollout(FOUR, { cameUp: true }) };
const NAMED = `another writer, "right-sizer", has resized the pod a-1: exempt the pipe from it`;

/** A pod that another writer gave one core. */
function drifted(
  name = "a-1",
  resizedBy: string | undefined = "right-sizer",
  changes: Partial<PodView> = {},
) {
  return aPod(name, changes, { resizedBy });
}

function written(attempts: number, agoMs: number, pod = "a-1"): Write {
  return aPodWrite(pod, { attempts, lastAtMs: NOW_MS - agoMs });
}

interface Given {
  readonly pods?: readonly PodView[];
  readonly writes?: readonly Write[];
  readonly pipe?: Partial<PipeView>;
  readonly tolerated?: readonly string[];
  readonly changes?: Partial<Snapshot>;
}

function decided({
  pods = [drifted()],
  writes = [],
  pipe = SIZED,
  tolerated = [],
  changes = {},
}: Given = {}) {
  const snapshot = aSnapshot([aLabelledPipe("a", { replicas: pods.length, ...pipe })], {
    strategy: "InPlaceOrRollout",
    pods: new Map([["a", pods]]),
    writes: someWrites(writes),
    ...changes,
  });
  const policy = { ...DECIDE_OPTIONS.policy, toleratedResizers: [...tolerated] };
  const decision = decide(snapshot, { ...DECIDE_OPTIONS, policy });
  const { actions, sizing } = decision;
  const failures = failuresOf(sizing?.assessments ?? [], {});
  const condition = summarizeConditions(aScaling(4), snapshot.tier, sizing, failures);
  const recheckInMs = recheckAtMs(snapshot, decision) - NOW_MS;
  return { actions, summary: summaries(actions), assessment: sizing?.assessments[0], condition, recheckInMs };
}

describe("a pod that another writer resized after its pipe had the size", () => {
  it("is resized again, and the status names the pod and the writer at once", () => {
    const { summary, condition } = decided();
    expect(summary).toEqual(["resize-pod a-1"]);
    expect(condition).toMatchObject({ type: "Reconciling", reason: "FieldConflict" });
    expect(condition.message).toContain(NAMED);
  });

  it.each([
    ["at once the first time", 1, 0, ["resize-pod a-1"], "Reconciling"],
    ["not before 10 s", 2, 9_999, [], "Reconciling"],
    ["after 10 s", 2, 10_000, ["resize-pod a-1"], "Reconciling"],
    ["not before 60 s", 3, 59_999, [], "Reconciling"],
    ["after 60 s", 3, 60_000, ["resize-pod a-1"], "Reconciling"],
    ["no more after that", 4, 3_600_000, [], "Stalled"],
    ["after a week of truce", 4, WEEK + 1, ["resize-pod a-1"], "Reconciling"],
  ] as const)("is resized again %s", (_, attempts, agoMs, expected, type) => {
    const { summary, condition } = decided({ writes: [written(attempts, agoMs)] });
    expect(summary).toEqual(expected);
    expect(condition).toMatchObject({ type, reason: "FieldConflict" });
    expect(condition.message).toContain(NAMED);
  });

  it("waits for its next resize, and the status shows when that is", () => {
    const { assessment, recheckInMs } = decided({ writes: [written(2, 4000)] });
    expect(assessment?.failure).toMatchObject({ attempts: 2, retryAtMs: NOW_MS + 6000 });
    expect(recheckInMs).toBe(6000);
  });

  it("is resized again when people ask for it, and the count starts over", () => {
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    const { actions } = decided({ writes: [written(4, 1000)], changes: { scaling } });
    expect(actions).toMatchObject([{ type: "resize-pod", isRequested: true }]);
  });

  it("has failed, and shows when a retry is requested for later", () => {
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS + 5000 });
    const { summary, assessment, recheckInMs } = decided({
      writes: [written(4, 1000)],
      changes: { scaling },
    });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({ state: "failed", failure: { retryAtMs: NOW_MS + 5000 } });
    expect(recheckInMs).toBe(5000);
  });

  it("is not replaced for that, even if its pipe could not be resized in place before", () => {
    const inPlaceFailure = { size: FOUR, reason: "Deferred", message: "", atMs: NOW_MS - 30_000 } as const;
    const pipe = { ...SIZED, lastRollout: aRollout(FOUR, { cameUp: true, inPlaceFailure }) };
    for (const attempts of [1, 2, 3, 4, 5])
      expect(decided({ pipe, writes: [written(attempts, 3_600_000)] }).summary).toEqual(
        attempts <= 3 ? ["resize-pod a-1"] : [],
      );
  });

  const inPlaceFailure = { size: FOUR, reason: "Deferred", message: "", atMs: NOW_MS - 90_000 } as const;
  const failedPipe = { ...SIZED, lastRollout: aRollout(FOUR, { cameUp: true, inPlaceFailure }) };
  const deferred = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;

  it("is not replaced while it is repaired, although its pipe could not be resized in place before", () => {
    const pods = [aResizedPod("a-1", { resize: deferred })];
    expect(decided({ pods, pipe: failedPipe, writes: [written(2, 59_999)] }).summary).toEqual([]);
  });

  it("is returned to its template if the repair itself fails, and replaced if that fails, too", () => {
    const pods = [aResizedPod("a-1", { resize: deferred })];
    const writes = [written(2, 60_000)];
    expect(decided({ pods, pipe: failedPipe, writes }).summary).toEqual(["adopt a with 4000m/16Gi"]);
    const later = { ...inPlaceFailure, atMs: NOW_MS };
    const pipe = { ...SIZED, lastRollout: aRollout(FOUR, { cameUp: true, inPlaceFailure: later }) };
    expect(decided({ pods: [aPod("a-1")], pipe }).summary).toEqual(["return-pod a-1"]);
    const returned = [aPodWrite("a-1", {}, "return-pod")];
    expect(decided({ pods: [aPod("a-1")], pipe, writes: returned }).summary).toEqual(["replace-pods a"]);
  });

  it("is resized again although another pod restarted after its own repair", () => {
    const restarted = aResizedPod("a-2", {}, { restartCount: 1, restartedAtMs: NOW_MS - 1000 });
    const writes = [written(2, 60_000), aPodWrite("a-2", { runs: "id 0", lastAtMs: NOW_MS - 5000 })];
    expect(decided({ pods: [drifted(), restarted], writes }).summary).toEqual(["resize-pod a-1"]);
  });

  it("is not replaced if a policy denies its resize", () => {
    const outcome = failed({ reason: "Forbidden", message: "denied", fallback: "Forbidden" });
    const { summary, assessment } = decided({ writes: [aPodWrite("a-1", { outcome })] });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({ state: "retrying", failure: { message: "denied" } });
  });

  it("is resized again only when its container runs", () => {
    const stopped = aPod("a-1", {}, { resizedBy: "right-sizer", isRunning: false, restartCount: 1 });
    const { summary, assessment } = decided({ pods: [stopped], writes: [written(1, 1000)] });
    expect(summary).toEqual([]);
    expect(assessment).toMatchObject({ state: "retrying" });
    expect(assessment?.failure?.message).toContain(
      "It cannot be resized now: pod a-1: a container is not running",
    );
  });

  it.each(["InPlace", "InPlaceOrRollout"] as const)(
    "is resized again alone if the container of another one is stopped or starts: %s",
    (strategy) => {
      const createdAtMs = NOW_MS - 30_000;
      for (const others of [
        { resizedBy: "right-sizer", isRunning: false, restartCount: 1 },
        { resizedBy: "right-sizer", isRunning: false },
        { isRunning: false },
      ]) {
        const pods = [aPod("a-1", { createdAtMs }, others), drifted("a-2")];
        const { summary } = decided({ pods, writes: [written(1, 1000, "a-2")], changes: { strategy } });
        expect(summary).toEqual(["resize-pod a-2"]);
      }
    },
  );

  it("is looked at again at its next attempt, while another pod starts and has no size yet", () => {
    const pods = [drifted(), aPod("a-2", { createdAtMs: NOW_MS - 30_000 }, { isRunning: false })];
    for (const strategy of ["InPlace", "InPlaceOrRollout"] as const) {
      const waiting = decided({ pods, writes: [written(2, 1000)], changes: { strategy } });
      expect(waiting).toMatchObject({ summary: [], recheckInMs: 9000 });
      expect(waiting.assessment?.failure).toMatchObject({ reason: "FieldConflict" });
    }
  });

  it("is looked at again when another pod should have started, although its own attempts are used up", () => {
    const starting = (agoMs: number) => aPod("a-2", { createdAtMs: NOW_MS - agoMs }, { isRunning: false });
    const writes = [written(4, 1000)];
    const waiting = decided({ pods: [drifted(), starting(30_000)], writes });
    const { rolloutTimeoutMs } = POLICY;
    expect(waiting).toMatchObject({ summary: [], recheckInMs: rolloutTimeoutMs + 90_000 });
    expect(waiting.assessment?.failure).toMatchObject({ reason: "FieldConflict" });
    const late = starting(rolloutTimeoutMs + 120_000);
    expect(decided({ pods: [drifted(), late], writes }).summary).toEqual(["adopt a with 4000m/16Gi"]);
    const changes = { strategy: "InPlace" } as const;
    const inPlace = decided({ pods: [drifted(), late], writes, changes });
    expect(inPlace).toMatchObject({ summary: [], assessment: { state: "failed" } });
  });

  it("does not hold up the rollout that another pod needs, unless no pod may be replaced", () => {
    for (const own of [{ isRunning: false, restartCount: 1 }, { actual: undefined }]) {
      const pods = [drifted(), aPod("a-2", {}, own)];
      const writes = [written(1, 1000)];
      expect(decided({ pods, writes }).summary).toEqual(["adopt a with 4000m/16Gi"]);
    }
    const pods = [drifted(), aPod("a-2", {}, { isRunning: false, restartCount: 1 })];
    const changes = { strategy: "InPlace" } as const;
    expect(decided({ pods, writes: [written(1, 1000)], changes }).summary).toEqual(["resize-pod a-1"]);
  });

  it("is resized again after a restart of the controller, which has no memory of its writes", () => {
    const { summary, condition } = decided({ writes: [] });
    expect(summary).toEqual(["resize-pod a-1"]);
    expect(condition.message).not.toContain("1970");
  });

  it("is looked at again when its container should run, even after such a restart, and no retry has a time", () => {
    const starting = { resizedBy: "right-sizer", isRunning: false };
    const pods = [aPod("a-1", { createdAtMs: NOW_MS - 30_000 }, starting)];
    for (const writes of [[], [written(2, 60_000)]]) {
      const { summary, assessment, recheckInMs } = decided({ pods, writes });
      expect(summary).toEqual([]);
      expect(assessment?.failure?.message).toContain("It cannot be resized now: pod a-1: a container");
      expect(assessment?.failure).not.toHaveProperty("retryAtMs");
      expect(recheckInMs).toBe(90_000);
    }
  });

  it("has no time of a retry while nothing but a person ends what keeps it from its size", () => {
    const templateProblem = { reason: "NotSettled", message: "it moved" } as const;
    const { assessment } = decided({ pipe: { ...SIZED, templateProblem } });
    expect(assessment?.failure?.message).toContain("It cannot be resized now: it moved");
    expect(assessment?.failure).not.toHaveProperty("retryAtMs");
  });

  it("is known by the memory of writes if something removed its managed fields", () => {
    const { condition } = decided({ pods: [aPod("a-1")], writes: [written(4, 1000)] });
    expect(condition).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
    expect(condition.message).toContain("another writer has resized the pod a-1");
  });

  it("does not keep other pods from the size", () => {
    const pods = [drifted(), aPod("a-2")];
    expect(decided({ pods, writes: [written(4, 1000)] }).summary).toEqual(["resize-pod a-2"]);
  });

  it("is resized again alone at first if all pods of the pipe are resized", () => {
    expect(decided({ pods: [drifted(), drifted("a-2")] }).summary).toEqual(["resize-pod a-1"]);
    const starting = aPod("a-3", { createdAtMs: NOW_MS }, { isRunning: false });
    expect(decided({ pods: [drifted(), drifted("a-2"), starting] }).summary).toEqual(["resize-pod a-1"]);
    expect(decided({ pods: [drifted(), drifted("a-2"), aResizedPod("a-3")] }).summary).toEqual([
      "resize-pod a-1",
      "resize-pod a-2",
    ]);
  });

  it("is one of several, whose number the status has", () => {
    const pods = [drifted(), drifted("a-2"), aResizedPod("a-3")];
    const writes = [written(4, 1000), written(4, 1000, "a-2")];
    expect(decided({ pods, writes }).condition.message).toContain("has resized the pod a-1 and 1 more");
  });
});

describe("a pod that another writer resizes before the template of its pipe follows", () => {
  const pipe = {};

  it("is resized again a few times, and no pod is replaced", () => {
    expect(decided({ pipe, writes: [written(1, 0)] }).summary).toEqual(["resize-pod a-1"]);
    const { summary, condition } = decided({ pipe, writes: [written(4, 3_600_000)] });
    expect(summary).toEqual([]);
    expect(condition).toMatchObject({ type: "Stalled", reason: "FieldConflict" });
  });

  it("is resized like any other if the controller did not resize it since the request", () => {
    const { summary, condition } = decided({ pipe });
    expect(summary).toEqual(["resize-pod a-1"]);
    expect(condition.reason).toBe("Progressing");
  });
});

describe("a tool that the settings name", () => {
  const tolerated = ["boost"];
  const boosted = aPod("a-1", {}, { resizedBy: "boost", resources: amounts(sizeOfCores(8)) });

  it("is waited for, and nothing is written meanwhile", () => {
    for (const pipe of [SIZED, {}]) {
      const { summary, assessment, condition } = decided({ pods: [boosted], pipe, tolerated });
      expect(summary).toEqual([]);
      expect(condition).toMatchObject({ type: "Reconciling", reason: "Progressing" });
      expect(condition.message).toContain(
        `a waits for "boost", which resized the pod a-1, to return it to its size.`,
      );
      expect(assessment).toMatchObject({
        state: "rolling",
        activity: `it waits for "boost", which resized the pod a-1, to return it to its size`,
      });
    }
  });

  it("has ended when the pod has the size again, and the pipe is done", () => {
    const returned = aResizedPod("a-1", {}, { resizedBy: "boost" });
    expect(decided({ pods: [returned], tolerated }).condition.type).toBe("Ready");
  });

  it("has ended when the pod has the size of its template, and another size that was requested follows", () => {
    const returned = aPod("a-1", {}, { resizedBy: "boost" });
    expect(decided({ pods: [returned], pipe: {}, tolerated }).summary).toEqual(["resize-pod a-1"]);
  });

  it("has ended when the pod has the resources of its template, if these are no valid size", () => {
    const otherResources = { requests: { cpu: "500m", memory: "1Gi" }, limits: { memory: "2Gi" } };
    const pipe = { size: undefined, otherResources };
    const returned = aPod("a-1", {}, { resources: otherResources, resizedBy: "boost" });
    expect(decided({ pods: [returned], pipe, tolerated }).summary).toEqual(["resize-pod a-1"]);
    const boosted = aPod("a-1", {}, { resizedBy: "boost" });
    expect(decided({ pods: [boosted], pipe, tolerated }).assessment?.activity).toContain('waits for "boost"');
  });

  it("has ended when the pod has what its template gives to pods, whatever else Kubernetes gave it", () => {
    const limits = { cpu: "500m", memory: "512Mi" };
    const otherResources = { requests: { cpu: null, memory: null }, limits };
    const pipe = { size: undefined, otherResources };
    const returned = aPod("a-1", {}, { resources: { requests: limits, limits }, resizedBy: "boost" });
    expect(decided({ pods: [returned], pipe, tolerated }).summary).toEqual(["a 4000m/16Gi"]);
    const activity = (resources: object) =>
      decided({ pods: [aPod("a-1", {}, { resources, resizedBy: "boost" })], pipe, tolerated }).assessment
        ?.activity;
    expect(activity(amounts(sizeOfCores(8)))).toContain('waits for "boost"');
    expect(activity({ requests: { ...limits, cpu: "1" }, limits: { ...limits, cpu: "1" } })).toContain(
      'waits for "boost"',
    );
  });

  it("is not waited for if the template has no amount that shows when it ends", () => {
    const otherResources = { requests: { cpu: null, memory: null }, limits: { memory: null } };
    const pipe = { size: undefined, otherResources };
    expect(decided({ pods: [boosted], pipe, tolerated }).summary).toEqual(["a 4000m/16Gi"]);
  });

  it("does not keep the controller from repairing what another tool did", () => {
    expect(decided({ tolerated }).summary).toEqual(["resize-pod a-1"]);
  });
});

it("no pod gets more than four writes, whatever another writer does and when", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 120_000 }), { minLength: 1, maxLength: 60 }), (waits) => {
      let [nowMs, attempts, lastAtMs, writes] = [NOW_MS, 1, NOW_MS, 1];
      for (const waitMs of waits) {
        nowMs += waitMs;
        const record = aPodWrite("a-1", { attempts, lastAtMs });
        const { summary, assessment } = decided({ writes: [record], changes: { nowMs } });
        expect(assessment?.state).not.toBe("done");
        if (summary.length === 0) continue;
        expect(summary).toEqual(["resize-pod a-1"]);
        [attempts, lastAtMs, writes] = [attempts + 1, nowMs, writes + 1];
      }
      expect(writes).toBeLessThanOrEqual(4);
    }),
  );
});
