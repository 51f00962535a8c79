import { describe, expect, it } from "vitest";
import { WaitingLine } from "../../../src/runtime/waiting-line.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const RECHECK_MS = 30_000;

function setup(limit: number) {
  const clock = new FakeClock();
  const woken: string[] = [];
  const state = { rolling: limit };
  const line = new WaitingLine({
    clock,
    free: () => Math.max(0, limit - state.rolling),
    mostTurns: limit,
    recheckMs: RECHECK_MS,
    wake: (serviceId) => woken.push(serviceId),
  });
  for (const serviceId of ["a", "b", "c"]) line.reconciled(serviceId, true);
  return { line, clock, woken, state };
}

describe("the line of services that wait for a limit", () => {
  it("wakes one waiting service for each rollout that may start, in the order of arrival", () => {
    const { line, woken, state } = setup(5);
    state.rolling = 3;
    line.wakeNext();
    expect(woken).toEqual(["a", "b"]);
    line.wakeNext();
    expect(woken).toEqual(["a", "b"]);
  });

  it("wakes the next service if a woken service needs no rollout", () => {
    const { line, woken, state } = setup(1);
    state.rolling = 0;
    line.wakeNext();
    line.reconciled("a", false);
    expect(woken).toEqual(["a", "b"]);
  });

  it("wakes the next service after a reconciliation of another one, because its failed write produces no event", () => {
    const { line, woken, state } = setup(1);
    state.rolling = 0;
    line.reconciled("d", false);
    expect(woken).toEqual(["a"]);
  });

  it("wakes no other service if the woken service used up the limit", () => {
    const { line, woken, state } = setup(1);
    state.rolling = 0;
    line.wakeNext();
    state.rolling = 1;
    line.reconciled("a", true);
    expect(woken).toEqual(["a"]);
  });

  it("reserves a rollout for the woken service until it is reconciled", () => {
    const { line, woken, state } = setup(2);
    state.rolling = 1;
    line.wakeNext();
    expect(woken).toEqual(["a"]);
    expect(line.freeFor("d")).toBe(0);
    expect(line.freeFor("a")).toBe(1);
    for (const serviceId of ["a", "b", "c"]) line.reconciled(serviceId, false);
    expect(line.freeFor("d")).toBe(1);
  });

  it("gives what has become free without an event to the service that came first", () => {
    const { line, woken, state } = setup(1);
    state.rolling = 0;
    expect(line.freeFor("d")).toBe(0);
    expect(woken).toEqual(["a"]);
    expect(line.freeFor("a")).toBe(1);
  });

  it("checks the limit again after a time, because a timeout produces no event", async () => {
    const { clock, woken, state } = setup(1);
    state.rolling = 0;
    await clock.advance(RECHECK_MS);
    expect(woken).toEqual(["a"]);
  });

  it("does not reserve a rollout for a service whose reconciliation failed", async () => {
    const { line, clock, woken, state } = setup(1);
    state.rolling = 0;
    line.wakeNext();
    expect(woken).toEqual(["a"]);
    // The reconciliation of the key may have been delayed.
    await clock.advance(RECHECK_MS);
    expect(woken).toEqual(["a"]);
    await clock.advance(RECHECK_MS);
    expect(woken).toEqual(["a", "b"]);
  });

  it("puts a service that has had as many turns as the limit, and needs more, behind the others", () => {
    const { line, woken, state } = setup(2);
    const takeTurn = (serviceId: string) => {
      state.rolling = 1;
      line.wakeNext();
      expect(line.freeFor(serviceId)).toBe(1);
      state.rolling = 2;
      line.reconciled(serviceId, true);
      // The key got no other turn.
      expect(line.freeFor(serviceId)).toBe(0);
      line.reconciled(serviceId, true);
    };
    for (const serviceId of ["a", "a", "b", "b", "c", "c", "a"]) takeTurn(serviceId);
    expect(woken).toEqual(["a", "a", "b", "b", "c", "c", "a"]);
  });

  it("forgets a service that no longer waits", () => {
    const { line, woken, state } = setup(3);
    line.reconciled("a", false);
    state.rolling = 0;
    line.wakeNext();
    expect(woken).toEqual(["b", "c"]);
  });
});
