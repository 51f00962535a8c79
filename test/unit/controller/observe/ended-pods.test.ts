import { describe, expect, it } from "vitest";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { EndedPods } from "../../../../src/controller/observe/deleted-objects.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aPod } from "../../../support/fixtures/pod.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";

function setup() {
  const { pods, pipes } = createCaches();
  const clock = new FakeClock();
  const ended = new EndedPods({ pods, pipes }, clock);
  const pipe = aPipe("a");
  pipes.of(pipe.kind).apply(pipe);
  let version = 10;
  const versioned = (changes: Partial<PodView>) => {
    version += 1;
    const pod = aPod("a-1", changes);
    return { ...pod, metadata: { ...pod.metadata, resourceVersion: `${version}` } };
  };
  const endPod = (changes: Partial<PodView> = {}) => {
    pods.apply(versioned(changes));
    pods.remove(versioned(changes));
  };
  return { pods, pipes, clock, ended, pipe, versioned, endPod };
}

describe("the pod of a pipe that ended last", () => {
  it("is the last one, with its time, and none at first", async () => {
    const { clock, ended, pipe, endPod } = setup();
    expect(ended.last(pipe)).toBeUndefined();
    endPod();
    await clock.advance(5000);
    endPod();
    expect(ended.last(pipe)?.atMs).toBe(clock.now());
  });

  it("moves with the clock when that jumps, so that a wait neither ends nor grows", async () => {
    const { clock, ended, pipe, endPod } = setup();
    endPod();
    await clock.advance(5000);
    clock.jump(86_400_000);
    expect(clock.now() - (ended.last(pipe)?.atMs ?? 0)).toBe(5000);
  });

  it.each<[string, Partial<PodView>]>([
    ["has no Deployment", { pipeName: undefined }],
    ["is of another workload", { pipeName: "other" }],
  ])("is none that %s", (_, changes) => {
    const { ended, pipe, endPod } = setup();
    endPod(changes);
    expect(ended.last(pipe)).toBeUndefined();
    expect(ended.last(aPipe("other"))).toBeUndefined();
  });

  it("may have been evicted, and is not the same again when it is deleted later", async () => {
    const { pods, clock, ended, pipe, versioned } = setup();
    pods.apply(versioned({}));
    pods.apply(versioned({ isReady: false }));
    expect(ended.last(pipe)).toBeUndefined();
    pods.apply(versioned({ isActive: false }));
    const { containers } = aPod("a-1");
    const sizes = containers.map(({ name, resources }) => ({ name, resources }));
    const evicted = { atMs: clock.now(), containers: sizes };
    expect(ended.last(pipe)).toEqual(evicted);
    await clock.advance(5000);
    pods.remove(versioned({ isActive: false }));
    expect(ended.last(pipe)).toEqual(evicted);
  });

  it("is forgotten with the Deployment", () => {
    const { pipes, ended, pipe, endPod } = setup();
    endPod();
    pipes.of(pipe.kind).remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "99" } });
    expect(ended.last(pipe)).toBeUndefined();
  });
});
