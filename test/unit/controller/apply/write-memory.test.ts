import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CONFLICT } from "../../../../src/controller/apply/write-error.ts";
import { WriteMemory } from "../../../../src/controller/apply/write-memory.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import type { WriteError } from "../../../../src/controller/observe/write-record.ts";
import { dueAtMs, SERIES_END_MS } from "../../../../src/controller/retry.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import { aPipe, aRollout } from "../../../support/fixtures/snapshot.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * 3_600_000;
const REFUSED: WriteError = { reason: "Refused", message: "no" };
const UNAVAILABLE: WriteError = { reason: "WriteFailed", message: "unavailable" };
const SIZE = "4000m/16Gi";
const CHECKS = ["dry-run", "dry-run-commit", "check-room"] as const;

function setup() {
  const { pipes, pods } = createCaches();
  const clock = new FakeClock();
  const writes = new WriteMemory([pipes, pods], clock);
  /** When the write may be repeated, from now on. */
  const delayMs = () => {
    const context = { scaling: undefined, nowMs: clock.now(), timeouts: TIMEOUTS };
    return dueAtMs(writes.get("uid-a", "resize"), { metadata: { generation: 1 } }, context) - clock.now();
  };
  return { pipes, pods, clock, writes, delayMs };
}

describe("the memory of writes", () => {
  it("counts consecutive writes of the same size, and starts at one for another size or after a week", async () => {
    const { clock, writes } = setup();
    const attemptsOf = (subject: string) => {
      writes.begin("uid-a", "resize", subject);
      return writes.get("uid-a", "resize")?.attempts;
    };
    expect([attemptsOf(SIZE), attemptsOf(SIZE), attemptsOf("other"), attemptsOf(SIZE)]).toEqual([1, 2, 1, 1]);
    await clock.advance(7 * DAY_MS);
    expect(attemptsOf(SIZE)).toBe(2);
    await clock.advance(7 * DAY_MS + 1);
    expect(attemptsOf(SIZE)).toBe(1);
  });

  it("has the runs of the containers of a pod whose resize is pending, until the next write or the end of the pod", () => {
    const { pods, writes } = setup();
    const pending = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
    const see = (version: string, changes: Partial<PodView>, restartCount: number, isRunning = true) => {
      const pod = aResizedPod("a", changes, { restartCount, isRunning });
      writes.seePod({ ...pod, metadata: { ...pod.metadata, resourceVersion: version } });
      return writes.pendingRuns("uid-a");
    };
    expect(see("1", {}, 0)).toBeUndefined();
    expect(see("2", { resize: pending }, 1)).toBe("id 1");
    expect(see("3", { resize: pending }, 1, false)).toBe("id 1");
    expect(see("4", {}, 2)).toBe("id 1");
    writes.begin("uid-a", "resize-pod", SIZE, { runs: "id 2" });
    expect(writes.pendingRuns("uid-a")).toBeUndefined();
    expect(see("5", { resize: pending }, 3)).toBe("id 3");
    pods.apply(aPod("a"));
    pods.remove(aPod("a"));
    expect(writes.pendingRuns("uid-a")).toBeUndefined();
  });

  it("has no runs of the containers of a pod if the pending resize is that of another container", () => {
    const { writes } = setup();
    const resize = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;
    const [pipe] = aPod("a").containers;
    if (!pipe) throw new Error("The pod has no container.");
    const two = amounts(sizeOfCores(2));
    const [waits, runs] = [{ resources: two }, { resources: two, allocated: two.requests, actual: two }];
    const see = (ofPipe: Partial<typeof pipe>, ofProxy: Partial<typeof pipe>) => {
      const containers = [
        { ...pipe, ...ofPipe },
        { ...pipe, ...ofProxy, name: "proxy" },
      ];
      writes.seePod(aPod("a", { resize, containers, namedContainer: "pipe" }));
      return writes.pendingRuns("uid-a");
    };
    expect(see({}, waits)).toBeUndefined();
    expect(see(runs, waits)).toBeUndefined();
    expect(see(waits, {})).toBe("id 0,id 0");
  });

  it("has at least the number of attempts that the object shows", () => {
    const { writes } = setup();
    writes.begin("uid-a", "resize", SIZE, { attempts: 3 });
    expect(writes.get("uid-a", "resize")?.attempts).toBe(3);
    writes.begin("uid-a", "resize", SIZE, { attempts: 2 });
    expect(writes.get("uid-a", "resize")?.attempts).toBe(4);
  });

  it("counts failures of the write itself apart from refusals, so an outage delays no retry of a refused size", async () => {
    const { clock, writes, delayMs } = setup();
    const failed = async (error: WriteError) => {
      writes.failed(writes.begin("uid-a", "resize", SIZE), error, 1);
      const { attempts } = writes.get("uid-a", "resize") ?? {};
      const waitedMs = delayMs();
      await clock.advance(waitedMs);
      return [attempts, waitedMs];
    };
    expect(await failed(CONFLICT)).toEqual([1, 0]);
    expect(await failed(UNAVAILABLE)).toEqual([2, 2000]);
    expect(await failed(REFUSED)).toEqual([1, 300_000]);
    expect(await failed(UNAVAILABLE)).toEqual([4, 8000]);
    expect(await failed(REFUSED)).toEqual([2, 600_000]);
    await clock.advance(SERIES_END_MS);
    expect(await failed(CONFLICT)).toEqual([1, 0]);
    expect(await failed(UNAVAILABLE)).toEqual([2, 2000]);
    expect(await failed(REFUSED)).toEqual([3, 1_200_000]);
  });

  it("knows when failures of the write itself began, and begins again after any other outcome", async () => {
    const { clock, writes } = setup();
    const startMs = clock.now();
    const firsts: (number | undefined)[] = [];
    for (const error of [UNAVAILABLE, CONFLICT, REFUSED, UNAVAILABLE, UNAVAILABLE, undefined, CONFLICT]) {
      const begun = writes.begin("uid-a", "resize", SIZE);
      if (error) writes.failed(begun, error, 1);
      else writes.done(begun);
      firsts.push((writes.get("uid-a", "resize")?.undecidedSinceMs ?? 0) - startMs);
      await clock.advance(1000);
    }
    expect(firsts).toEqual([0, 0, 0, 3000, 3000, 3000, 6000]);
  });

  it("allows at most 20 writes in an hour, whatever happens to them in whatever order", async () => {
    const outcome = fc.record({
      error: fc.constantFrom(CONFLICT, UNAVAILABLE, REFUSED, undefined),
      isChanged: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(outcome, { minLength: 1, maxLength: 12 }), async (outcomes) => {
        const { clock, writes } = setup();
        const times: number[] = [];
        const endMs = clock.now() + 3 * HOUR_MS;
        for (let count = 0; clock.now() < endMs; count += 1) {
          const { error, isChanged = true } = outcomes[count % outcomes.length] ?? {};
          const attempt = writes.begin("uid-a", "resize", SIZE);
          if (error) writes.failed(attempt, error, 1);
          else writes.done(attempt);
          times.push(clock.now());
          const context = { scaling: undefined, nowMs: clock.now(), timeouts: TIMEOUTS };
          const metadata = { generation: isChanged ? 2 : 1 };
          const nextMs = dueAtMs(writes.get("uid-a", "resize"), { metadata }, context);
          if (!Number.isFinite(nextMs)) break;
          await clock.advance(nextMs - clock.now());
        }
        const inAnHour = times.map((from) => times.filter((at) => at >= from && at < from + HOUR_MS).length);
        expect(Math.max(...inAnHour)).toBeLessThanOrEqual(20);
      }),
    );
  });

  it("does not count the writes that failed before one succeeded as changes by another writer", async () => {
    const { clock, writes, delayMs } = setup();
    for (const _ of [1, 2, 3]) {
      writes.failed(writes.begin("uid-a", "resize", SIZE), UNAVAILABLE, 1);
      await clock.advance(delayMs());
    }
    writes.done(writes.begin("uid-a", "resize", SIZE));
    expect([writes.get("uid-a", "resize")?.attempts, delayMs()]).toEqual([1, 8000]);
    await clock.advance(SERIES_END_MS);
    writes.done(writes.begin("uid-a", "resize", SIZE));
    expect([writes.get("uid-a", "resize")?.attempts, delayMs()]).toEqual([2, 10_000]);
  });

  it.each(["resize", "commit"] as const)("forgets the checks before a %s that succeeds", (purpose) => {
    const { writes } = setup();
    const found = () => CHECKS.map((check) => writes.get("uid-a", check)?.outcome.type);
    for (const check of CHECKS) writes.failed(writes.begin("uid-a", check, SIZE), REFUSED, 1);
    writes.failed(writes.begin("uid-a", purpose, SIZE), UNAVAILABLE, 1);
    expect(found()).toEqual(["failed", "failed", "failed"]);
    const attempt = writes.begin("uid-a", purpose, SIZE);
    const slow = writes.begin("uid-a", "dry-run", SIZE);
    writes.done(attempt);
    writes.failed(slow, REFUSED, 1);
    expect(found()).toEqual([undefined, undefined, undefined]);
  });

  it("has one record for each object and purpose", () => {
    const { writes } = setup();
    writes.begin("uid-a", "resize", SIZE);
    writes.failed(writes.begin("uid-a", "commit", SIZE), REFUSED, 1);
    expect(writes.get("uid-a", "resize")?.outcome.type).toBe("pending");
    expect(writes.get("uid-a", "commit")?.outcome.type).toBe("failed");
    expect(writes.get("uid-b", "resize")).toBeUndefined();
  });

  it("has the same times at each look, although the clocks do not tick together, and follows a jump", () => {
    let monotonicMs = 10;
    let jumpMs = 0;
    const clock = { monotonic: () => monotonicMs, now: () => Math.floor(1_000_000.4 + jumpMs + monotonicMs) };
    const writes = new WriteMemory([], clock);
    writes.begin("uid-a", "resize", SIZE);
    const times = [0.1, 0.7, 0.3, 0.9].map((laterMs) => {
      monotonicMs += laterMs;
      return writes.get("uid-a", "resize")?.lastAtMs;
    });
    expect(new Set(times)).toHaveLength(1);
    jumpMs = 60_000;
    expect(writes.get("uid-a", "resize")?.lastAtMs).toBeCloseTo((times[0] ?? 0) + jumpMs, -1);
  });

  it("counts the delay from the response, not from the request", async () => {
    const { clock, writes, delayMs } = setup();
    const attempt = writes.begin("uid-a", "resize", SIZE);
    expect(delayMs()).toBe(Number.POSITIVE_INFINITY);
    await clock.advance(30_000);
    writes.failed(attempt, { ...REFUSED, reason: "WriteFailed" }, 1);
    expect(delayMs()).toBe(1000);
  });

  it("neither ends nor extends a delay when the clock jumps", async () => {
    const { clock, writes, delayMs } = setup();
    writes.failed(writes.begin("uid-a", "resize", SIZE), REFUSED, 1);
    await clock.advance(60_000);
    for (const ms of [DAY_MS, -2 * DAY_MS]) {
      clock.jump(ms);
      expect(delayMs()).toBe(4 * 60_000);
    }
  });

  it("has an unknown outcome until the object is read", () => {
    const { writes, delayMs } = setup();
    writes.unknown(writes.begin("uid-a", "resize", SIZE), { ...REFUSED, reason: "WriteFailed" });
    expect(delayMs()).toBe(Number.POSITIVE_INFINITY);
    writes.resolve("uid-a", 7);
    expect(writes.get("uid-a", "resize")?.outcome).toMatchObject({ type: "failed", generation: 7 });
  });

  it("leaves no record of an object that is deleted, even if its response comes later", () => {
    const { pipes, writes } = setup();
    const pipe = aPipe("a");
    pipes.of(pipe.kind).apply(pipe);
    const attempt = writes.begin("uid-a", "resize", SIZE);
    const commit = writes.begin("uid-a", "commit", SIZE);
    const update = writes.begin("uid-a", "continue-commit", SIZE);
    writes.failed(writes.begin("uid-a", "resume", SIZE), REFUSED, 1);
    pipes.of(pipe.kind).remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "2" } });
    expect(writes.get("uid-a", "resume")).toBeUndefined();
    writes.done(attempt, { lastRollout: aRollout(sizeOfCores(4)), isStripped: false });
    writes.failed(commit, REFUSED, 1);
    writes.unknown(update, UNAVAILABLE);
    for (const purpose of ["resize", "commit", "continue-commit"] as const)
      expect(writes.get("uid-a", purpose)).toBeUndefined();
    expect(writes.lastAnnotation("uid-a")).toBeUndefined();
    expect([writes.unresolvedRollouts(), writes.unresolvedCommits().size]).toEqual([0, 0]);
  });

  it("knows a write in flight although its object leaves, because the object may only have lost its labels", () => {
    const { pipes, writes } = setup();
    const pipe = aPipe("a");
    pipes.of(pipe.kind).apply(pipe);
    const first = writes.begin("uid-a", "commit", SIZE);
    pipes.of(pipe.kind).leave(pipe);
    expect(writes.get("uid-a", "commit")?.outcome.type).toBe("pending");
    expect([...writes.unresolvedCommits()]).toEqual(["uid-a"]);
    writes.done(first);
    expect(writes.unresolvedCommits().size).toBe(0);
    // The next one is remembered again.
    writes.failed(writes.begin("uid-a", "commit", SIZE), REFUSED, 1);
    expect(writes.get("uid-a", "commit")?.outcome.type).toBe("failed");
  });

  it("knows the last annotation that it wrote, whatever the purpose was", () => {
    const { writes } = setup();
    const [first, second] = [aRollout(sizeOfCores(2)), aRollout(sizeOfCores(4))];
    writes.done(writes.begin("uid-a", "adopt", SIZE), { lastRollout: first, isStripped: false });
    writes.done(writes.begin("uid-a", "resize", SIZE), { lastRollout: second, isStripped: true });
    writes.failed(writes.begin("uid-a", "roll-back", SIZE), REFUSED, 1);
    expect(writes.lastAnnotation("uid-a")).toMatchObject({
      lastRollout: second,
      isStripped: true,
      attempts: 1,
    });
  });
});

