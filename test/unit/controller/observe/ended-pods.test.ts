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
  pipes.apply(pipe);
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
  return { pipes, clock, ended, pipe, endPod };
}

describe("the time at which a pod of a pipe last ended", () => {
  it("is that of the last pod, and 0 for none", async () => {
    const { clock, ended, pipe, endPod } = setup();
    expect(ended.lastEndedAtMs(pipe)).toBe(0);
    endPod();
    await clock.advance(5000);
    endPod();
    expect(ended.lastEndedAtMs(pipe)).toBe(clock.now());
  });

  it("moves with the clock when that jumps, so that a wait neither ends nor grows", async () => {
    const { clock, ended, pipe, endPod } = setup();
    endPod();
    await clock.advance(5000);
    clock.jump(86_400_000);
    expect(clock.now() - ended.lastEndedAtMs(pipe)).toBe(5000);
  });

  it.each<[string, Partial<PodView>]>([
    ["has no Deployment", { pipeName: undefined }],
    ["is of another workload", { pipeName: "other" }],
  ])("is not that of a pod that %s", (_, changes) => {
    const { ended, pipe, endPod } = setup();
    endPod(changes);
    expect(ended.lastEndedAtMs(pipe)).toBe(0);
    expect(ended.lastEndedAtMs(aPipe("other"))).toBe(0);
  });

  it("is forgotten with the Deployment", () => {
    const { pipes, ended, pipe, endPod } = setup();
    endPod();
    pipes.remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "99" } });
    expect(ended.lastEndedAtMs(pipe)).toBe(0);
  });
});
