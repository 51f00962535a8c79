import { describe, expect, it } from "vitest";
import { createLimits } from "../../../../src/controller/apply/limits.ts";
import { WriteMemory } from "../../../../src/controller/apply/write-memory.ts";
import { BY_COMMIT, BY_ROLLING, createCaches } from "../../../../src/controller/observe/caches.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aPipe, aRollout, COMPLETE, POLICY, rollingTo } from "../../../support/fixtures/snapshot.ts";

function setup() {
  const caches = createCaches();
  const clock = new FakeClock();
  const writes = new WriteMemory([caches.pipes], clock);
  const woken: string[] = [];
  const policy = { ...POLICY, maxConcurrentRollouts: 2 };
  const queue = { add: (serviceId: string) => woken.push(serviceId) };
  const limits = createLimits({ caches, writes, clock, policy, timeouts: TIMEOUTS, queue });
  const paused = (name: string, agoMs = 0) =>
    aPipe(name, { isPaused: true, isPausedForCommit: true, pausedForCommitAtMs: clock.now() - agoMs });
  return { caches, clock, writes, woken, paused, ...limits };
}

describe("the limit of commits", () => {
  it("allows six at the same time, as the caches show them", () => {
    const { caches, commits, paused } = setup();
    expect(commits.free()).toBe(6);
    for (const name of ["a", "b", "c", "d", "e"]) caches.pipes.of("Deployment").apply(paused(name));
    expect(commits.free()).toBe(1);
  });

  it("counts one until the Deployment controller has seen its end", () => {
    const { caches, commits, paused } = setup();
    caches.pipes.of("Deployment").apply(paused("a"));
    const lastRollout = aRollout(sizeOfCores(1), { inPlaceStartedAtMs: 0 });
    const resumed = (isSeen: boolean, resourceVersion: string) => {
      const pipe = aPipe("a", { lastRollout, rollout: { ...COMPLETE, isSeen } });
      return { ...pipe, metadata: { ...pipe.metadata, resourceVersion } };
    };
    caches.pipes.of("Deployment").apply(resumed(false, "2"));
    expect(commits.free()).toBe(5);
    caches.pipes.of("Deployment").apply(resumed(true, "3"));
    expect(commits.free()).toBe(6);
  });

  it("counts a write without a response once, and none of two minutes ago that cannot end", () => {
    const { caches, commits, writes, paused } = setup();
    caches.pipes.of("Deployment").apply(paused("a"));
    writes.begin("uid-a", "resume", "1");
    writes.begin("uid-b", "commit", "4000m/16Gi");
    expect(commits.free()).toBe(4);
    caches.pipes.of("Deployment").apply(paused("c", TIMEOUTS.stuckCommitMs));
    expect(commits.free()).toBe(4);
  });

  it("counts no workload that is being deleted, because its commit does not end", () => {
    const { caches, commits, paused } = setup();
    caches.pipes.of("Deployment").apply({ ...paused("a"), isBeingDeleted: true });
    expect(commits.free()).toBe(6);
  });

  it("is asked again after a second while a service waits, because a failed write produces no event", async () => {
    const { clock, commits, woken } = setup();
    commits.reconciled("service", true);
    await clock.advance(999);
    expect(woken).toEqual([]);
    await clock.advance(1);
    expect(woken).toEqual(["service"]);
  });
});

describe("the limit of rollouts", () => {
  it("counts rollouts in the caches and writes without a response, but no resizes in place", () => {
    const { caches, clock, rollouts, writes, paused } = setup();
    caches.pipes.of("Deployment").apply(paused("a"));
    expect(rollouts.free()).toBe(2);
    const size = sizeOfCores(4);
    caches.pipes
      .of("Deployment")
      .apply(rollingTo("b", size, { lastRollout: aRollout(size, { startedAtMs: clock.now() }) }));
    expect(rollouts.free()).toBe(1);
    writes.begin("uid-c", "resize", "4000m/16Gi");
    writes.begin("uid-d", "resize", "4000m/16Gi");
    expect(rollouts.free()).toBe(0);
  });

  it("looks at no pipe whose owner rolls out something, so it costs the same while the owners of all do", () => {
    const { caches, rollouts } = setup();
    const size = sizeOfCores(4);
    const lastRollout = aRollout(size, { cameUp: true });
    for (const name of ["a", "b", "c"])
      caches.pipes.of("Deployment").apply(rollingTo(name, size, { lastRollout, revision: 9 }));
    expect([caches.pipes.by(BY_ROLLING, "yes"), caches.pipes.by(BY_COMMIT, "yes")]).toEqual([[], []]);
    expect(rollouts.free()).toBe(2);
  });
});
