import { expect, it } from "vitest";
import { DeferredPods } from "../../../../src/controller/in-place/deferred-pods.ts";
import type { PodView } from "../../../../src/controller/in-place/pod-view.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { aPod } from "../../../support/fixtures/pod.ts";

const DEFERRED = { type: "PodResizePending", reason: "Deferred", message: "no room" } as const;

function pod(name: string, resize?: PodView["resize"]): PodView {
  return aPod(name, { resize });
}

it("a deferred resize lasts until the node has room, the pod is deleted, or the resize in place ends", async () => {
  const clock = new FakeClock();
  const durations: number[] = [];
  const pods = new DeferredPods(clock, (durationMs) => durations.push(durationMs));
  const observe = (object: PodView) =>
    pods.observe({ type: "updated", object, previous: object, isOurs: false });
  for (const name of ["granted", "deleted", "late"]) observe(pod(name, DEFERRED));
  observe(pod("infeasible", { ...DEFERRED, reason: "Infeasible" }));
  await clock.advance(1000);
  observe(pod("late", DEFERRED));
  observe(pod("granted", { type: "PodResizeInProgress", reason: "", message: "" }));
  await clock.advance(1000);
  pods.observe({ type: "deleted", previous: pod("deleted", DEFERRED), isMissed: false, isOurs: false });
  await clock.advance(58_000);
  pods.end();
  pods.end();
  expect(durations).toEqual([1000, 2000, 60_000]);
});
