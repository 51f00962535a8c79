import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type PipeState,
  type PlannedPipe,
  planRollout,
  type RolloutLimits,
  type RolloutPhase,
  type RolloutPlan,
  serviceLimit,
} from "../../../src/domain/rollout-plan.ts";
import { WINDOW_SCOPES } from "../../../src/domain/rollout-window.ts";

/** A waiting pipe, with `changes`. */
function planned(name: string, changes: Partial<PlannedPipe> = {}): PlannedPipe {
  return {
    name,
    state: "waiting",
    phase: "settled",
    replicas: 1,
    proof: "none",
    isAvailable: true,
    replacesPods: true,
    ...changes,
  };
}

function limitsOf(pipes: readonly unknown[], overallFree = 50): RolloutLimits {
  return { overallFree, serviceLimit: serviceLimit(pipes.length), held: undefined };
}

describe("the rollout plan", () => {
  const state = fc.constantFrom<PipeState>("done", "rolling", "waiting", "failed", "paused", "unsizable");
  const phase = fc.constantFrom<RolloutPhase>("settled", "updating", "rolling-out", "terminating", "overdue");
  const pipesOf = (
    states: typeof state,
    phases: typeof phase,
    lengths: { readonly minLength?: number; readonly maxLength: number },
  ) =>
    fc
      .array(
        fc.record({
          state: states,
          phase: phases,
          replicas: fc.integer({ min: 0, max: 3 }),
          proof: fc.constantFrom<PlannedPipe["proof"]>("none", "proving", "proven"),
          isAvailable: fc.boolean(),
          isUnfinished: fc.boolean(),
          replacesPods: fc.boolean(),
        }),
        lengths,
      )
      .map((list) => list.map((each, index) => planned(`pipe-${index}`, { ...each, phase: phaseOf(each) })));
  const pipes = pipesOf(state, phase, { maxLength: 40 });
  /** Services of which most pipes wait, and of which some may start. */
  const waiting = pipesOf(
    fc.constantFrom<PipeState>("waiting", "waiting", "waiting", "rolling", "done"),
    fc.constantFrom<RolloutPhase>("settled", "settled", "settled", "rolling-out", "terminating"),
    { minLength: 3, maxLength: 10 },
  );
  const phaseOf = ({
    state,
    phase,
    replicas,
  }: Pick<PlannedPipe, "state" | "phase" | "replicas">): RolloutPhase => {
    if (state === "paused") return "paused";
    if (state === "rolling") return "rolling-out";
    return replicas === 0 ? "settled" : phase;
  };
  const free = fc.integer({ min: 0, max: 60 });
  const named = (list: readonly PlannedPipe[]) => new Map(list.map((each) => [each.name, each]));
  /** The pipes of the service that a plan starts. */
  const startedBy = ({ start }: RolloutPlan, list: readonly PlannedPipe[]) =>
    list.filter(({ name }) => start.includes(name));
  /** The pipes that need a place in the limit across all services. */
  const counted = (list: readonly PlannedPipe[]) =>
    list.filter(
      ({ replicas, replacesPods, phase }) => replicas > 0 && replacesPods && phase !== "rolling-out",
    );
  const slots = (list: readonly PlannedPipe[]) =>
    list.filter(({ phase }) => ["updating", "rolling-out", "terminating"].includes(phase));

  it("starts only waiting pipes, and each of them once", () => {
    fc.assert(
      fc.property(pipes, free, (list, overallFree) => {
        const { start } = planRollout(list, limitsOf(list, overallFree));
        expect(new Set(start).size).toBe(start.length);
        for (const name of start) expect(named(list).get(name)?.state).toBe("waiting");
      }),
    );
  });

  it("never exceeds the limits of concurrent restarts per service and in total", () => {
    fc.assert(
      fc.property(pipes, free, (list, overallFree) => {
        const started = startedBy(planRollout(list, limitsOf(list, overallFree)), list);
        const fresh = started.filter((each) => each.replicas > 0 && !slots(list).includes(each));
        const before = slots(list).length;
        expect(counted(started).length).toBeLessThanOrEqual(overallFree);
        const isProven = list.some(({ proof }) => proof === "proven");
        if (isProven && fresh.length > 0)
          expect(before + fresh.length).toBeLessThanOrEqual(serviceLimit(list.length));
      }),
    );
  });

  it("starts at most one canary until a running pipe has proven the size, and nothing after a failure", () => {
    fc.assert(
      fc.property(pipes, free, (list, overallFree) => {
        const started = startedBy(planRollout(list, limitsOf(list, overallFree)), list);
        const running = started.filter((each) => each.replicas > 0);
        const isProven = list.some(({ proof }) => proof === "proven");
        if (!isProven) expect(running.length).toBeLessThanOrEqual(1);
        if (list.some((each) => each.state === "failed")) expect(running).toEqual([]);
      }),
    );
  });

  it("holds back for other services only what counts against their limit, uses all of it, and says so", () => {
    fc.assert(
      fc.property(waiting, fc.integer({ min: 0, max: 3 }), (list, overallFree) => {
        const alone = startedBy(planRollout(list, limitsOf(list, Number.POSITIVE_INFINITY)), list);
        const plan = planRollout(list, limitsOf(list, overallFree));
        const started = startedBy(plan, list);
        const heldBack = alone.filter((each) => !started.includes(each));
        expect(counted(heldBack)).toEqual(heldBack);
        expect(plan.waitReason === "overall-limit").toBe(heldBack.length > 0);
        if (heldBack.length > 0) expect(counted(started)).toHaveLength(overallFree);
      }),
    );
  });

  it("starts in place, while other services have the whole limit, all that would start if no other pipe waited", () => {
    fc.assert(
      fc.property(waiting, (list) => {
        const others = list.map((each) => {
          const isLeftOut = each.state === "waiting" && counted([each]).length > 0;
          return isLeftOut ? { ...each, state: "unsizable" as const } : each;
        });
        const { start } = planRollout(others, limitsOf(list));
        expect(planRollout(list, limitsOf(list, 0)).start).toEqual(expect.arrayContaining([...start]));
      }),
    );
  });

  it("resizes pipes without replicas immediately", () => {
    fc.assert(
      fc.property(pipes, free, (list, overallFree) => {
        const idle = list.filter((each) => each.state === "waiting" && each.replicas === 0);
        const { start } = planRollout(list, limitsOf(list, overallFree));
        expect(start).toEqual(expect.arrayContaining(idle.map((each) => each.name)));
      }),
    );
  });

  it("reaches every pipe if the rollouts complete one after the other", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), (count) => {
        let list = Array.from({ length: count }, (_, index) => planned(`pipe-${index}`));
        let rounds = 0;
        while (list.some((each) => each.state !== "done")) {
          const start = new Set(planRollout(list, limitsOf(list)).start);
          expect(start.size).toBeGreaterThan(0);
          list = list.map((each) =>
            start.has(each.name) ? { ...each, state: "done", proof: "proven" } : each,
          );
          rounds += 1;
        }
        expect(rounds).toBeLessThanOrEqual(1 + Math.ceil((count - 1) / Math.min(50, serviceLimit(count))));
      }),
    );
  });

  it("reports the rollout budget as the reason if not even a canary may start", () => {
    const canary = planned("a");
    expect(planRollout([canary], limitsOf([canary], 0))).toEqual({
      start: [],
      waitReason: "overall-limit",
      isCanary: false,
      blockedBy: [],
    });
  });

  it("first applies the new size to pipes that are restarting for an older size", () => {
    const list = [planned("settled"), planned("restarting", { phase: "rolling-out" })];
    expect(planRollout(list, limitsOf(list)).start).toEqual(["restarting"]);
  });

  it("prefers a healthy canary to a pipe that is unhealthy because of a change by its owner", () => {
    const list = [
      planned("broken", { phase: "updating" }),
      planned("overdue", { phase: "overdue" }),
      planned("healthy"),
    ];
    expect(planRollout(list, limitsOf(list))).toEqual({
      start: ["healthy"],
      waitReason: "canary",
      isCanary: true,
      blockedBy: ["healthy"],
    });
  });

  it.each<RolloutPhase>(["settled", "terminating"])(
    "prefers a healthy canary to a pipe that is not available, although its rollout is complete: %s",
    (phase) => {
      const list = [planned("crashing", { phase, isAvailable: false }), planned("healthy")];
      expect(planRollout(list, limitsOf(list)).start).toEqual(["healthy"]);
    },
  );

  it("starts with the first pipe if none is available", () => {
    const list = ["a", "b"].map((name) => planned(name, { isAvailable: false }));
    expect(planRollout(list, limitsOf(list)).start).toEqual(["a"]);
  });

  it.each<[string, Partial<PlannedPipe>]>([
    ["is restarting for an older size", { phase: "rolling-out" }],
    ["has the size in its template only", { isUnfinished: true }],
  ])("starts with a pipe that %s, although it is not available", (_, changes) => {
    const list = [planned("a"), planned("b", { isAvailable: false, ...changes })];
    expect(planRollout(list, limitsOf(list)).start).toEqual(["b"]);
  });

  it("starts a pipe that is not available only when all healthy pipes have started, whatever limit holds them back", () => {
    const done = planned("done", { state: "done", proof: "proven" });
    const broken = planned("a", { isAvailable: false });
    const healthy = ["b", "c", "d"].map((name) => planned(name));
    const list = [done, broken, ...healthy];
    expect(planRollout(list, limitsOf(list)).start).toEqual(["b", "c", "d"]);
    expect(planRollout(list, limitsOf(list, 2)).start).toEqual(["b", "c"]);
    const rolling = healthy.map((each) => ({ ...each, state: "rolling", phase: "rolling-out" }) as const);
    expect(planRollout([done, broken, ...rolling.slice(1)], limitsOf(list)).start).toEqual(["a"]);
  });

  it("does not start a canary while a pipe is already rolling out the size because of a change by its owner", () => {
    const list = [planned("deployed", { state: "rolling", phase: "updating" }), planned("next")];
    expect(planRollout(list, limitsOf(list))).toMatchObject({
      start: [],
      blockedBy: ["deployed"],
    });
  });

  it("reports the pipes whose rollouts block the others", () => {
    const rolling = ["a", "b", "c"].map((name) => planned(name, { state: "rolling", phase: "rolling-out" }));
    const list = [planned("done", { state: "done", proof: "proven" }), ...rolling, planned("next")];
    expect(planRollout(list, limitsOf(list))).toEqual({
      start: [],
      waitReason: "service-limit",
      isCanary: false,
      blockedBy: ["a", "b", "c"],
    });
  });

  it("counts rollbacks and rollouts by owners toward the limit of the service", () => {
    const moving = (["rolling-back", "updating", "terminating"] as const).map((phase) =>
      planned(phase, { state: "done", phase, proof: "proven" }),
    );
    const list = [...moving, planned("next")];
    expect(planRollout(list, limitsOf(list)).start).toEqual([]);
  });

  it("resizes pipes in place whatever other services roll out, but within the limit of the service", () => {
    const inPlace = ["a", "b", "c", "d"].map((name) => planned(name, { replacesPods: false }));
    const list = [planned("done", { state: "done", proof: "proven" }), ...inPlace, planned("replaced")];
    expect(planRollout(list, limitsOf(list, 0))).toMatchObject({
      start: ["a", "b", "c"],
      waitReason: "service-limit",
    });
    expect(planRollout([planned("replaced")], limitsOf(list, 0)).start).toEqual([]);
  });

  it("resizes pipes in place although others of the service, which come first, wait for other services", () => {
    const unproven = [planned("a"), planned("b"), planned("c", { replacesPods: false })];
    expect(planRollout(unproven, limitsOf(unproven, 0))).toEqual({
      start: ["c"],
      waitReason: "overall-limit",
      isCanary: true,
      blockedBy: [],
    });
    expect(planRollout(unproven, limitsOf(unproven, 1)).start).toEqual(["a"]);
    const replaced = ["a", "b", "c", "d"].map((name) => planned(name));
    const inPlace = ["e", "f", "g", "h"].map((name) => planned(name, { replacesPods: false }));
    const proven = [planned("done", { state: "done", proof: "proven" }), ...replaced, ...inPlace];
    expect(planRollout(proven, limitsOf(proven, 1))).toMatchObject({
      start: ["a", "e", "f"],
      waitReason: "overall-limit",
    });
  });

  it("redirects a pipe that is already restarting, although others of the service wait for other services", () => {
    const moving = ["a", "b"].map((name) =>
      planned(name, { state: "done", phase: "terminating", proof: "proven" }),
    );
    const list = [...moving, planned("c", { isUnfinished: true }), planned("d", { phase: "terminating" })];
    // The limit of the service is reached, and the owner's change has restarted one of the waiting pipes.
    expect(planRollout(list, limitsOf(list, 1)).start).toEqual(["d"]);
  });

  it.each<[string, Partial<PlannedPipe>]>([
    ["runs the size and is not available yet", { state: "resized", proof: "proving" }],
    ["is being resized", { state: "rolling", phase: "resizing" }],
  ])("does not start a second canary while one %s", (_, changes) => {
    const list = [planned("canary", changes), planned("next")];
    expect(planRollout(list, limitsOf(list))).toMatchObject({
      start: [],
      waitReason: "canary",
      blockedBy: ["canary"],
    });
  });

  it("starts another canary if the first one does not prove the size any more", () => {
    const list = [planned("crashing", { state: "done" }), planned("next")];
    expect(planRollout(list, limitsOf(list))).toMatchObject({ start: ["next"], isCanary: true });
  });

  it("starts only what a closed window does not hold back, and pipes without replicas", () => {
    const scopes = fc.constantFrom(...WINDOW_SCOPES);
    fc.assert(
      fc.property(pipes, scopes, (all, held) => {
        const closed = planRollout(all, { ...limitsOf(all), held });
        const running = startedBy(closed, all).filter(({ replicas }) => replicas > 0);
        expect(running.filter(({ replacesPods }) => held === "all" || replacesPods)).toEqual([]);
        // Those that may start do not wait for those that are held back, but for pods that these replace already.
        const others = all.map((each) => {
          const isHeld = each.state === "waiting" && each.replicas > 0 && each.replacesPods;
          return isHeld ? { ...each, state: "unsizable" as const } : each;
        });
        if (held === "restarts") {
          const { start } = planRollout(others, { ...limitsOf(all), held: undefined });
          expect(closed.start).toEqual(start);
        }
      }),
    );
  });

  it("says that pipes wait for the window when all others have started", () => {
    const list = [planned("a", { replacesPods: false }), planned("b"), planned("c", { proof: "proven" })];
    const closed = { ...limitsOf(list), held: "restarts" } as const;
    expect(planRollout(list, closed)).toEqual({
      start: ["a"],
      waitReason: "window",
      isCanary: false,
      blockedBy: [],
    });
  });

  it("starts with a pipe whose pods do not all have one size", () => {
    const list = [planned("a"), planned("b", { isUnfinished: true, replacesPods: false })];
    expect(planRollout(list, limitsOf(list)).start).toEqual(["b"]);
  });

  it.each([
    [1, 3],
    [12, 3],
    [13, 4],
    [200, 50],
  ])("for %i pipes allows %i concurrent restarts", (total, limit) => expect(serviceLimit(total)).toBe(limit));
});
