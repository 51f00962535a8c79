import { describe, expect, it } from "vitest";
import { RolloutBudget } from "../../src/controller/apply/rollout-budget.ts";
import { enqueueOnChange } from "../../src/controller/event-handlers.ts";
import { createCaches } from "../../src/controller/observe/caches.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { WorkQueue } from "../../src/runtime/work-queue.ts";
import { VirtualClock } from "../gen/clock.ts";
import { aPipe, rollingTo } from "../gen/snapshot.ts";

function setup() {
  const caches = createCaches();
  const queue = new WorkQueue({
    clock: new VirtualClock(),
    minIntervalMs: 100,
    retryFirstMs: 50,
    retryMostMs: 60_000,
  });
  const slots = new RolloutBudget(50, () => 0);
  enqueueOnChange(caches, queue, slots);
  const next = () => queue.next(AbortSignal.timeout(1000));
  return { caches, queue, slots, next };
}

function at<T extends { readonly metadata: object }>(resourceVersion: string, object: T): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

describe("what leads to a pass over a service", () => {
  it("is a change by another, and not our own write, which the pass that made it has seen", async () => {
    const { caches, queue, next } = setup();
    caches.pipes.apply(at("5", aPipe("a")));
    expect(await next()).toBe("service");
    queue.done("service");
    caches.pipes.observe(at("6", aPipe("a")));
    expect(queue.depth).toBe(0);
  });

  it("is a place that comes free, also by a write of ours, for a service that waits for one", async () => {
    const { caches, slots, next } = setup();
    caches.pipes.observe(at("5", rollingTo("a", sizeOfCores(2))));
    slots.waitFor("other");
    caches.pipes.observe(at("6", aPipe("a")));
    expect(await next()).toBe("other");
  });
});
