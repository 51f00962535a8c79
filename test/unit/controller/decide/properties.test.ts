import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { WritePurpose, WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { timedPhase } from "../../../../src/controller/rollout/phase.ts";
import { OURS } from "../../../../src/domain/rollout-plan.ts";
import { sameSize, sizeOfCores } from "../../../../src/domain/size.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
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
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

describe("the actions for any state of the pipes", () => {
  const cores = fc.constantFrom(1, 2, 4, 8);
  const size = cores.map(sizeOfCores);
  const pipe = fc
    .record({
      size: fc.option(size, { nil: undefined }),
      isComplete: fc.boolean(),
      isPaused: fc.boolean(),
      stopsOldPodsFirst: fc.boolean(),
      replicas: fc.integer({ min: 0, max: 3 }),
      terminatingReplicas: fc.integer({ min: 0, max: 1 }),
      lastRollout: fc.option(
        fc.record({
          size,
          lastGoodSize: fc.option(size, { nil: undefined }),
          isRollback: fc.boolean(),
          // A clock can be ahead or behind.
          agoMs: fc.integer({ min: -7_200_000, max: 7_200_000 }),
          attempts: fc.integer({ min: 1, max: 6 }),
        }),
        { nil: undefined },
      ),
    })
    .map(({ isComplete, terminatingReplicas, lastRollout, ...rest }) => ({
      ...rest,
      rollout: { ...COMPLETE, isComplete, terminatingReplicas },
      lastRollout:
        lastRollout &&
        aRollout(lastRollout.size, { ...lastRollout, startedAtMs: NOW_MS - lastRollout.agoMs }),
    }));
  const snapshot = fc
    .record({ pipes: fc.array(pipe, { maxLength: 20 }), wanted: fc.option(cores, { nil: undefined }) })
    .map(({ pipes, wanted }) =>
      aSnapshot(
        pipes.map((each, index) => aPipe(`pipe-${String(index).padStart(2, "0")}`, each)),
        { scaling: aScaling(wanted) },
      ),
    );

  it("give only the desired size, and roll back only to a size that completed", () => {
    fc.assert(
      fc.property(snapshot, (each) => {
        const { actions, sizing } = decide(each, DECIDE_OPTIONS);
        for (const action of actions) {
          if (action.type === "resize") {
            expect(action.rollout.size).toEqual(sizing?.desired.size);
            expect(sameSize(action.pipe.size, action.rollout.size)).toBe(false);
          }
          if (action.type === "roll-back") expect(action.size).toEqual(action.pipe.lastRollout?.lastGoodSize);
        }
      }),
    );
  });

  const isOurs = (one: PipeView) => OURS.includes(timedPhase(one, { nowMs: NOW_MS, policy: POLICY }).phase);

  it("write each pipe at most once, and restart no more pipes than allowed", () => {
    fc.assert(
      fc.property(snapshot, fc.integer({ min: 0, max: 50 }), (each, overallFree) => {
        const { actions } = decide(each, { ...DECIDE_OPTIONS, overallFree });
        const touched = actions.flatMap((action) => ("pipe" in action ? [action.pipe] : []));
        expect(new Set(touched.map((one) => one.metadata.name)).size).toBe(touched.length);
        const begun = actions.flatMap((action) => (action.type === "resize" ? [action.pipe] : []));
        const fresh = begun.filter(
          (one) => one.replicas > 0 && !isOurs(one) && one.rollout.terminatingReplicas === 0,
        );
        expect(fresh.length).toBeLessThanOrEqual(
          Math.min(overallFree, Math.max(3, Math.ceil(each.pipes.length / 4))),
        );
      }),
    );
  });

  it("are the same for the same snapshot", () => {
    fc.assert(
      fc.property(snapshot, (each) => {
        const { writes, ...rest } = each;
        expect(decide({ ...structuredClone(rest), writes }, DECIDE_OPTIONS)).toEqual(
          decide(each, DECIDE_OPTIONS),
        );
      }),
    );
  });
});

describe("a pipe after any failed writes, dry runs and searches for room", () => {
  const trying = { ...DECIDE_OPTIONS, makesDryRuns: true };
  const failure = fc
    .record({
      reason: fc.constantFrom("WriteFailed", "Forbidden", "Refused", "NoNodeLargeEnough", "NoNodeHasRoom"),
      isConflict: fc.boolean(),
    })
    .map((error) => failed(error));
  const recordWith = (outcome: fc.Arbitrary<WriteRecord["outcome"]>) =>
    fc.record({
      outcome,
      attempts: fc.integer({ min: 1, max: 12 }),
      agoMs: fc.oneof(fc.nat(2000), fc.nat(120_000), fc.integer({ min: -3_600_000, max: 3_600_000 })),
    });
  const check = recordWith(fc.oneof(fc.constant({ type: "done" } as const), failure));
  const records = fc.record(
    { resize: recordWith(failure), "dry-run": check, "dry-run-commit": check, "check-room": check },
    { requiredKeys: [] },
  );
  const strategies = fc.constantFrom("Rollout", "InPlaceOrRollout");
  const pendings = fc.constantFrom(undefined, "Deferred", "Infeasible").map((reason) => {
    if (!reason) return aPod("a-1");
    const resize = { type: "PodResizePending", reason, message: "no room" } as const;
    return aResizedPod("a-1", { resize, resizedAtMs: NOW_MS - 5000 });
  });

  it("is tried now, or at a known time, whichever of them failed", () => {
    fc.assert(
      fc.property(records, strategies, fc.boolean(), pendings, (given, strategy, stopsOldPodsFirst, pod) => {
        const pipe = aLabelledPipe("a", { stopsOldPodsFirst });
        const pods = new Map([["a", [pod]]]);
        const [first] = decide(aSnapshot([pipe], { strategy, pods }), trying).actions;
        const checked = first?.type === "dry-run" ? { subject: first.subject } : {};
        const writes = Object.entries(given).map(([purpose, { agoMs, ...each }]) => {
          const changes = { ...each, ...(purpose === "resize" ? {} : checked), lastAtMs: NOW_MS - agoMs };
          return aWrite(pipe.metadata.uid, purpose as WritePurpose, changes);
        });
        const seen = aSnapshot([pipe], { strategy, pods, writes: someWrites(writes) });
        const decision = decide(seen, trying);
        expect(decision.actions.length > 0 || Number.isFinite(recheckAtMs(seen, decision))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
