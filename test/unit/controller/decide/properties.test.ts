import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { timedPhase } from "../../../../src/controller/rollout/phase.ts";
import { OURS } from "../../../../src/domain/rollout-plan.ts";
import { sameSize, sizeOfCores } from "../../../../src/domain/size.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
} from "../../../support/fixtures/snapshot.ts";

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
