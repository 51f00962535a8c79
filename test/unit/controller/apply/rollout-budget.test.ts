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
  it("wakes as many waiting services as rollouts may start, first come, first served", () => {
    const { budget, woken, state } = setup(5);
    state.rolling = 3;
    budget.wakeNext();
    expect(woken).toEqual(["a", "b"]);
    budget.wakeNext();
    expect(woken).toEqual(["a", "b"]);
  });

  it("wakes the next service if one that it woke needs no rollout", () => {
    const { budget, woken, state } = setup(1);
    state.rolling = 0;
    budget.wakeNext();
    budget.reconciled("a", false);
    expect(woken).toEqual(["a", "b"]);
  });

  it("wakes no other service if the one that it woke took the place", () => {
    const { budget, woken, state } = setup(1);
    state.rolling = 0;
    budget.wakeNext();
    state.rolling = 1;
    budget.reconciled("a", true);
    expect(woken).toEqual(["a"]);
  });

  it("frees the place of a rollout that times out", async () => {
    const { clock, woken, state } = setup(1);
    state.rolling = 0;
    await clock.advance(30_000);
    expect(woken).toEqual(["a"]);
  });

  it("does not keep a place for a service whose reconciliation failed", async () => {
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
