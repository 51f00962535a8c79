import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { WritePurpose, WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor, failuresIn, summaries } from "../../../support/fixtures/decisions.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites, withoutResponse } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

describe("after an earlier write, a pipe", () => {
  const withWrite = (changes: Partial<WriteRecord>, purpose: WritePurpose = "resize"): Partial<Snapshot> => ({
    writes: someWrites([aWrite("uid-a", purpose, changes)]),
  });
  const decided = (changes: Partial<WriteRecord>, ...pipes: readonly PipeView[]) =>
    decide(aSnapshot(pipes.length > 0 ? pipes : [aPipe("a")], withWrite(changes)), DECIDE_OPTIONS);

  it("is written again after a failure with a delay that doubles, while the others continue", () => {
    const at = (attempts: number, agoMs: number) =>
      decided({ attempts, lastAtMs: NOW_MS - agoMs, outcome: failed() }, aPipe("a"), aPipe("b"));
    expect(summaries(at(3, 3999).actions)).toEqual(["b 4000m/16Gi"]);
    expect(at(3, 3999).sizing?.assessments[0]).toMatchObject({
      state: "retrying",
      failure: { reason: "WriteFailed", message: "no", attempts: 3 },
      recheckAtMs: NOW_MS + 1,
    });
    expect(summaries(at(3, 4000).actions)).toEqual(["a 4000m/16Gi"]);
    expect(summaries(at(50, 299_999).actions)).toEqual(["b 4000m/16Gi"]);
    expect(summaries(at(50, 300_000).actions)).toEqual(["a 4000m/16Gi"]);
  });

  it("is rolled out later as if failed writes had not been, unless the size was refused", () => {
    const afterFailures = { attempts: 7, outcome: failed(), lastAtMs: 0 };
    expect(decided(afterFailures).actions).toMatchObject([{ type: "resize", rollout: { attempts: 1 } }]);
    const afterRefusal = { ...afterFailures, outcome: failed({ reason: "Refused" }) };
    expect(decided(afterRefusal).actions).toMatchObject([{ type: "resize", rollout: { attempts: 8 } }]);
    const startedAtMs = NOW_MS - 3_600_000;
    const lastRollout = aRollout(FOUR, { isRollback: true, attempts: 2, startedAtMs });
    expect(decided(afterFailures, aPipe("a", { lastRollout })).actions).toMatchObject([
      { type: "resize", rollout: { attempts: 3 } },
    ]);
  });

  it("is tried with a rejected size again when the Deployment has changed, with a delay that grows with each attempt", () => {
    const changed = (attempts: number, agoMs: number) => {
      const outcome = failed({ reason: "Refused" }, 0);
      return summaries(decided({ attempts, lastAtMs: NOW_MS - agoMs, outcome }).actions);
    };
    expect(changed(1, 999)).toEqual([]);
    expect(changed(1, 1000)).toEqual(["a 4000m/16Gi"]);
    expect(changed(6, 31_999)).toEqual([]);
    expect(changed(6, 32_000)).toEqual(["a 4000m/16Gi"]);
  });

  it("is not tried with a rejected size again until the Deployment changes or 5 minutes have passed", () => {
    expect(decided({ outcome: failed({ reason: "Refused" }) }, aPipe("a"), aPipe("b")).actions).toEqual([]);
    const later = decided({ outcome: failed({ reason: "Refused" }), lastAtMs: NOW_MS - 300_000 });
    expect(summaries(later.actions)).toEqual(["a 4000m/16Gi"]);
  });

  it("is read if the write got no response, and counts as a rollout until the read succeeds", () => {
    const unknown = decided({ outcome: withoutResponse() }, aPipe("a"), aPipe("b"));
    expect(summaries(unknown.actions)).toEqual(["read a"]);
    expect(decided({ outcome: { type: "pending" } }, aPipe("a"), aPipe("b")).actions).toEqual([]);
  });

  const stuck = rollingTo("a", FOUR, {
    lastRollout: aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs }),
  });

  it("is rolled back again after a rejection if a retry is requested, and soon after the Deployment has changed", () => {
    const refused = (generation: number, agoMs: number) =>
      withWrite(
        { lastAtMs: NOW_MS - agoMs, outcome: failed({ reason: "Refused" }, generation) },
        "roll-back",
      );
    expect(actionsFor(aSnapshot([stuck], refused(1, 60_000)))).toEqual([]);
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(actionsFor(aSnapshot([stuck], { ...refused(1, 60_000), scaling }))).toEqual([
      "a back to 1000m/4Gi",
    ]);
    expect(actionsFor(aSnapshot([stuck], refused(0, 999)))).toEqual([]);
    expect(actionsFor(aSnapshot([stuck], refused(0, 1000)))).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is not rolled back without end, and the reason is reported", () => {
    const writes = withWrite({ attempts: 2, outcome: failed({ reason: "Refused" }) }, "roll-back");
    const decision = decide(aSnapshot([stuck], writes), DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(failuresIn(decision)).toMatchObject([
      {
        reason: "RolloutTimeout",
        message: expect.stringContaining(
          "the rollback failed: no (attempt 2, next at 2026-06-01T12:10:00.000Z)",
        ),
      },
    ]);
  });
});
