import { describe, expect, it } from "vitest";
import { WriteMemory } from "../../../src/controller/apply/write-memory.ts";
import { finishCommits } from "../../../src/controller/create-reconciler.ts";
import { createCaches } from "../../../src/controller/observe/caches.ts";
import { DepartedPipes } from "../../../src/controller/observe/deleted-objects.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { aPipe } from "../../support/fixtures/snapshot.ts";

function setup() {
  const caches = createCaches();
  const { pipes } = caches;
  const clock = new FakeClock();
  const writes = new WriteMemory([pipes], clock);
  const departed = new DepartedPipes(pipes);
  const added: string[] = [];
  const state = { isLeader: true, isEnded: false };
  let version = 0;
  const pipe = (isPausedForCommit: boolean) => {
    version += 1;
    const made = aPipe("a", { isPaused: isPausedForCommit, isPausedForCommit });
    return { ...made, metadata: { ...made.metadata, resourceVersion: `${version}` } };
  };
  const finish = async () => {
    await finishCommits({
      caches,
      departed,
      writes,
      clock,
      isLeader: () => state.isLeader,
      queue: { add: (serviceId) => added.push(serviceId), retry: () => undefined },
      reconcileAll: (signal) =>
        new Promise((resolve) => {
          if (signal.aborted) resolve();
          else signal.addEventListener("abort", () => resolve());
        }),
    });
    state.isEnded = true;
  };
  return { pipes, clock, writes, departed, added, state, pipe, finish };
}

describe("the end of a process", () => {
  it("waits for nothing without a commit", async () => {
    const { pipes, pipe, state, finish } = setup();
    pipes.of("Deployment").apply(pipe(false));
    await finish();
    expect(state.isEnded).toBe(true);
  });

  it("waits until each Deployment is resumed, and has their services reconciled", async () => {
    const { pipes, clock, added, pipe, state, finish } = setup();
    pipes.of("Deployment").apply(pipe(true));
    const ending = finish();
    await clock.advance(500);
    expect([state.isEnded, new Set(added)]).toEqual([false, new Set(["service"])]);
    pipes.of("Deployment").apply(pipe(false));
    await clock.advance(100);
    await ending;
    expect(state.isEnded).toBe(true);
  });

  it("waits for no Deployment that is being deleted, because nothing resumes it", async () => {
    const { pipes, clock, pipe, state, finish } = setup();
    pipes.of("Deployment").apply({ ...pipe(true), isBeingDeleted: true });
    void finish();
    await clock.advance(0);
    expect(state.isEnded).toBe(true);
  });

  it("waits for a Deployment that is no pipe any more", async () => {
    const { clock, departed, pipe, added, state, finish } = setup();
    departed.observe(pipe(true));
    const ending = finish();
    await clock.advance(500);
    expect([state.isEnded, added[0]]).toEqual([false, "service"]);
    departed.forget("uid-a");
    await clock.advance(100);
    await ending;
  });

  it("waits for a write that may have paused a Deployment", async () => {
    const { clock, writes, state, finish } = setup();
    const attempt = writes.begin("uid-a", "commit", "4000m/16Gi");
    const ending = finish();
    await clock.advance(500);
    expect(state.isEnded).toBe(false);
    writes.done(attempt);
    await clock.advance(100);
    await ending;
  });

  it("waits for at most 20 s", async () => {
    const { pipes, clock, pipe, state, finish } = setup();
    pipes.of("Deployment").apply(pipe(true));
    const ending = finish();
    await clock.advance(19_999);
    expect(state.isEnded).toBe(false);
    await clock.advance(1);
    await ending;
  });

  it("waits no longer when another process may write", async () => {
    const { pipes, clock, pipe, state, finish } = setup();
    pipes.of("Deployment").apply(pipe(true));
    const ending = finish();
    await clock.advance(500);
    state.isLeader = false;
    await clock.advance(100);
    await ending;
    expect(state.isEnded).toBe(true);
  });
});
