import { describe, expect, it } from "vitest";
import { RolloutBudget } from "../../../../src/controller/apply/rollout-budget.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";

function setup(limit: number) {
  const clock = new FakeClock();
  const woken: string[] = [];
  const state = { rolling: limit };
  const budget = new RolloutBudget({
    clock,
    limit,
    rolling: () => state.rolling,
    wake: (serviceId) => woken.push(serviceId),
  });
  for (const serviceId of ["a", "b", "c"]) budget.reconciled(serviceId, true);
  return { budget, clock, woken, state };
}

describe("the rollout budget", () => {
  it("wakes one waiting service for each rollout that may start, in the order of arrival", () => {
    const { budget, woken, state } = setup(5);
    state.rolling = 3;
    budget.wakeNext();
    expect(woken).toEqual(["a", "b"]);
    budget.wakeNext();
    expect(woken).toEqual(["a", "b"]);
  });

  it("wakes the next service if a woken service needs no rollout", () => {
    const { budget, woken, state } = setup(1);
    state.rolling = 0;
    budget.wakeNext();
    budget.reconciled("a", false);
    expect(woken).toEqual(["a", "b"]);
  });

  it("wakes the next service after a reconciliation of another one, because its failed write produces no event", () => {
    const { budget, woken, state } = setup(1);
    state.rolling = 0;
    budget.reconciled("d", false);
    expect(woken).toEqual(["a"]);
  });

  it("wakes no other service if the woken service used up the budget", () => {
    const { budget, woken, state } = setup(1);
    state.rolling = 0;
    budget.wakeNext();
    state.rolling = 1;
    budget.reconciled("a", true);
    expect(woken).toEqual(["a"]);
  });

  it("reserves a rollout for the woken service until it is reconciled", () => {
    const { budget, woken, state } = setup(2);
    state.rolling = 1;
    budget.wakeNext();
    expect(woken).toEqual(["a"]);
    expect(budget.freeFor("d")).toBe(0);
    expect(budget.freeFor("a")).toBe(1);
    budget.reconciled("a", true);
    expect(budget.freeFor("d")).toBe(1);
  });

  it("checks the limit again after 30 s, because a timeout produces no event", async () => {
    const { clock, woken, state } = setup(1);
    state.rolling = 0;
    await clock.advance(30_000);
    expect(woken).toEqual(["a"]);
  });

  it("does not reserve a rollout for a service whose reconciliation failed", async () => {
    const { budget, clock, woken, state } = setup(1);
    state.rolling = 0;
    budget.wakeNext();
    expect(woken).toEqual(["a"]);
    await clock.advance(30_000);
    expect(woken).toEqual(["a", "b"]);
  });

  it("forgets a service that no longer waits", () => {
    const { budget, woken, state } = setup(3);
    budget.reconciled("a", false);
    state.rolling = 0;
    budget.wakeNext();
    expect(woken).toEqual(["b", "c"]);
  });
});
