import fc from "fast-check";
import { expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import type { WritePurpose, WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import type { PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { boostFields } from "../../../../src/crd/size-fields.ts";
import { RESIZE_STRATEGIES } from "../../../../src/domain/resize-strategy.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const NAMES = ["a", "b", "c", "d"];

const cores = fc.constantFrom(1, 2, 4);
const word = fc.constantFrom(...NAMES, "4 cpu / 16 Gi", "Refused", "FieldConflict", "Deferred");
const time = fc.constantFrom("2026-06-01T11:59:00Z", "2026-06-01T12:10:00Z", "1970-01-01T00:00:00Z");
const agoMs = fc.constantFrom(0, 1000, 45_000, 600_000, 3_600_000);
const sizeFields = cores.map((each) => ({
  replicaCpuMillicores: each * 1000,
  replicaMemoryGb: each * 4,
  summary: `${each} cpu / ${each * 4} Gi`,
}));
const source = fc.constantFrom("Spec", "TierDefault");

const anyStatus: fc.Arbitrary<PipeScalingStatus> = fc.record(
  {
    observedGeneration: fc.integer({ min: -1, max: 3 }),
    conditions: fc.array(
      fc.record({
        type: fc.constantFrom("Ready", "Stalled"),
        status: fc.constantFrom("True", "False"),
        lastTransitionTime: time,
        reason: word,
        message: word,
      }),
      { maxLength: 2 },
    ),
    desired: fc.tuple(sizeFields, source).map(([size, from]) => ({ ...size, source: from })),
    boost: fc.tuple(sizeFields, time).map(([size, until]) => ({ ...size, until })),
    effective: sizeFields,
    pipes: fc.record({
      total: fc.nat(4),
      updated: fc.nat(4),
      summary: word,
      resizedBy: fc.dictionary(word, fc.constantFrom("InPlace", "Rollout")),
      fallbacks: fc.array(fc.record({ pipe: word, reason: word, message: word }), { maxLength: 3 }),
      pending: fc.array(fc.record({ name: word, state: fc.constantFrom("Failed", "Resized") }), {
        maxLength: 3,
      }),
    }),
    propagation: fc.record({ startedAt: time, completedAt: time }),
    failures: fc.array(
      fc.record({
        pipe: word,
        size: sizeFields,
        reason: word,
        message: word,
        at: time,
        nextRetryAt: time,
        attempts: fc.integer({ min: 1, max: 9 }),
      }),
      { maxLength: 3 },
    ),
    history: fc.array(
      fc
        .tuple(sizeFields, source, time, fc.constantFrom("Scaled", "Failed"))
        .map(([size, from, startedAt, result]) => ({ ...size, source: from, startedAt, result })),
      { maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);

const lastRollout = fc
  .record({
    of: cores,
    before: cores,
    isRollback: fc.boolean(),
    cameUp: fc.boolean(),
    agoMs,
    attempts: fc.integer({ min: 0, max: 5 }),
    hasFailedInPlace: fc.boolean(),
  })
  .map(({ of, before, agoMs: ago, hasFailedInPlace, ...rest }) => {
    const size = sizeOfCores(of);
    const startedAtMs = NOW_MS - ago;
    const inPlaceFailure = { size, reason: "Deferred", message: "no room", atMs: startedAtMs } as const;
    const inPlace = hasFailedInPlace ? { inPlaceFailure } : {};
    return aRollout(size, { ...rest, ...inPlace, startedAtMs, lastGoodSize: sizeOfCores(before) });
  });

/** A pipe, the size of its only pod, and the write to it that failed, if any. */
const state = fc.record({
  of: cores,
  podOf: cores,
  isComplete: fc.boolean(),
  isSeen: fc.boolean(),
  hasLabelledPods: fc.boolean(),
  pause: fc.constantFrom("none", "owner", "ours"),
  lastRollout: fc.option(lastRollout, { nil: undefined }),
  write: fc.option(
    fc.record({
      purpose: fc.constantFrom<WritePurpose>("resize", "commit", "resume", "adopt", "roll-back"),
      agoMs,
      attempts: fc.integer({ min: 1, max: 5 }),
      outcome: fc.constantFrom<WriteRecord["outcome"]>({ type: "pending" }, { type: "done" }, failed()),
    }),
    { nil: undefined },
  ),
});
type State = typeof state extends fc.Arbitrary<infer T> ? T : never;

function pipeOf(name: string, { of, isComplete, isSeen, pause, hasLabelledPods, lastRollout: last }: State) {
  const rollout = { ...COMPLETE, isComplete, isUpdated: isComplete, isSeen };
  const pausedForCommitAtMs = pause === "ours" ? NOW_MS - 1000 : undefined;
  const paused = { isPaused: pause !== "none", isPausedForCommit: pause === "ours", pausedForCommitAtMs };
  return aPipe(name, { size: sizeOfCores(of), hasLabelledPods, rollout, lastRollout: last, ...paused });
}

function podOf(name: string, { podOf: of }: State): PodView {
  const own = amounts(sizeOfCores(of));
  return aResizedPod(`${name}-1`, {}, { resources: own, allocated: own.requests, actual: own });
}

const snapshot = fc
  .record({
    states: fc.array(state, { minLength: 1, maxLength: NAMES.length }),
    wanted: fc.option(cores, { nil: undefined }),
    boost: fc.option(fc.record({ size: cores.map(sizeOfCores), inMs: fc.constantFrom(-1000, 0, 60_000) }), {
      nil: undefined,
    }),
    strategy: fc.constantFrom(...RESIZE_STRATEGIES),
  })
  .map(({ states, wanted, boost, strategy }) => {
    const requested = aScaling(wanted);
    const boosted = boost && { boost: boostFields({ size: boost.size, untilMs: NOW_MS + boost.inMs }) };
    const scaling = { ...requested, spec: { ...requested.spec, ...boosted } };
    const named = states.map((each, at) => [NAMES[at] ?? "", each] as const);
    const writes = named.flatMap(([name, { write }]) => {
      if (!write) return [];
      const { purpose, agoMs: ago, ...record } = write;
      return aWrite(`uid-${name}`, purpose, { ...record, lastAtMs: NOW_MS - ago });
    });
    return aSnapshot(
      named.map(([name, each]) => pipeOf(name, each)),
      {
        strategy,
        scaling,
        writes: someWrites(writes),
        pods: new Map(named.map(([name, each]) => [name, [podOf(name, each)]])),
      },
    );
  });

/** The actions, the annotations that they write, and the time of the next decision. */
function decided(of: Snapshot) {
  const decision = decide(of, DECIDE_OPTIONS);
  const annotations = decision.actions.map((action) => ("rollout" in action ? action.rollout : undefined));
  return {
    actions: summaries(decision.actions),
    annotations,
    atMs: recheckAtMs(of, decision),
  };
}

it("the decision about a service is the same whatever its status says, which is output only", () => {
  fc.assert(
    fc.property(snapshot, anyStatus, (each, status) => {
      const scaling = each.scaling && { ...each.scaling, status };
      expect(decided({ ...each, scaling })).toEqual(decided(each));
    }),
    { numRuns: 500 },
  );
});
