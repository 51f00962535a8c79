import { describe, expect, it } from "vitest";
import type { WriteRecord } from "../../../src/controller/observe/write-record.ts";
import { dueAtMs, isRetryRequested } from "../../../src/controller/retry.ts";
import { TIMEOUTS } from "../../../src/controller/timeouts.ts";
import { NOW_MS } from "../../support/fixtures/snapshot.ts";
import { aWrite, failed } from "../../support/fixtures/writes.ts";

const HOUR_MS = 3_600_000;
const OBJECT = { metadata: { generation: 1 } };

/** How often a write is made in so many hours if each attempt ends in this way at once. */
function writesIn(hours: number, outcome: WriteRecord["outcome"]): number {
  const context = { scaling: undefined, timeouts: TIMEOUTS };
  let atMs = NOW_MS;
  for (let attempts = 1; ; attempts += 1) {
    const { record } = aWrite("uid-a", "resize", { attempts, lastAtMs: atMs, outcome });
    const nextMs = dueAtMs(record, OBJECT, { ...context, nowMs: atMs });
    if (nextMs >= NOW_MS + hours * HOUR_MS) return attempts;
    atMs = nextMs;
  }
}

describe("a write that fails again and again", () => {
  it("is made at most 20 times in the first hour, and 12 times in each hour after that", () => {
    expect(writesIn(1, failed())).toBeLessThanOrEqual(20);
    expect(writesIn(25, failed()) - writesIn(1, failed())).toBeLessThanOrEqual(24 * 12);
  });

  it("is repeated at once after a first conflict, because the object was read, and then like any other", () => {
    const conflict = failed({ isConflict: true });
    expect(writesIn(1, conflict)).toBe(writesIn(1, failed()));
  });

  it("is made less often if its values are refused", () => {
    expect(writesIn(1, failed({ reason: "Refused" }))).toBe(4);
    expect(writesIn(25, failed({ reason: "Refused" })) - writesIn(1, failed({ reason: "Refused" }))).toBe(24);
  });

  it("is made four times if it succeeds and another writer undoes it", () => {
    expect(writesIn(25, { type: "done" })).toBe(4);
  });

  it("waits for as long as the server requests", () => {
    const { record } = aWrite("uid-a", "resize", { outcome: failed({ retryAfterMs: 90_000 }) });
    const context = { scaling: undefined, timeouts: TIMEOUTS, nowMs: NOW_MS };
    expect(dueAtMs(record, OBJECT, context)).toBe(NOW_MS + 90_000);
  });

  it("is made again at a requested time, once", () => {
    const { record } = aWrite("uid-a", "resize", { outcome: failed({ reason: "Refused" }) });
    const requestedAt = (retryRequestedAtMs: number) =>
      dueAtMs(record, OBJECT, { scaling: { retryRequestedAtMs }, timeouts: TIMEOUTS, nowMs: NOW_MS });
    expect(requestedAt(NOW_MS + 1000)).toBe(NOW_MS + 1000);
    expect(requestedAt(NOW_MS - 1000)).toBe(NOW_MS + 300_000);
  });
});

describe("a request to retry after a failure with a time in the future", () => {
  const requested = (failedInMs: number, requestedAgoMs: number) => {
    const { record } = aWrite("uid-a", "resize", {
      lastAtMs: NOW_MS + failedInMs,
      outcome: failed({ reason: "Refused" }),
    });
    const scaling = { retryRequestedAtMs: NOW_MS - requestedAgoMs };
    const context = { scaling, timeouts: TIMEOUTS, nowMs: NOW_MS };
    const isDue = dueAtMs(record, OBJECT, context) <= NOW_MS;
    return [isRetryRequested(NOW_MS + failedInMs, context), isDue];
  };

  it.each([0, 1000, 30 * 60_000])("counts if a wrong clock wrote that time: requested %i ms ago", (agoMs) => {
    expect(requested(3 * HOUR_MS, agoMs)).toEqual([true, true]);
  });

  it("does not count before its time", () => {
    expect(requested(3 * HOUR_MS, -1000)).toEqual([false, false]);
  });

  it("does not count if it is older and the clocks of two servers only differ, so it leads to one retry only", () => {
    expect(requested(10_000, 1000)).toEqual([false, false]);
  });

  it("does not count if it was made long before the clock was wrong", () => {
    expect(requested(3 * HOUR_MS, 4 * HOUR_MS)).toEqual([false, false]);
  });

  it("does not count if there is none", () => {
    expect(requested(3 * HOUR_MS, NOW_MS)).toEqual([false, false]);
  });
});
