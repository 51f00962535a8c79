import { describe, expect, it } from "vitest";
import type { Action } from "../../../../src/controller/actions.ts";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { annotationSubject, type LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { formatAllotment, resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { failuresOfOtherSizes } from "../../../../src/controller/rollout/prior-failure.ts";
import { formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import { formatSize, type Size, sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor, failuresIn, statesFor, summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
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
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import {
  aPodWrite,
  aWrite,
  failed,
  someWrites,
  type Write,
  withoutResponse,
} from "../../../support/fixtures/writes.ts";

const ONE = sizeOfCores(1);
const FOUR = sizeOfCores(4);

describe("a pipe that was rolled back", () => {
  const rolledBack = (attempts: number, rollout: Partial<LastRollout> = {}, stopsOldPodsFirst = false) => {
    const failure = { reason: "RolloutTimeout", message: "too slow" } as const;
    const lastRollout = aRollout(FOUR, { attempts, isRollback: true, failure, ...rollout });
    return aPipe("a", { lastRollout, stopsOldPodsFirst });
  };

  it("has the cause of its annotation, after a crash between the rollback and the report", () => {
    const decision = decide(aSnapshot([rolledBack(1), aPipe("b")]), DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual([]);
    expect(failuresIn(decision)).toMatchObject([
      { pipe: "a", reason: "RolloutTimeout", message: "too slow" },
    ]);
  });

  it.each([
    [1, 5],
    [2, 10],
    [5, 60],
    [9, 60],
  ])("is resized again after %i attempts %i minutes later", (attempts, minutes) => {
    const startedAtMs = NOW_MS - minutes * 60_000;
    const at = (ms: number) => aSnapshot([rolledBack(attempts, { startedAtMs: ms })]);
    expect(actionsFor(at(startedAtMs + 1))).toEqual([]);
    const { actions } = decide(at(startedAtMs), DECIDE_OPTIONS);
    expect(actions).toMatchObject([{ type: "resize", rollout: { attempts: attempts + 1 } }]);
  });

  it.each([
    ["after the rollback", -60_000],
    ["although a clock was ahead at the rollback", 3_600_000],
  ])("says that the check of a requested retry was refused, %s", (_, startedAtMs) => {
    const pipe = rolledBack(1, { startedAtMs: NOW_MS + startedAtMs });
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS - 2000 });
    const trying = { ...DECIDE_OPTIONS, makesDryRuns: true };
    const [check] = decide(aSnapshot([pipe, aPipe("b")], { scaling }), trying).actions;
    const subject = check?.type === "dry-run" ? check.subject : "";
    const outcome = failed({ reason: "Refused", message: "exceeded quota" });
    const writes = someWrites([aWrite("uid-a", "dry-run", { subject, outcome, lastAtMs: NOW_MS - 1000 })]);
    const decision = decide(aSnapshot([pipe, aPipe("b")], { scaling, writes }), trying);
    expect(failuresIn(decision)).toMatchObject([{ reason: "Refused", message: "exceeded quota" }]);
  });

  it("is resized again immediately if a retry or another size is requested", () => {
    const retried = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(actionsFor(aSnapshot([rolledBack(1)], { scaling: retried }))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(aSnapshot([rolledBack(1)], { scaling: aScaling(8) }))).toEqual(["a 8000m/32Gi"]);
  });

  it("is resized again only on request if a rollout stops its old pods first", () => {
    const startedAtMs = NOW_MS - 86_400_000;
    expect(actionsFor(aSnapshot([rolledBack(1, { startedAtMs }, true)]))).toEqual([]);
  });
});

describe("a pipe that has its old size again, which is requested now", () => {
  const failure = { reason: "RolloutTimeout", message: "too slow" } as const;
  const rolledBack = aRollout(FOUR, {
    attempts: 7,
    isRollback: true,
    failure,
    generation: 3,
    startedAtMs: 9,
  });
  const inPlaceFailure = { size: FOUR, reason: "Deferred", message: "no room", atMs: NOW_MS } as const;
  /** The actions while one core is requested. */
  const written = (
    lastRollout: LastRollout,
    changes: Partial<PipeView> = {},
    asked: Partial<PipeScalingView> = {},
  ) => {
    const metadata = { ...aScaling(1).metadata, generation: 8 };
    const pipe = aPipe("a", { lastRollout, stopsOldPodsFirst: true, ...changes });
    const scaling = aScaling(1, { metadata, ...asked });
    const { actions } = decide(aSnapshot([pipe], { scaling }), DECIDE_OPTIONS);
    return actions;
  };
  const rolloutIn = (actions: readonly Action[]) =>
    actions.flatMap((each) => (each.type === "adopt" ? each.rollout : []))[0];

  it("has one record of the size that failed less, so that the next request of it is a new attempt", () => {
    const actions = written({ ...rolledBack, inPlaceFailure });
    expect(actions).toMatchObject([{ type: "adopt" }]);
    const after = rolloutIn(actions) ?? rolledBack;
    expect(after).toMatchObject({ size: ONE, isRollback: false, cameUp: true, attempts: 0, generation: 3 });
    expect([after.failure, after.inPlaceFailure, after.scalingGeneration]).toEqual([undefined, undefined, 8]);
    expect(written(after)).toEqual([]);
    const pipe = aPipe("a", { lastRollout: { ...after, scalingGeneration: 1 }, stopsOldPodsFirst: true });
    expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).actions).toMatchObject([
      { type: "resize", rollout: { size: FOUR, attempts: 1 } },
    ]);
  });

  it("has a record of neither request, because the trace of the present one would begin with the rollback", () => {
    const [first, second] = ["0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11", "1c8f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c22"];
    const size = { replicaCpuMillicores: 1000, replicaMemoryGb: 4 };
    const requestedAt = new Date(NOW_MS - 1000).toISOString();
    const requestAnnotation = formatScalingRequest({
      requestId: second,
      apiKey: "key",
      requestedAt,
      ...size,
    });
    const after = rolloutIn(written({ ...rolledBack, requestId: first }, {}, { requestAnnotation }));
    expect(after).toMatchObject({ startedAtMs: 9, isRollback: false });
    expect(after?.requestId).toBeUndefined();
  });

  it("has no conflict with another writer because this process wrote the size before the rollback", () => {
    const after = rolloutIn(written(rolledBack));
    const rollout = { attempts: 4, lastAtMs: NOW_MS - 60_000 };
    const writes = someWrites([aWrite("uid-a", "resize", rollout)]);
    const actionsAfter = (startedAtMs: number) => {
      const lastRollout = after && { ...after, startedAtMs, scalingGeneration: 1 };
      return actionsFor(aSnapshot([aPipe("a", { lastRollout })], { writes }));
    };
    expect(actionsAfter(NOW_MS - 30_000)).toEqual(["a 4000m/16Gi"]);
    expect(actionsAfter(NOW_MS - 90_000)).toEqual([]);
    // The clock was ahead then. Each write still counts if another writer takes the size away.
    expect(actionsAfter(NOW_MS + 3_600_000)).toEqual([]);
  });

  it("is tried in place again when the size is requested again, and keeps the rest of its record", () => {
    const committed = aRollout(ONE, { cameUp: true, inPlaceStartedAtMs: 5, lastGoodSize: FOUR, attempts: 2 });
    const after = rolloutIn(written({ ...committed, inPlaceFailure }));
    expect(after).toEqual({ ...committed, inPlaceFailure: undefined });
  });

  it.each<[string, LastRollout, Partial<PipeView>]>([
    ["while a pod has another size", rolledBack, { rollout: { ...COMPLETE, isComplete: false } }],
    [
      "what its record says about that size",
      aRollout(ONE, { cameUp: true, inPlaceFailure: { ...inPlaceFailure, size: ONE } }),
      {},
    ],
    [
      "that it had other resources when it was adopted",
      aRollout(FOUR, { isRollback: true, generation: 0, cameUp: true }),
      {},
    ],
  ])("keeps %s", (_, lastRollout, changes) => {
    expect(written(lastRollout, changes)).toEqual([]);
  });

  it("counts the end of each failure in place by itself, because each was requested", () => {
    const subject = annotationSubject(aRollout(ONE, { cameUp: true, inPlaceFailure }));
    const record = aWrite("uid-a", "adopt", { subject, attempts: 9 });
    const pipe = aPipe("a", { lastRollout: aRollout(ONE, { cameUp: true, inPlaceFailure }) });
    const actionsWith = (...writes: readonly Write[]) =>
      actionsFor(aSnapshot([pipe], { scaling: aScaling(1), writes: someWrites(writes) }));
    expect(actionsWith(record)).toEqual(["adopt a with 1000m/4Gi"]);
    const ended = annotationSubject(aRollout(ONE, { cameUp: true }));
    expect(actionsWith(aWrite("uid-a", "adopt", { subject: ended, attempts: 9 }))).toEqual([]);
  });
});

describe("a rollout that takes long", () => {
  const late = aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs });

  const time = new Date(late.startedAtMs).toISOString();
  const stale = {
    ...UNDER_WAY,
    progressing: {
      type: "Progressing",
      status: "True",
      reason: "ReplicaSetUpdated",
      lastUpdateTime: time,
      lastTransitionTime: time,
    },
    progressedAtS: late.startedAtMs / 1000,
  };

  it("is not rolled back if the owner has changed the pipe since and it may have come up before", () => {
    const lastRollout = { ...late, scalingUid: "of the PipeScaling that was deleted" };
    const at = (revision: number) =>
      aSnapshot([rollingTo("a", FOUR, { lastRollout, rollout: stale, revision })]);
    expect(statesFor(at(lastRollout.revision + 1))).toEqual(["failed"]);
    expect(actionsFor(at(lastRollout.revision + 1))).toEqual([]);
    expect(actionsFor(at(lastRollout.revision))).toEqual(["a back to 1000m/4Gi"]);
  });

  it("has not failed if the controller never resized the pipe", () => {
    const adopted = aPipe("a", {
      size: FOUR,
      lastRollout: aRollout(FOUR, { attempts: 0, generation: 0 }),
      rollout: stale,
    });
    expect(statesFor(aSnapshot([adopted]))).toEqual(["rolling"]);
  });

  it("does not end later because of a time in the future that a wrong clock wrote", () => {
    const startedAtMs = NOW_MS + 86_400_000;
    const at = (agoMs: number) => {
      const rollout = { ...UNDER_WAY, progressedAtS: (NOW_MS - agoMs) / 1000 };
      return aSnapshot([rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, { startedAtMs }), rollout })]);
    };
    expect(actionsFor(at(POLICY.rolloutTimeoutMs - 1000))).toEqual([]);
    expect(actionsFor(at(POLICY.rolloutTimeoutMs))).toEqual(["a back to 1000m/4Gi"]);
    const failure = { reason: "RolloutTimeout", message: "too slow" } as const;
    const failed = aPipe("a", { lastRollout: aRollout(FOUR, { isRollback: true, failure, startedAtMs }) });
    expect(decide(aSnapshot([failed]), DECIDE_OPTIONS).sizing?.assessments).toMatchObject([
      { state: "failed", recheckAtMs: NOW_MS + 5 * 60_000 },
    ]);
  });

  it("is reported with its timeout even if that is shorter than a minute", () => {
    const failures = failuresIn(
      decide(aSnapshot([rollingTo("a", FOUR)]), {
        ...DECIDE_OPTIONS,
        policy: { ...POLICY, rolloutTimeoutMs: 12_500 },
      }),
    );
    expect(failures).toMatchObject([{ message: "the rollout has not completed in 12.5 s" }]);
  });
});

