import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Sizing } from "../../../../src/controller/decide/decision.ts";
import { historyOf, statusOf } from "../../../../src/controller/report/status.ts";
import {
  type HistoryEntry,
  MAX_HISTORY,
  type PipeScalingStatus,
  pipeScalingSchema,
} from "../../../../src/crd/pipe-scaling.ts";
import { describeSize, sizeOfCores } from "../../../../src/domain/size.ts";
import { parseTime } from "../../../../src/kube/time.ts";
import { mergePatch } from "../../../../src/runtime/merge-patch.ts";
import { anAssessment } from "../../../support/fixtures/decisions.ts";
import {
  aLabelledPipe,
  aPipe,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";

type Source = HistoryEntry["source"];
type Propagation = NonNullable<PipeScalingStatus["propagation"]>;

const NOON = "2026-06-01T12:00:00Z";
const ONE = "2026-06-01T13:00:00Z";
const TWO = "2026-06-01T14:00:00Z";
const THREE = "2026-06-01T15:00:00Z";
const UNDER_WAY: Propagation = { startedAt: NOON };
const COMPLETED: Propagation = { startedAt: NOON, completedAt: ONE };

function desiredOf(cores: number, source: Source = "Spec") {
  const { cpuMillicores, memoryGib } = sizeOfCores(cores);
  const summary = describeSize({ cpuMillicores, memoryGib });
  return { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib, summary, source };
}

function next(history: readonly HistoryEntry[], cores: number, propagation: Propagation, isFailed = false) {
  return historyOf(history, { ...desiredOf(cores), ...propagation }, { ...RUN, isFailed });
}

const RUN = { isRun: true, isFailed: false, isGivenBack: false };

describe("the history of sizes", () => {
  it("starts with the first size as Progressing", () => {
    const propagation = { startedAt: NOON, requestId: "request-1" };
    expect(historyOf([], { ...desiredOf(2, "TierDefault"), ...propagation }, RUN)).toStrictEqual([
      {
        replicaCpuMillicores: 2000,
        replicaMemoryGb: 8,
        summary: "2 cpu / 8 Gi",
        source: "TierDefault",
        result: "Progressing",
        requestId: "request-1",
        startedAt: NOON,
        completedAt: undefined,
        boost: undefined,
      },
    ]);
  });

  it("marks a size as Failed that was given back after containers ran out of memory, although every pipe ran it", () => {
    const scaled = next(next([], 4, COMPLETED), 1, COMPLETED);
    const rescale = { ...desiredOf(1), ...COMPLETED };
    const given = historyOf(scaled, rescale, { ...RUN, isGivenBack: true });
    expect(given.map(({ result, completedAt }) => [result, completedAt])).toEqual([
      ["Failed", undefined],
      ["Scaled", ONE],
    ]);
    const retried = historyOf(given, rescale, { ...RUN, isRun: false });
    expect(retried.map(({ result }) => result)).toEqual(["Progressing", "Scaled"]);
    expect(historyOf(given, rescale, RUN).map(({ result }) => result)).toEqual(["Scaled", "Scaled"]);
    const later = next(given, 2, COMPLETED);
    expect(later.map(({ result }) => result)).toEqual(["Scaled", "Superseded", "Scaled"]);
  });

  it.each([{ source: "Forecast" }, { result: "Paused" }])(
    "drops an older entry of a later version, which the CRD rejects: %j",
    (unknown) => {
      const [scaled] = next([], 4, COMPLETED);
      const later: HistoryEntry = JSON.parse(
        JSON.stringify({ ...scaled, completedAt: undefined, ...unknown }),
      );
      const history = [...next([], 2, COMPLETED), later, ...next([], 1, COMPLETED)];
      for (const cores of [2, 8]) {
        const written = next(history, cores, COMPLETED);
        expect(pipeScalingSchema.safeParse({ status: { history: written } }).error).toBeUndefined();
        expect(written.at(-1)?.summary).toBe("1 cpu / 4 Gi");
      }
    },
  );

  it("marks the newest entry as Scaled, with the time, when every pipe runs the size", () => {
    const history = next(next([], 2, UNDER_WAY), 2, COMPLETED);
    expect(history).toEqual([
      { ...desiredOf(2), result: "Scaled", requestId: undefined, startedAt: NOON, completedAt: ONE },
    ]);
  });

  it("marks the newest entry as Failed while a pipe cannot run the size, and as Scaled when every pipe runs it", () => {
    const failed = next([], 8, UNDER_WAY, true);
    expect(failed).toMatchObject([{ result: "Failed", completedAt: undefined }]);
    expect(next(failed, 8, UNDER_WAY)).toMatchObject([{ result: "Progressing" }]);
    expect(next(failed, 8, COMPLETED)).toMatchObject([{ result: "Scaled", completedAt: ONE }]);
  });

  it("starts a new entry for a new size, and marks an unfinished or failed entry as Superseded", () => {
    const second: Propagation = { startedAt: TWO };
    expect(next(next([], 2, UNDER_WAY), 4, second)).toMatchObject([
      { ...desiredOf(4), result: "Progressing", startedAt: TWO },
      { ...desiredOf(2), result: "Superseded", startedAt: NOON },
    ]);
    expect(next(next([], 2, UNDER_WAY, true), 4, second)).toMatchObject([
      { result: "Progressing" },
      { result: "Superseded" },
    ]);
    expect(next(next([], 2, COMPLETED), 4, second)).toMatchObject([
      { result: "Progressing" },
      { result: "Scaled", completedAt: ONE },
    ]);
  });

  it.each([
    ["completed", COMPLETED, { result: "Scaled", completedAt: ONE }],
    ["is in progress", UNDER_WAY, { result: "Progressing", completedAt: undefined }],
  ])(
    "keeps one entry, with its times and the last request, if API requests repeat a size that %s",
    (_, first, outcome) => {
      let history = next(next([], 4, COMPLETED), 8, { ...first, requestId: "request-0" });
      const again = first.completedAt ? { startedAt: TWO, completedAt: THREE } : { startedAt: TWO };
      for (let at = 1; at <= MAX_HISTORY; at += 1) {
        history = next(history, 8, { ...again, requestId: `request-${at}` });
      }
      expect(history).toMatchObject([
        { ...desiredOf(8), ...outcome, requestId: `request-${MAX_HISTORY}`, startedAt: NOON },
        { ...desiredOf(4), result: "Scaled" },
      ]);
    },
  );

  it("marks the entry of a repeated request as Scaled when every pipe runs the size", () => {
    const failed = next([], 8, { ...UNDER_WAY, requestId: "request-1" }, true);
    const again = { requestId: "request-2", startedAt: TWO };
    expect(next(failed, 8, again)).toMatchObject([{ result: "Progressing", startedAt: NOON }]);
    expect(next(failed, 8, { ...again, completedAt: THREE })).toMatchObject([
      { result: "Scaled", startedAt: NOON, completedAt: THREE },
    ]);
  });

  it("keeps an entry as Scaled, with its original time, if a pipe is added or fails later", () => {
    const scaled = next([], 2, COMPLETED);
    expect(next(scaled, 2, COMPLETED, true)).toEqual(scaled);
    expect(next(scaled, 2, { startedAt: NOON, completedAt: THREE })).toEqual(scaled);
  });

  it("keeps the last ten sizes", () => {
    const sizes = Array.from({ length: MAX_HISTORY + 2 }, (_, at) => at + 1);
    const history = sizes.reduce<HistoryEntry[]>((all, cores) => next(all, cores, UNDER_WAY), []);
    expect(history.map(({ replicaCpuMillicores }) => replicaCpuMillicores / 1000)).toEqual(
      sizes.slice(2).toReversed(),
    );
  });

  it("updates the source of the size only in the newest entry", () => {
    const byDefault = historyOf([], { ...desiredOf(2, "TierDefault"), ...COMPLETED }, RUN);
    expect(next(byDefault, 2, COMPLETED)).toMatchObject([{ source: "Spec", startedAt: NOON }]);
    expect(next(byDefault, 4, UNDER_WAY)).toMatchObject([{ source: "Spec" }, { source: "TierDefault" }]);
  });
});

describe("the entry of a boost in the history", () => {
  const boosted = (history: readonly HistoryEntry[], cores: number, source: Source) =>
    historyOf(history, { ...desiredOf(cores, source), ...COMPLETED, boost: true }, RUN);

  it("is marked while other sizes follow", () => {
    const history = next(boosted(next([], 2, COMPLETED), 8, "TierLimit"), 2, COMPLETED);
    expect(history.map(({ boost }) => boost)).toEqual([undefined, true, undefined]);
    expect(boosted(boosted([], 8, "Boost"), 8, "Boost")).toMatchObject([{ boost: true }]);
  });

  it("is not marked if the same size was requested before the boost, or is after it", () => {
    expect(boosted(next([], 8, COMPLETED), 8, "TierLimit")).toMatchObject([{ boost: undefined }]);
    expect(next(boosted([], 8, "TierLimit"), 8, COMPLETED)).toMatchObject([{ boost: undefined }]);
    const request = { ...COMPLETED, requestId: "request-1" };
    expect(boosted(next([], 8, request), 8, "Boost")).toMatchObject([{ boost: undefined }]);
    expect(next(boosted([], 8, "Boost"), 8, request)).toMatchObject([{ boost: undefined }]);
  });

  it("is marked in the status, whether or not the tier limits the boost", () => {
    for (const [maximum, source] of [
      [24, "Boost"],
      [4, "TierLimit"],
    ] as const) {
      const boost = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, until: "9000-01-01T00:00:00Z" };
      const scaling = aScaling(1, { spec: { boost } });
      const value = { name: "basic", defaultSize: sizeOfCores(1), maximumSize: sizeOfCores(maximum) };
      const snapshot = aSnapshot([aLabelledPipe("a")], { scaling, tier: { ok: true, value } });
      const { history } = statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
      expect(history).toMatchObject([{ source, boost: true }]);
    }
  });
});

