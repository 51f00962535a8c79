import { describe, expect, it } from "vitest";
import { RolloutBudget } from "../../../src/controller/apply/rollout-budget.ts";
import { enqueueOnChange } from "../../../src/controller/event-handlers.ts";
import { createCaches } from "../../../src/controller/observe/caches.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { WorkQueue } from "../../../src/runtime/work-queue.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { aPipe, rollingTo } from "../../support/fixtures/snapshot.ts";

function setup() {
  const caches = createCaches();
  const clock = new FakeClock();
  const queue = new WorkQueue({
    clock,
    minIntervalMs: 100,
    retryFirstMs: 50,
    retryMostMs: 60_000,
  });
  const budget = new RolloutBudget({
    clock,
    limit: 50,
    rolling: () => 0,
    wake: (serviceId) => queue.add(serviceId),
  });
  enqueueOnChange(caches, queue, budget);
  const next = () => queue.next(AbortSignal.timeout(1000));
  return { caches, queue, budget, next };
}

function at<T extends { readonly metadata: object }>(resourceVersion: string, object: T): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

describe("a service", () => {
  it("is reconciled after a change by another writer, but not after the controller's own write", async () => {
    const { caches, queue, next } = setup();
    caches.pipes.apply(at("5", aPipe("a")));
    expect(await next()).toBe("service");
    queue.done("service");
    caches.pipes.observe(at("6", aPipe("a")));
    expect(queue.depth).toBe(0);
  });

  it("is reconciled if it is waiting for the rollout budget and a rollout ends, even because of the controller's own write", async () => {
    const { caches, budget, next } = setup();
    caches.pipes.observe(at("5", rollingTo("a", sizeOfCores(2))));
    budget.reconciled("other", true);
    caches.pipes.observe(at("6", aPipe("a")));
    expect(await next()).toBe("other");
  });
});