describe("the writes without a known outcome", () => {
  it("count as rollouts for at most five minutes", async () => {
    const { clock, writes } = setup();
    writes.begin("uid-a", "resize", SIZE);
    writes.unknown(writes.begin("uid-b", "roll-back", SIZE), REFUSED);
    writes.done(writes.begin("uid-c", "resize", SIZE));
    writes.begin("uid-d", "commit", SIZE);
    expect(writes.unresolvedRollouts()).toBe(2);
    await clock.advance(5 * 60_000);
    expect(writes.unresolvedRollouts()).toBe(0);
  });

  it("count as commits for at most five minutes", async () => {
    const { clock, writes } = setup();
    writes.begin("uid-a", "commit", SIZE);
    writes.unknown(writes.begin("uid-b", "resume", SIZE), REFUSED);
    await clock.advance(5 * 60_000 - 1);
    expect(writes.unresolvedCommits().size).toBe(2);
    await clock.advance(1);
    expect(writes.unresolvedCommits().size).toBe(0);
    writes.begin("uid-b", "resume", SIZE);
    expect([...writes.unresolvedCommits()]).toEqual(["uid-b"]);
  });

  it("count as commits once for each Deployment", () => {
    const { writes } = setup();
    writes.begin("uid-a", "commit", SIZE);
    writes.begin("uid-a", "resume", "1");
    const update = writes.begin("uid-b", "continue-commit", "1");
    expect([...writes.unresolvedCommits()]).toEqual(["uid-a", "uid-b"]);
    writes.done(update);
    expect([...writes.unresolvedCommits()]).toEqual(["uid-a"]);
  });
});
