import { describe, expect, it } from "vitest";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { LeadershipLostError } from "../../../src/runtime/leader.ts";
import { WorkQueue } from "../../../src/runtime/work-queue.ts";
import { type Outcome, runWorkers } from "../../../src/runtime/workers.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const DENIED = JSON.stringify({ message: 'admission webhook "a.example.com" denied the request: no' });
const KIND_TERMINATING = JSON.stringify({
  message:
    'pipescalings.pipes.clouddb.dev "x" is forbidden: create not allowed while custom resource definition is terminating',
});

function setup(reconcile: (key: string, count: number) => Promise<Outcome>, concurrency = 1) {
  const clock = new FakeClock();
  const queue = new WorkQueue({
    clock,
    minIntervalMs: 0,
    retryFirstMs: 100,
    retryMostMs: 1000,
    random: () => 0,
  });
  const failures: { readonly key: string; readonly expected: boolean }[] = [];
  const reconciled: string[] = [];
  const abort = new AbortController();
  const running = runWorkers(
    {
      queue,
      concurrency,
      reconcile: (key) => {
        reconciled.push(key);
        return reconcile(key, reconciled.length);
      },
      onFailure: (key, _, expected) => failures.push({ key, expected }),
    },
    abort.signal,
  );
  const end = async () => {
    abort.abort();
    await running;
  };
  return { clock, queue, failures, reconciled, end };
}

describe("workers", () => {
  it("reconcile a key again after its back-off, or after its own delay if that is shorter", async () => {
    const { clock, queue, reconciled, end } = setup(async () => ({ requeue: true, requeueAfterMs: 500 }));
    queue.add("a");
    await clock.advance(3000);
    const before = reconciled.length;
    await clock.advance(5000);
    expect(reconciled.length - before).toBe(10);
    await end();
  });

  it("take no turn of the retries of other keys for a key whose own delay is shorter than its back-off", async () => {
    const { clock, queue, reconciled, end } = setup(async (key, count) => {
      if (key === "failing") throw new Error("broken");
      return count <= 300 ? { requeue: true, requeueAfterMs: 90 } : {};
    });
    for (let key = 0; key < 300; key += 1) queue.add(`key-${key}`);
    queue.add("failing");
    await clock.advance(100);
    expect(reconciled.filter((key) => key === "failing")).toHaveLength(2);
    await end();
  });

  it("do not start the back-off over while writes of a key are in flight", async () => {
    const { clock, queue, reconciled, end } = setup(async () => ({ isUnfinished: true }));
    for (let times = 0; times < 3; times += 1) {
      queue.retry("a");
      await clock.advance(1000);
    }
    expect(reconciled).toHaveLength(3);
    queue.retry("a");
    await clock.advance(799);
    expect(reconciled).toHaveLength(3);
    await clock.advance(1);
    expect(reconciled).toHaveLength(4);
    await end();
  });

  it("reconcile a key again after the delay that reconcile returns, or after the next change", async () => {
    const { clock, queue, reconciled, end } = setup(async (_, count) =>
      count === 1 ? { requeueAfterMs: 500 } : {},
    );
    queue.add("a");
    await clock.advance(499);
    expect(reconciled).toHaveLength(1);
    await clock.advance(10_000);
    expect(reconciled).toHaveLength(2);
    await end();
  });

  it("retry a failed key with growing delays, which are reset by a success", async () => {
    const fails = new Set([1, 2, 4]);
    const { clock, queue, reconciled, failures, end } = setup(async (_, count) => {
      if (fails.has(count)) throw new Error("broken");
      return {};
    });
    queue.add("a");
    await clock.advance(100);
    expect(reconciled).toHaveLength(2);
    await clock.advance(200);
    expect(reconciled).toHaveLength(3);
    queue.add("a");
    await clock.advance(0);
    expect(reconciled).toHaveLength(4);
    await clock.advance(100);
    expect(reconciled).toHaveLength(5);
    expect(failures).toHaveLength(3);
    await end();
  });

  it.each([
    ["an unreachable server", new KubeUnreachableError("down"), true],
    ["a lost lease", new LeadershipLostError("lost"), true],
    ["a conflict", new KubeApiError("PATCH", 409, "{}"), true],
    ["a deleted object", new KubeApiError("PATCH", 404, "{}"), true],
    ["a busy server", new KubeApiError("PATCH", 429, "{}"), true],
    ["a webhook that denies a write with 409", new KubeApiError("PATCH", 409, DENIED), false],
    ["a terminating CRD", new KubeApiError("POST", 403, KIND_TERMINATING), true],
    ["any other rejection", new KubeApiError("PATCH", 403, "{}"), false],
    ["a bug", new TypeError("undefined is not a function"), false],
  ])("report whether %s is an expected failure", async (_, error, expected) => {
    const { clock, queue, failures, end } = setup(async () => {
      throw error;
    });
    queue.add("a");
    await clock.advance(0);
    expect(failures).toEqual([{ key: "a", expected }]);
    await end();
  });

  it("wait for the time in Retry-After", async () => {
    const { clock, queue, reconciled, end } = setup(async () => {
      throw new KubeApiError("PATCH", 429, "{}", { retryAfterHeader: "30" });
    });
    queue.add("a");
    await clock.advance(29_999);
    expect(reconciled).toHaveLength(1);
    await clock.advance(1);
    expect(reconciled).toHaveLength(2);
    await end();
  });

  it("do not wait for a slow key, and finish running reconciliations on shutdown", async () => {
    const slow = Promise.withResolvers<Outcome>();
    const { clock, queue, reconciled, end } = setup(
      (key) => (key === "slow" ? slow.promise : Promise.resolve({})),
      2,
    );
    for (const key of ["slow", "a", "b"]) queue.add(key);
    await clock.advance(0);
    expect(reconciled).toEqual(["slow", "a", "b"]);
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
