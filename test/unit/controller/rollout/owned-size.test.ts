import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor } from "../../../support/fixtures/decisions.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  resizedTo,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);
const UNOWNED = { ownsSize: false };

/** The actions for a pipe of a service for which four cores are desired. */
function actions(pipe: PipeView, changes: Partial<Snapshot> = {}) {
  return actionsFor(aSnapshot([pipe], changes));
}

describe("a pipe whose size the controller does not own", () => {
  it("is adopted with its size if it was deployed with the requested one", () => {
    expect(actions(aPipe("a", { size: FOUR, ...UNOWNED }))).toEqual(["own a with 4000m/16Gi"]);
  });

  it("is adopted with its size if it was deployed with the default of the tier", () => {
    const scaling = aScaling(undefined);
    expect(actions(aPipe("a", UNOWNED), { scaling })).toEqual(["own a with 1000m/4Gi"]);
  });

  it("is resized first if it has another size", () => {
    expect(actions(aPipe("a", UNOWNED))).toEqual(["a 4000m/16Gi"]);
  });

  it("gets an owner with the record of its completed rollout, if some fields had the size before", () => {
    const pipe = rollingTo("a", FOUR, { rollout: COMPLETE, ...UNOWNED });
    expect(actions(pipe)).toEqual(["own a with 4000m/16Gi"]);
    expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).actions).toMatchObject([{ rollout: { cameUp: true } }]);
  });

  it("gets an owner after its owner changed the size and changed it back", () => {
    const pipe = resizedTo("a", FOUR, UNOWNED);
    expect(actions(pipe)).toEqual(["own a with 4000m/16Gi"]);
    expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).actions).toMatchObject([{ rollout: pipe.lastRollout }]);
  });

  it("is left alone while a rollout of the controller is in progress", () => {
    expect(actions(rollingTo("a", FOUR, UNOWNED))).toEqual([]);
  });

  it("is left alone while its template follows its pods", () => {
    const lastRollout = aRollout(FOUR, { inPlaceStartedAtMs: NOW_MS - 1000, isCommitting: true });
    const committing = { isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: NOW_MS };
    const pipe = aPipe("a", { size: FOUR, lastRollout, ...committing, ...UNOWNED });
    expect(actions(pipe, { strategy: "InPlaceOrRollout" }).join()).not.toContain("own");
  });

  it("is left alone while the service is suspended", () => {
    const scaling = aScaling(4);
    const suspended = { ...scaling, spec: { ...scaling.spec, suspend: true } };
    expect(actions(aPipe("a", { size: FOUR, ...UNOWNED }), { scaling: suspended })).toEqual([]);
  });

  it("is not adopted without end if something removes the controller from its owners each time", () => {
    const pipe = resizedTo("a", FOUR, {
      lastRollout: aRollout(FOUR, { cameUp: true, generation: 0 }),
      ...UNOWNED,
    });
    const actionsAfter = (attempts: number, agoMs: number) => {
      const outcome = { type: "done" } as const;
      const writes = someWrites([
        aWrite("uid-a", "adopt", { subject: "4000m/16Gi", attempts, outcome, lastAtMs: NOW_MS - agoMs }),
      ]);
      return actions(pipe, { writes });
    };
    expect(actionsAfter(2, 9_000)).toEqual([]);
    expect(actionsAfter(2, 10_000)).toEqual(["own a with 4000m/16Gi"]);
    expect(actionsAfter(4, 24 * 3_600_000)).toEqual([]);
  });
});

describe("a pipe whose size the controller owns", () => {
  it("causes no write", () => {
    expect(actions(resizedTo("a", FOUR))).toEqual([]);
    expect(actions(aPipe("a"), { scaling: aScaling(undefined) })).toEqual([]);
  });
});