describe("the failures of another size", () => {
  const EIGHT = sizeOfCores(8);
  const ofPod = (size: Size) => formatAllotment(resourcesFor(size, false));
  const checked = (size: Size) => `1/pipe/false/${formatSize(size)}`;
  /** Failed writes of this size to the pipe and its pod, dry runs and searches. */
  const failuresWith = (size: Size, outcome = failed({ reason: "Refused" })): readonly Write[] => [
    ...(["resize", "commit", "continue-commit"] as const).map((purpose) =>
      aWrite("uid-a", purpose, { subject: formatSize(size), outcome }),
    ),
    ...(["dry-run-commit", "dry-run", "check-room"] as const).map((purpose) =>
      aWrite("uid-a", purpose, { subject: checked(size), outcome }),
    ),
    aPodWrite("a-1", { subject: ofPod(size), outcome }),
  ];
  const ALL = failuresWith(EIGHT).map(({ uid, purpose }) => ({ uid, purpose }));
  const decidedWith = (writes: readonly Write[], pipe: Partial<PipeView> = {}, pod = aResizedPod("a-1")) => {
    const pipes = [aLabelledPipe("a", { size: FOUR, ...pipe })];
    const snapshot = aSnapshot(pipes, { pods: new Map([["a", [pod]]]), writes: someWrites(writes) });
    const { sizing } = decide({ ...snapshot, strategy: "InPlaceOrRollout" }, DECIDE_OPTIONS);
    return sizing?.assessments ?? [];
  };
  const forgottenFor = (...given: Parameters<typeof decidedWith>) =>
    decidedWith(...given)
      .flatMap(failuresOfOtherSizes)
      .map(({ uid, purpose }) => ({ uid, purpose }));

  it("are forgotten when all pods have the size", () => {
    expect(forgottenFor(failuresWith(EIGHT))).toEqual(ALL);
  });

  it("are forgotten when all pods have the previous size because they ran out of memory with this one", () => {
    const outOfMemory = { size: FOUR, previous: sizeOfCores(5), pipe: "a", message: "killed", atMs: NOW_MS };
    const lastRollout = aRollout(sizeOfCores(5), { outOfMemory, cameUp: true });
    const actual = amounts(sizeOfCores(5));
    const pod = aResizedPod("a-1", {}, { resources: actual, allocated: actual.requests, actual });
    const given = [failuresWith(EIGHT), { size: sizeOfCores(5), lastRollout }, pod] as const;
    expect(decidedWith(...given)).toMatchObject([{ isReturned: true }]);
    expect(forgottenFor(...given)).toEqual(ALL);
  });

  it.each<[string, Parameters<typeof decidedWith>]>([
    ["the template does not have the size", [failuresWith(EIGHT), { size: ONE }]],
    ["a pod does not have the size", [failuresWith(EIGHT), {}, aPod("a-1")]],
    ["they are of this size, which another writer may change", [failuresWith(FOUR)]],
    ["they are repeated now", [failuresWith(EIGHT, { type: "pending" })]],
    ["their outcomes are unknown", [failuresWith(EIGHT, withoutResponse())]],
    ["they succeeded", [failuresWith(EIGHT, { type: "done" })]],
  ])("are kept if %s", (_, given) => {
    expect(forgottenFor(...given)).toEqual([]);
  });
});
