import { describe, expect, it } from "vitest";
import type { PipeScalingView } from "../../src/controller/observe/pipe-scaling-view.ts";
import type { Obstacle } from "../../src/controller/observe/snapshot.ts";
import { ForeignReports } from "../../src/controller/report/foreign-reports.ts";
import { foreignStatus } from "../../src/controller/report/status.ts";
import { Store } from "../../src/runtime/store.ts";
import { aScaling, aSnapshot } from "../gen/snapshot.ts";

const UNKNOWN: Obstacle = { reason: "UnknownService", message: "No service." };

function statusFor(foreign: PipeScalingView, obstacle = UNKNOWN) {
  return foreignStatus(aSnapshot([], { namespace: undefined, tier: { ok: false, obstacle } }), foreign);
}

function withReason(reason: string): PipeScalingView {
  const status = statusFor(aScaling(4));
  const conditions = status.conditions?.map((each) => ({ ...each, reason }));
  return aScaling(4, { status: { ...status, ...(conditions ? { conditions } : {}) } });
}

describe("reports on PipeScalings that are not looked after", () => {
  const foreign = aScaling(4);

  function afterOne() {
    const store = new Store<PipeScalingView>();
    store.apply(foreign);
    const reports = new ForeignReports(store);
    expect(reports.next(foreign, statusFor(foreign))).toBe("say");
    reports.said(foreign, statusFor(foreign));
    return { store, reports };
  }

  it("are made until one has been written", () => {
    const reports = new ForeignReports(new Store());
    expect(reports.next(foreign, statusFor(foreign))).toBe("say");
    expect(reports.next(foreign, statusFor(foreign))).toBe("say");
  });

  it("are left to another who speaks, which is told once", () => {
    const { reports } = afterOne();
    const ofAnother = withReason("Scaled");
    const next = () => reports.next(ofAnother, statusFor(ofAnother));
    expect([next(), next(), next()]).toEqual(["yield", "keep quiet", "keep quiet"]);
  });

  it("are made again for a new generation that nobody else has spoken of", () => {
    const { reports } = afterOne();
    const edited = aScaling(8, {
      metadata: { ...foreign.metadata, generation: 2 },
      status: statusFor(foreign),
    });
    expect(reports.next(edited, statusFor(edited))).toBe("say");
  });

  it("are made again when there is something else to say", () => {
    const { reports } = afterOne();
    const ofBefore = aScaling(4, { status: statusFor(foreign) });
    const malformed: Obstacle = { reason: "MalformedRecord", message: "It cannot be read." };
    expect(reports.next(ofBefore, statusFor(ofBefore, malformed))).toBe("say");
  });

  it.each([
    ["looked after meanwhile", ({ reports }: ReturnType<typeof afterOne>) => reports.forget(foreign)],
    [
      "deleted and made again",
      ({ store }: ReturnType<typeof afterOne>) =>
        store.remove({ ...foreign, metadata: { ...foreign.metadata, resourceVersion: "2" } }),
    ],
  ])("are made again of one that was %s", (_, happens) => {
    const told = afterOne();
    happens(told);
    const ofAnother = withReason("Scaled");
    expect(told.reports.next(ofAnother, statusFor(ofAnother))).toBe("say");
  });
});
