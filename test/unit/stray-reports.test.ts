import { describe, expect, it } from "vitest";
import type { Scaling } from "../../src/controller/scaling.ts";
import type { Obstacle } from "../../src/controller/snapshot.ts";
import { strayStatus } from "../../src/controller/status.ts";
import { StrayReports } from "../../src/controller/stray-reports.ts";
import { Store } from "../../src/runtime/store.ts";
import { aScaling, aSnapshot } from "../gen/snapshot.ts";

const UNKNOWN: Obstacle = { reason: "UnknownService", message: "No service." };

function statusFor(stray: Scaling, obstacle = UNKNOWN) {
  return strayStatus(aSnapshot([], { namespace: undefined, tier: { ok: false, obstacle } }), stray);
}

function withReason(reason: string): Scaling {
  const status = statusFor(aScaling(4));
  const conditions = status.conditions?.map((each) => ({ ...each, reason }));
  return aScaling(4, { status: { ...status, ...(conditions ? { conditions } : {}) } });
}

describe("reports on PipeScalings that are not looked after", () => {
  const stray = aScaling(4);

  function afterOne() {
    const store = new Store<Scaling>();
    store.apply(stray);
    const reports = new StrayReports(store);
    expect(reports.next(stray, statusFor(stray))).toBe("say");
    reports.said(stray, statusFor(stray));
    return { store, reports };
  }

  it("are made until one has been written", () => {
    const reports = new StrayReports(new Store());
    expect(reports.next(stray, statusFor(stray))).toBe("say");
    expect(reports.next(stray, statusFor(stray))).toBe("say");
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
      metadata: { ...stray.metadata, generation: 2 },
      status: statusFor(stray),
    });
    expect(reports.next(edited, statusFor(edited))).toBe("say");
  });

  it("are made again when there is something else to say", () => {
    const { reports } = afterOne();
    const ofBefore = aScaling(4, { status: statusFor(stray) });
    const malformed: Obstacle = { reason: "MalformedRecord", message: "It cannot be read." };
    expect(reports.next(ofBefore, statusFor(ofBefore, malformed))).toBe("say");
  });

  it.each([
    ["looked after meanwhile", ({ reports }: ReturnType<typeof afterOne>) => reports.forget(stray)],
    [
      "deleted and made again",
      ({ store }: ReturnType<typeof afterOne>) =>
        store.remove({ ...stray, metadata: { ...stray.metadata, resourceVersion: "2" } }),
    ],
  ])("are made again of one that was %s", (_, happens) => {
    const told = afterOne();
    happens(told);
    const ofAnother = withReason("Scaled");
    expect(told.reports.next(ofAnother, statusFor(ofAnother))).toBe("say");
  });
});
