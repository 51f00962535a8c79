import { getEventListeners } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { Deadline } from "../../../src/kube/deadline.ts";

describe("a deadline", () => {
  it("aborts with a timeout error when its time has passed", () => {
    vi.useFakeTimers();
    try {
      const { signal } = new Deadline(100, undefined);
      vi.advanceTimersByTime(99);
      expect(signal.aborted).toBe(false);
      vi.advanceTimersByTime(1);
      expect(signal.reason).toMatchObject({ name: "TimeoutError" });
    } finally {
      vi.useRealTimers();
    }
  });

  it("aborts with the reason of the outer signal, even if that signal was already aborted", () => {
    const reason = new Error("no longer wanted");
    const outer = new AbortController();
    const running = new Deadline(60_000, outer.signal);
    outer.abort(reason);
    const late = new Deadline(60_000, outer.signal);
    expect([running.signal.reason, late.signal.reason]).toEqual([reason, reason]);
    running.end();
    late.end();
  });

  it("leaves no listener and no timer behind, and does not abort, after it ends", () => {
    vi.useFakeTimers();
    try {
      const outer = new AbortController();
      const deadline = new Deadline(100, outer.signal);
      deadline.end();
      expect(vi.getTimerCount()).toBe(0);
      expect(getEventListeners(outer.signal, "abort")).toEqual([]);
      outer.abort();
      vi.advanceTimersByTime(200);
      expect(deadline.signal.aborted).toBe(false);
    } finally {
      vi.useRealTimers();
    }
  });
});
