import { describe, expect, it } from "vitest";
import { CommitPace } from "../../../../src/controller/apply/commit-pace.ts";
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
  const commits = new CommitPace({ clock, wake: (serviceId) => queue.add(serviceId) });
  const reconcile = async (serviceId: string) => {
    reconciliations += 1;
    const waiting = left.get(serviceId) ?? 0;
    const begun = Math.min(waiting, commits.free());
    if (begun > 0) {
      commits.begin();
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