describe("the history in the status", () => {
  const NAMES = ["a", "b"];
  const states = fc.constantFrom("done", "rolling", "waiting", "retrying", "failed", "paused", "unsizable");
  const steps = fc.record({
    cores: fc.integer({ min: 1, max: 3 }),
    source: fc.constantFrom<Source>("Spec", "TierDefault", "TierLimit"),
    requestId: fc.option(fc.constantFrom("request-1", "request-2"), { nil: undefined }),
    suspend: fc.boolean(),
    isDeleting: fc.boolean(),
    states: fc.array(states, { maxLength: NAMES.length }),
    passedS: fc.nat({ max: 5 }),
  });
  type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

  function sizingOf({ cores, source, requestId, states }: Step): Sizing {
    return {
      desired: { size: sizeOfCores(cores), source },
      boost: undefined,
      requestId,
      outOfMemory: undefined,
      assessments: states.map((state, at) => {
        const name = NAMES[at] ?? "";
        const failure = { reason: "Refused", message: "no", attempts: 1, atMs: Date.parse(NOON) } as const;
        const isFailed = ["retrying", "failed", "unsizable"].includes(state);
        return anAssessment(name, cores, { state, ...(isFailed ? { failure } : {}) });
      }),
      waitReason: "nothing",
      blockedBy: [],
      serviceLimit: 3,
      window: { open: true, untilMs: Number.POSITIVE_INFINITY },
    };
  }

  function report(status: PipeScalingStatus, step: Step, nowMs: number): PipeScalingStatus {
    const sizing = step.isDeleting ? undefined : sizingOf(step);
    const pipes = step.states.map((_, at) => aPipe(NAMES[at] ?? ""));
    const scaling = aScaling(step.cores, { status, spec: { suspend: step.suspend } });
    return statusOf(aSnapshot(pipes, { nowMs }), scaling, { sizing }, POLICY);
  }

  const stepOf = (changes: Partial<Step>): Step => ({
    cores: 2,
    source: "Spec",
    requestId: undefined,
    suspend: false,
    isDeleting: false,
    passedS: 0,
    states: [],
    ...changes,
  });

  it("has the result Failed even while the service is suspended", () => {
    const failed = report({}, stepOf({ states: ["failed", "waiting"] }), NOW_MS);
    expect(failed.history).toMatchObject([{ result: "Failed" }]);
    const suspended = report(failed, stepOf({ states: ["failed", "waiting"], suspend: true }), NOW_MS);
    expect(suspended.history).toMatchObject([{ result: "Failed" }]);
  });

  it("has the result Failed as soon as a pipe that cannot be resized in place counts as a failure", () => {
    const hindered = (status: PipeScalingStatus, afterMs: number) => {
      const scaling = aScaling(2, { status });
      const snapshot = aSnapshot([aPipe("a")], { scaling, strategy: "InPlace", nowMs: NOW_MS + afterMs });
      return statusOf(snapshot, scaling, decide(snapshot, DECIDE_OPTIONS), POLICY);
    };
    const begun = hindered({}, 0);
    expect(hindered(begun, POLICY.rolloutTimeoutMs - 1).history).toMatchObject([{ result: "Progressing" }]);
    const failed = hindered(begun, POLICY.rolloutTimeoutMs);
    expect(failed.history).toMatchObject([{ result: "Failed", completedAt: undefined }]);
    const resized = report(failed, stepOf({ states: ["done"] }), NOW_MS + POLICY.rolloutTimeoutMs);
    expect(resized.history).toMatchObject([{ result: "Scaled" }]);
  });

  // The Scaled sizes are safe targets of a rollback, because every pipe ran them.
  it("does not have the result Scaled for a size that no pipe ran", () => {
    expect(report({}, stepOf({ states: [] }), NOW_MS).history).toMatchObject([{ result: "Progressing" }]);
  });

  it("is bounded and sorted by age, has no size twice in a row and at most one unfinished entry, and changes only with the rest of the status", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 40, size: "max" }), (all) => {
        let status: PipeScalingStatus = {};
        let nowMs = NOW_MS;
        for (const step of all) {
          nowMs += step.passedS * 1000;
          const before = status;
          status = report(before, step, nowMs);
          const { history = [], propagation } = status;
          expect(history.length).toBeLessThanOrEqual(MAX_HISTORY);
          expect(history.map(({ startedAt }) => startedAt)).toEqual(
            history
              .map(({ startedAt }) => startedAt)
              .toSorted()
              .toReversed(),
          );
          for (const { result } of history.slice(1)) expect(["Scaled", "Superseded"]).toContain(result);
          for (const { result, completedAt } of history)
            expect(completedAt !== undefined).toBe(result === "Scaled");
          for (const [at, { summary }] of history.entries())
            expect(summary).not.toBe(history[at + 1]?.summary);
          const [newest] = history;
          if (!step.isDeleting) {
            expect(newest).toMatchObject({ ...status.desired, requestId: propagation?.requestId });
            // The request may repeat an earlier one for the same size.
            expect(parseTime(newest?.startedAt)).toBeLessThanOrEqual(parseTime(propagation?.startedAt));
          }

          const rest = mergePatch({ ...before, history: undefined }, { ...status, history: undefined });
          if (!rest) expect(mergePatch(before, status)).toBeUndefined();
          expect(mergePatch(status, report(status, step, nowMs + 60_000))).toBeUndefined();
        }
      }),
    );
  });
});
