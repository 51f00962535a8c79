import { describe, expect, it } from "vitest";
import { InPlacePace } from "../../../../src/controller/apply/in-place-pace.ts";
import { WorkQueue } from "../../../../src/runtime/work-queue.ts";
import { runWorkers } from "../../../../src/runtime/workers.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";

/** Lets the workers of the controller reconcile services with pipes that are ready for their commit. */
async function commit(pipesByService: ReadonlyMap<string, number>, forMs: number) {
  const clock = new FakeClock();
  const left = new Map(pipesByService);
  const startedAtMs: number[] = [];
  let reconciliations = 0;
  const queue = new WorkQueue({ clock, minIntervalMs: 100, retryFirstMs: 50, retryMostMs: 60_000 });
  const commits = new InPlacePace({ clock, wake: (serviceId) => queue.add(serviceId) });
  const reconcile = async (serviceId: string) => {
    reconciliations += 1;
    const waiting = left.get(serviceId) ?? 0;
    const begun = Math.min(waiting, commits.free());
    if (begun > 0) {
      commits.take();
      startedAtMs.push(clock.monotonic());
      left.set(serviceId, waiting - begun);
    }
    await Promise.resolve();
    commits.reconciled(serviceId, waiting > begun);
    return {};
  };
  const ending = new AbortController();
  const working = runWorkers(
    { queue, concurrency: 16, reconcile, onFailure: () => undefined },
    ending.signal,
  );
  for (const serviceId of pipesByService.keys()) queue.add(serviceId);
  await clock.advance(forMs);
  ending.abort();
  await working;
  return { startedAtMs, reconciliations };
}

const services = (count: number, pipes: number) =>
  new Map(Array.from({ length: count }, (_, at) => [`service-${at}`, pipes] as const));

describe("the commits of resizes in place", () => {
  it("start immediately if no commit has started before", async () => {
    expect((await commit(services(1, 1), 0)).startedAtMs).toEqual([0]);
  });

  it("start at a rate close to, but never above, three per second", async () => {
    const { startedAtMs } = await commit(services(20, 3), 60_000);
    expect(startedAtMs).toHaveLength(60);
    for (const fromMs of startedAtMs) {
      const inSecond = startedAtMs.filter((atMs) => atMs >= fromMs && atMs < fromMs + 1000);
      expect(inSecond.length).toBeLessThanOrEqual(3);
    }
    expect(startedAtMs.at(-1)).toBeLessThan(21_000);
  });

  it("cause no polling: a waiting service is reconciled only when its turn comes", async () => {
    // One reconciliation puts each service in the queue, and each later commit needs one more.
    expect((await commit(services(20, 1), 60_000)).reconciliations).toBe(1 + 19 * 2);
    expect((await commit(services(20, 1), 3_600_000)).reconciliations).toBe(1 + 19 * 2);
  });
});

describe("the begins of resizes in place", () => {
  const world = () => {
    const clock = new FakeClock();
    const woken: string[] = [];
    const wake = (serviceId: string) => woken.push(serviceId);
    return { clock, woken, begins: new InPlacePace({ clock, wake, burst: 6 }) };
  };

  it("may be six at once, and then three per second", async () => {
    const { clock, begins } = world();
    expect(begins.free()).toBe(6);
    for (let turn = 0; turn < 6; turn += 1) begins.take();
    expect(begins.free()).toBe(0);
    await clock.advance(1002);
    expect(begins.free()).toBe(3);
  });

  it("do not wait for pipes that fell back to a rollout, because these have no commit", () => {
    const { begins, woken } = world();
    for (let turn = 0; turn < 6; turn += 1) begins.take();
    begins.reconciled("waiting", true);
    expect(woken).toEqual([]);
    begins.giveBack();
    expect(woken).toEqual(["waiting"]);
    expect(begins.free()).toBe(1);
  });

  it("are not delayed by resizes of a predecessor, which continue without a turn", async () => {
    const { clock, begins } = world();
    for (let turn = 0; turn < 1000; turn += 1) begins.take();
    await clock.advance(1002);
    expect(begins.free()).toBe(3);
  });
});
