import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type QueueObserver, WorkQueue } from "../../../src/runtime/work-queue.ts";
import { FakeClock, settled } from "../../support/fakes/fake-clock.ts";

function setup(options: { minIntervalMs?: number; observer?: QueueObserver } = {}) {
  const clock = new FakeClock();
  const queue = new WorkQueue({
    clock,
    minIntervalMs: 0,
    retryFirstMs: 100,
    retryMostMs: 1000,
    random: () => 0,
    ...options,
  });
  const abort = new AbortController();
  return { clock, queue, abort, next: () => queue.next(abort.signal) };
}

describe("the observer of a work queue", () => {
  function counted(minIntervalMs = 0) {
    const observed: string[] = [];
    const observer = {
      added: () => observed.push("added"),
      began: (ms: number) => observed.push(`began after ${ms}`),
      ended: (ms: number) => observed.push(`ended after ${ms}`),
      retried: () => observed.push("retried"),
    };
    return { observed, ...setup({ minIntervalMs, observer }) };
  }

  it("receives the waiting time and the processing time of a key", async () => {
    const { observed, clock, queue, next } = counted();
    const first = next();
    queue.add("first");
    await first;
    queue.done("first");
    observed.length = 0;
    queue.add("a");
    queue.add("a");
    await clock.advance(30);
    await next();
    await clock.advance(5);
    expect(queue.underWay()).toEqual([5]);
    queue.retry("a");
    queue.done("a");
    expect(queue.underWay()).toEqual([]);
    expect(observed).toEqual(["added", "began after 30", "retried", "ended after 5"]);
  });

  it("receives no waiting time from before the first worker, such as from days on standby", async () => {
    const { observed, clock, queue, next } = counted();
    queue.add("a");
    queue.add("b");
    await clock.advance(86_400_000);
    await next();
    await clock.advance(20);
    await next();
    expect(observed).toEqual(["added", "added", "began after 0", "began after 20"]);
  });

  it("counts the waiting time of a key that is added during its processing from the time of the addition", async () => {
    const { observed, clock, queue, next } = counted(100);
    queue.add("a");
    await next();
    await clock.advance(10);
    queue.add("a");
    await clock.advance(10);
    queue.done("a");
    await clock.advance(80);
    await next();
    expect(observed).toEqual(["added", "began after 0", "added", "ended after 20", "began after 90"]);
  });
});

