import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { Snapshot } from "../../../../src/controller/observe/snapshot.ts";
import type { WritePurpose } from "../../../../src/controller/observe/write-record.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { summaries } from "../../../support/fixtures/decisions.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  DECIDE_OPTIONS,
  NOW_MS,
  resizedTo,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

const words = "0/3 nodes are available: 3 Insufficient cpu.";
const pods = new Map([["a", [aPod("a-1", { unschedulable: words }, { resources: amounts(FOUR) })]]]);

describe("a pipe whose rollout stopped its old pods, while another size is requested", () => {
  const stopped = rollingTo("a", FOUR, { stopsOldPodsFirst: true });
  const actionsWith = (pipes: readonly PipeView[], changes: Partial<Snapshot> = {}) =>
    summaries(decide(aSnapshot(pipes, { pods, scaling: aScaling(8), ...changes }), DECIDE_OPTIONS).actions);
  const refusal = (attempts: number, agoMs: number, purpose: WritePurpose, subject: string) => {
    const outcome = failed({ reason: "Refused" });
    const record = { subject, attempts, lastAtMs: NOW_MS - agoMs, outcome };
    return { writes: someWrites([aWrite("uid-a", purpose, record)]) };
  };

  it("gets the requested size if possible", () => {
    expect(actionsWith([stopped])).toEqual(["a 8000m/32Gi"]);
  });

  it.each<[string, Partial<Snapshot>, Partial<PipeView>, PipeView[]]>([
    ["is rejected", refusal(1, 0, "resize", "8000m/32Gi"), {}, []],
    ["is above a CPU limit", {}, { cpuLimitMillicores: 6000 }, []],
    ["waits for the rollout window", { rolloutWindow: aWindow() }, {}, []],
    [
      "waits because of a failure",
      {},
      {},
      [rollingTo("b", sizeOfCores(8), { lastRollout: aRollout(sizeOfCores(8), { startedAtMs: 0 }) })],
    ],
  ])("is rolled back if the requested size %s", (_, changes, ofPipe, others) => {
    expect(actionsWith([{ ...stopped, ...ofPipe }, ...others], changes)[0]).toBe("a back to 1000m/4Gi");
  });

  it("counts against the limit of the service if its rollback begins now", () => {
    const overdue = { ...stopped, lastRollout: aRollout(FOUR, { startedAtMs: 0 }) };
    const done = resizedTo("b", sizeOfCores(8));
    const others = ["c", "d", "e"].map((name) => aPipe(name));
    expect(actionsWith([overdue, done, ...others])).toEqual([
      "c 8000m/32Gi",
      "d 8000m/32Gi",
      "a back to 1000m/4Gi",
    ]);
  });

  it("gets the requested size instead of a rollback also after the timeout, if possible", () => {
    const overdue = { ...stopped, lastRollout: aRollout(FOUR, { startedAtMs: 0 }) };
    expect(actionsWith([overdue])).toEqual(["a 8000m/32Gi"]);
  });

  it("records the failed size, so that the requested one can still be tried", () => {
    const snapshot = aSnapshot([{ ...stopped, cpuLimitMillicores: 6000 }], {
      pods,
      scaling: aScaling(8),
    });
    expect(decide(snapshot, DECIDE_OPTIONS).actions).toMatchObject([
      { rollout: { size: FOUR, isRollback: true, failure: { reason: "Unschedulable", message: words } } },
    ]);
  });

  it("is not rolled back again at once after a rejection", () => {
    const actionsAt = (attempts: number, agoMs: number) =>
      actionsWith(
        [{ ...stopped, cpuLimitMillicores: 6000 }],
        refusal(attempts, agoMs, "roll-back", "4000m/16Gi"),
      );
    expect(actionsAt(1, 299_999)).toEqual([]);
    expect(actionsAt(1, 300_000)).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is not rolled back while another write to it is in flight", () => {
    const pending = { subject: "8000m/32Gi", outcome: { type: "pending" } } as const;
    const writes = someWrites([aWrite("uid-a", "resize", pending)]);
    expect(actionsWith([stopped], { writes })).toEqual([]);
  });

  it("is not rolled back if its rollout succeeded and it failed later", () => {
    const pipe = { ...stopped, cpuLimitMillicores: 6000 };
    expect(actionsWith([{ ...pipe, lastRollout: aRollout(FOUR, { cameUp: true }) }])).toEqual([]);
    expect(actionsWith([pipe])).toEqual(["a back to 1000m/4Gi"]);
  });

  it("is not rolled back if its rollout may still succeed, or is a rollback", () => {
    const window = { rolloutWindow: aWindow() };
    expect(actionsWith([stopped], { ...window, pods: new Map() })).toEqual([]);
    expect(actionsWith([{ ...stopped, stopsOldPodsFirst: false }], window)).toEqual([]);
    const back = aPipe("a", {
      rollout: UNDER_WAY,
      stopsOldPodsFirst: true,
      lastRollout: aRollout(FOUR, { isRollback: true }),
    });
    expect(actionsWith([back], window)).toEqual([]);
  });
});
