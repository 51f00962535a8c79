import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { enqueueOnChange } from "../../../src/controller/create-reconciler.ts";
import type { AutoscalerView } from "../../../src/controller/observe/autoscaler-view.ts";
import { createCaches } from "../../../src/controller/observe/caches.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { organizationConfigMapName } from "../../../src/records/organization.ts";
import { serviceConfigMapName } from "../../../src/records/service.ts";
import { WaitingLine } from "../../../src/runtime/waiting-line.ts";
import { WorkQueue } from "../../../src/runtime/work-queue.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { aPod } from "../../support/fixtures/pod.ts";
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
  const line = () =>
    new WaitingLine({
      mostTurns: 1,
      clock,
      free: () => 50,
      recheckMs: 30_000,
      wake: (serviceId) => queue.add(serviceId),
    });
  const [rollouts, commits] = [line(), line()];
  enqueueOnChange(caches, queue, { rollouts, commits });
  const next = () => queue.next(AbortSignal.timeout(1000));
  return { caches, queue, rollouts, commits, next };
}

function at<T extends { readonly metadata: object }>(resourceVersion: string, object: T): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

const ORGANIZATION = randomUUID();

/** The ConfigMap of a service. */
function record(name: string, organizationId: string, resourceVersion: string) {
  const metadata = { name, namespace: "records", uid: name, resourceVersion, generation: 0 };
  const service = { id: name, organizationId, name, namespace: "pipes" };
  return { metadata, record: { ok: true as const, value: service } };
}

describe("a service", () => {
  it("is reconciled after a change of its organization, but after services that others request", async () => {
    const { caches, queue, next } = setup();
    const ids = ["one", "two", "three"].map(() => randomUUID());
    for (const id of ids) caches.services.observe(record(serviceConfigMapName(id), ORGANIZATION, "5"));
    const organization = record(organizationConfigMapName(ORGANIZATION), ORGANIZATION, "6");
    caches.organizations.apply({ ...organization, record: { ok: false, problem: "no tier" } });
    caches.pipes.of("Deployment").apply(at("7", aPipe("a")));
    expect(queue.depth).toBe(4);
    const keys = [await next(), await next(), await next(), await next()];
    expect(keys).toEqual(["service", ...ids]);
  });

  it("is reconciled after a change by another writer, but not after the controller's own write", async () => {
    const { caches, queue, next } = setup();
    caches.pipes.of("Deployment").apply(at("5", aPipe("a")));
    expect(await next()).toBe("service");
    queue.done("service");
    caches.pipes.of("Deployment").observe(at("6", aPipe("a")));
    expect(queue.depth).toBe(0);
  });

  it("is reconciled if a read for another service shows that a pipe belongs to it now", async () => {
    const { caches, queue, next } = setup();
    caches.pipes.of("Deployment").observe(at("5", aPipe("a", { serviceId: "other" })));
    expect(queue.depth).toBe(0);
    caches.pipes.of("Deployment").observe(at("6", aPipe("a")));
    expect(await next()).toBe("service");
  });

  it("is reconciled if it is waiting for the limit of rollouts and a rollout ends, even because of the controller's own write", async () => {
    const { caches, rollouts, next } = setup();
    caches.pipes.of("Deployment").observe(at("5", rollingTo("a", sizeOfCores(2))));
    rollouts.reconciled("other", true);
    caches.pipes.of("Deployment").observe(at("6", aPipe("a")));
    expect(await next()).toBe("other");
  });

  it("is reconciled if it is waiting for the limit of commits and a commit ends", async () => {
    const { caches, commits, next } = setup();
    caches.pipes.of("Deployment").observe(at("5", aPipe("a", { isPaused: true, isPausedForCommit: true })));
    commits.reconciled("other", true);
    caches.pipes.of("Deployment").observe(at("6", aPipe("a")));
    expect(await next()).toBe("other");
  });

  it("is reconciled after a change of a pod of a pipe", async () => {
    const { caches, next } = setup();
    caches.pipes.of("Deployment").observe(at("5", aPipe("a")));
    caches.pods.apply(at("6", aPod("a-1")));
    expect(await next()).toBe("service");
  });

  it.each([
    ["is reconciled if a pod of a StatefulSet becomes ready", "StatefulSet", "statefulset/a", true, 1],
    ["is not reconciled if only the time of its readiness changes", "StatefulSet", "statefulset/a", false, 0],
    ["is not reconciled if a pod of a Deployment becomes ready", "Deployment", "a", true, 0],
  ] as const)("%s", (_, kind, pipeName, isReady, depth) => {
    const { caches, queue } = setup();
    const pod = aPod("a-1", { pipeName, isReady: false });
    caches.pipes.of(kind).observe(at("5", aPipe("a", { kind })));
    caches.pods.observe(at("6", pod));
    caches.pods.apply(at("7", { ...pod, isReady, readyChangedAtMs: 1 }));
    expect(queue.depth).toBe(depth);
  });

  it("is not reconciled after a change that no decision can see, or of a pod of another workload", () => {
    const { caches, queue } = setup();
    const autoscaler = (kind: AutoscalerView["kind"], pipeName: string): AutoscalerView => ({
      metadata: { name: "auto", namespace: "pipes", uid: "u", resourceVersion: "6", generation: 0 },
      kind,
      pipeName,
      policies: new Map([["pipe", "size"]]),
    });
    caches.pipes.of("Deployment").observe(at("5", aPipe("a")));
    caches.pods.observe(at("6", aPod("a-1")));
    for (const store of caches.autoscalers) store.observe(autoscaler("VerticalPodAutoscaler", "a"));
    caches.pipes.of("Deployment").apply(at("7", aPipe("a")));
    caches.pods.apply(at("8", aPod("a-1")));
    for (const store of caches.autoscalers) store.apply(at("9", autoscaler("VerticalPodAutoscaler", "a")));
    caches.pods.apply(at("10", aPod("other-1", { pipeName: "other" })));
    expect(queue.depth).toBe(0);
  });
});