describe("a work queue", () => {
  async function taken(queue: WorkQueue, next: () => Promise<string | undefined>): Promise<string[]> {
    const keys: string[] = [];
    while (queue.depth > 0) keys.push((await next()) ?? "");
    return keys;
  }

  it("returns keys of low priority last, except for each fourth key", async () => {
    const { queue, next } = setup();
    for (const key of ["a", "b"]) queue.add(key, "low");
    for (const key of ["1", "2", "3", "4"]) queue.add(key);
    expect(await taken(queue, next)).toEqual(["1", "2", "3", "a", "4", "b"]);
  });

  it("raises the priority of a key that is added again with a higher one, and never lowers it", async () => {
    const { queue, next } = setup();
    for (const key of ["a", "b", "c"]) queue.add(key, "low");
    queue.add("c");
    queue.add("c", "low");
    expect(await taken(queue, next)).toEqual(["c", "a", "b"]);
  });

  it("keeps the place of a key that is added again", async () => {
    const { queue, next } = setup();
    for (const key of ["a", "b", "c", "b", "a"]) queue.add(key);
    expect(await taken(queue, next)).toEqual(["a", "b", "c"]);
    for (const key of ["a", "b", "c", "b", "a"]) queue.add(key, "low");
    for (const key of ["a", "b", "c"]) queue.done(key);
    expect(await taken(queue, next)).toEqual(["a", "b", "c"]);
  });

  it("keeps the priority of a key that was added during its processing", async () => {
    const { queue, next } = setup();
    queue.add("a");
    await next();
    queue.add("a", "low");
    queue.add("b");
    queue.done("a");
    queue.add("c");
    expect(await taken(queue, next)).toEqual(["b", "c", "a"]);
  });

  it("returns every key once, whatever the order and priority of the adds", async () => {
    const adds = fc.array(
      fc.tuple(fc.nat(20).map(String), fc.constantFrom("normal" as const, "low" as const)),
    );
    await fc.assert(
      fc.asyncProperty(adds, async (all) => {
        const { queue, next } = setup();
        for (const [key, priority] of all) queue.add(key, priority);
        const keys = await taken(queue, next);
        expect(keys.toSorted()).toEqual([...new Set(all.map(([key]) => key))].sort());
      }),
    );
  });

  it("hastens the keys that have a delay or may get one, after the others, and shortens no rest", async () => {
    const { clock, queue, next } = setup();
    for (const key of ["idle", "settled", "resting", "processed"]) queue.add(key);
    await taken(queue, next);
    queue.retry("resting", 1000);
    for (const key of ["idle", "settled", "resting"]) queue.done(key);
    queue.addAfter("delayed", 3_600_000);
    queue.hasten();
    queue.add("other");
    queue.done("processed");
    expect(await taken(queue, next)).toEqual(["other", "delayed", "processed"]);
    queue.done("delayed");
    await clock.advance(1000);
    expect(await taken(queue, next)).toEqual(["resting"]);
    await clock.advance(3_600_000);
    expect(await taken(queue, next)).toEqual(["delayed"]);
  });

  it("spreads the retries of many keys over time", async () => {
    const { clock, queue } = setup();
    for (let key = 0; key < 300; key += 1) queue.retry(`key-${key}`);
    await clock.advance(200);
    expect(queue.depth).toBeGreaterThanOrEqual(100);
    expect(queue.depth).toBeLessThanOrEqual(111);
    await clock.advance(4000);
    expect(queue.depth).toBe(300);
  });

  it("takes no turn of the other retries for a key that has an earlier delay, or that waits for its turn", async () => {
    const { clock, queue } = setup();
    for (let key = 0; key < 300; key += 1) {
      queue.addAfter(`timer-${key}`, 90);
      queue.retry(`timer-${key}`);
      queue.retry("failing");
    }
    queue.retry("other");
    await clock.advance(100);
    expect(queue.depth).toBe(302);
  });

  it("takes no turn for a key whose delay ends before the turn would come", async () => {
    const { clock, queue } = setup();
    for (let key = 0; key < 300; key += 1) queue.retry(`key-${key}`);
    // All turns of the first 4 s are taken.
    for (let key = 0; key < 300; key += 1) {
      queue.addAfter(`timer-${key}`, 3000);
      queue.retry(`timer-${key}`);
    }
    queue.retry("other");
    await clock.advance(2999);
    expect(queue.depth).toBeLessThan(300);
    await clock.advance(1100);
    expect(queue.depth).toBe(601);
  });

  it("returns a key only once, even if it was added several times", async () => {
    const { queue, next } = setup();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    expect([await next(), await next(), queue.depth]).toEqual(["a", "b", 0]);
  });

  it("does not return a key to a second worker until the first worker is done", async () => {
    const { queue, next } = setup();
    queue.add("a");
    await next();
    queue.add("a");
    expect(queue.depth).toBe(0);
    queue.done("a");
    expect(await next()).toBe("a");
  });

  it("forgets a key that is done and was not added again", async () => {
    const { queue, next } = setup();
    queue.add("a");
    await next();
    queue.done("a");
    expect(queue.depth).toBe(0);
  });

  it("keeps the minimum time between two reconciles of a key, and returns the first immediately", async () => {
    const { clock, queue, next } = setup({ minIntervalMs: 100 });
    queue.add("a");
    await next();
    await clock.advance(30);
    queue.add("a");
    queue.done("a");
    await clock.advance(69);
    expect(queue.depth).toBe(0);
    await clock.advance(1);
    expect(queue.depth).toBe(1);
  });

  it("adds a delayed key at the earliest of several times", async () => {
    const { clock, queue } = setup();
    queue.addAfter("a", 500);
    queue.addAfter("a", 200);
    queue.addAfter("a", 900);
    await clock.advance(199);
    expect(queue.depth).toBe(0);
    await clock.advance(1);
    expect(queue.depth).toBe(1);
    await clock.advance(1000);
    expect(queue.depth).toBe(1);
  });

  it("delays a key longer with each consecutive failure, up to a limit, and for at least the given time", async () => {
    const { clock, queue, next } = setup();
    const waited: number[] = [];
    for (let failure = 0; failure < 6; failure += 1) {
      const start = clock.monotonic();
      queue.retry("a");
      while (queue.depth === 0) await clock.advance(10);
      waited.push(clock.monotonic() - start);
      await next();
      queue.done("a");
    }
    expect(waited).toEqual([100, 200, 400, 800, 1000, 1000]);
    queue.forget("a");
    queue.retry("a", 5000);
    await clock.advance(4999);
    expect(queue.depth).toBe(0);
    await clock.advance(1);
    expect(queue.depth).toBe(1);
  });

  it("does not return a delayed key early, even if it is added again", async () => {
    const { clock, queue, next } = setup();
    queue.add("a");
    await next();
    queue.retry("a", 2000);
    queue.done("a");
    queue.add("a");
    await clock.advance(1999);
    expect(queue.depth).toBe(0);
    await clock.advance(1);
    expect(queue.depth).toBe(1);
  });

  it("returns keys to workers in order, and undefined after the queue is aborted", async () => {
    const { queue, next, abort } = setup();
    const first = next();
    const second = next();
    queue.add("a");
    expect(await first).toBe("a");
    abort.abort();
    expect(await second).toBeUndefined();
  });

  it("never returns a key to two workers and never loses one, in any order of calls", async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant("add"), key: fc.constantFrom("a", "b", "c") }),
      fc.record({ do: fc.constant("done"), key: fc.constantFrom("a", "b", "c") }),
      fc.record({ do: fc.constant("next"), key: fc.constant("") }),
      fc.record({ do: fc.constant("advance"), key: fc.constant("") }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { clock, queue, next } = setup({ minIntervalMs: 50 });
        const processing = new Set<string>();
        const owed = new Set<string>();
        const take = async () => {
          const key = (await next()) ?? "";
          expect(processing.has(key)).toBe(false);
          processing.add(key);
          owed.delete(key);
        };
        for (const { do: action, key } of steps) {
          if (action === "add") {
            queue.add(key);
            owed.add(key);
          } else if (action === "done" && processing.delete(key)) queue.done(key);
          else if (action === "next" && queue.depth > 0) await take();
          else if (action === "advance") await clock.advance(20);
        }
        for (const key of processing) queue.done(key);
        processing.clear();
        await clock.advance(100);
        while (queue.depth > 0) await take();
        await settled();
        expect([...owed]).toEqual([]);
      }),
    );
  });
});
