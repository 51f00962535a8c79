import { describe, expect, it } from "vitest";
import { KubeApiError, KubeUnreachableError } from "../../src/kube/errors.ts";
import { LeadershipLostError } from "../../src/runtime/leader.ts";
import { WorkQueue } from "../../src/runtime/work-queue.ts";
import { type Outcome, runWorkers } from "../../src/runtime/workers.ts";
import { VirtualClock } from "../gen/clock.ts";

const KIND_TERMINATING = JSON.stringify({
  message:
    'pipescalings.pipes.clouddb.dev "x" is forbidden: create not allowed while custom resource definition is terminating',
});

function setup(reconcile: (key: string, pass: number) => Promise<Outcome>, concurrency = 1) {
  const clock = new VirtualClock();
  const queue = new WorkQueue({
    clock,
    minIntervalMs: 0,
    retryFirstMs: 100,
    retryMostMs: 1000,
    random: () => 0,
  });
  const failures: { readonly key: string; readonly expected: boolean }[] = [];
  const passes: string[] = [];
  const abort = new AbortController();
  const running = runWorkers(
    {
      queue,
      concurrency,
      reconcile: (key) => {
        passes.push(key);
        return reconcile(key, passes.length);
      },
      onFailure: (key, _, expected) => failures.push({ key, expected }),
    },
    abort.signal,
  );
  const end = async () => {
    abort.abort();
    await running;
  };
  return { clock, queue, failures, passes, end };
}

describe("workers", () => {
  it("look again when a pass says so, and else wait for a change", async () => {
    const { clock, queue, passes, end } = setup(async (_, pass) =>
      pass === 1 ? { requeueAfterMs: 500 } : {},
    );
    queue.add("a");
    await clock.advance(499);
    expect(passes).toHaveLength(1);
    await clock.advance(10_000);
    expect(passes).toHaveLength(2);
    await end();
  });

  it("try again what failed, with growing pauses, and from the first pause after a success", async () => {
    const fails = new Set([1, 2, 4]);
    const { clock, queue, passes, failures, end } = setup(async (_, pass) => {
      if (fails.has(pass)) throw new Error("broken");
      return {};
    });
    queue.add("a");
    await clock.advance(100);
    expect(passes).toHaveLength(2);
    await clock.advance(200);
    expect(passes).toHaveLength(3);
    queue.add("a");
    await clock.advance(0);
    expect(passes).toHaveLength(4);
    await clock.advance(100);
    expect(passes).toHaveLength(5);
    expect(failures).toHaveLength(3);
    await end();
  });

  it.each([
    ["no answer", new KubeUnreachableError("down"), true],
    ["a lease that is lost", new LeadershipLostError("lost"), true],
    ["a conflict", new KubeApiError("PATCH", 409, "{}"), true],
    ["an object that is gone", new KubeApiError("PATCH", 404, "{}"), true],
    ["a server that is too busy", new KubeApiError("PATCH", 429, "{}"), true],
    ["a kind that is on its way out", new KubeApiError("POST", 403, KIND_TERMINATING), true],
    ["a refusal that nobody expected", new KubeApiError("PATCH", 403, "{}"), false],
    ["a fault of ours", new TypeError("undefined is not a function"), false],
  ])("tell whether %s was to be expected", async (_, error, expected) => {
    const { clock, queue, failures, end } = setup(async () => {
      throw error;
    });
    queue.add("a");
    await clock.advance(0);
    expect(failures).toEqual([{ key: "a", expected }]);
    await end();
  });

  it("obey a server that asks for patience", async () => {
    const { clock, queue, passes, end } = setup(async () => {
      throw new KubeApiError("PATCH", 429, "{}", "30");
    });
    queue.add("a");
    await clock.advance(29_999);
    expect(passes).toHaveLength(1);
    await clock.advance(1);
    expect(passes).toHaveLength(2);
    await end();
  });

  it("are not held up by one key that takes long, and finish what they began at the end", async () => {
    const slow = Promise.withResolvers<Outcome>();
    const { clock, queue, passes, end } = setup(
      (key) => (key === "slow" ? slow.promise : Promise.resolve({})),
      2,
    );
    for (const key of ["slow", "a", "b"]) queue.add(key);
    await clock.advance(0);
    expect(passes).toEqual(["slow", "a", "b"]);
    let isOver = false;
    const over = end().then(() => {
      isOver = true;
    });
    await clock.advance(0);
    expect(isOver).toBe(false);
    slow.resolve({});
    await over;
  });
});
