import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../kube/objects.ts";
import { organizationIdOf } from "../records/organization.ts";
import { serviceIdOf } from "../records/service.ts";
import type { Change, Store } from "../runtime/store.ts";
import type { Priority, WorkQueue } from "../runtime/work-queue.ts";
import type { Limits } from "./apply/limits.ts";
import { BY_ORGANIZATION, type Caches } from "./observe/caches.ts";
import { isInCommit, mayBeRollingOut } from "./observe/pipe-view.ts";
import { isOfStatefulSet } from "./observe/pod-view.ts";
import { pipeKeysOf } from "./observe/workloads/kinds.ts";

/** Enqueues the services that changes affect. The key is the ID of a service for every kind of object. */
export function enqueueOnChange(caches: Caches, queue: WorkQueue, { rollouts, commits }: Limits): void {
  const enqueue = (serviceId: string | undefined, priority?: Priority) => {
    if (serviceId !== undefined) queue.add(serviceId, priority);
  };
  const enqueuePipe = (keys: readonly string[]) => {
    for (const key of keys) enqueue(caches.pipes.get(key)?.serviceId);
  };
  eachObject(caches.services, ({ metadata }) => enqueue(serviceIdOf(metadata.name)));
  eachObject(caches.organizations, ({ metadata }) => {
    // Rescales that have begun, and those that one customer requested, do not wait for those of a whole organization.
    const services = caches.services.by(BY_ORGANIZATION, organizationIdOf(metadata.name) ?? "");
    for (const service of services) enqueue(serviceIdOf(service.metadata.name), "low");
  });
  eachObject(caches.scalings, ({ metadata }) => enqueue(metadata.name));
  // Each write of the writer of the service label changes this time, so a change of the time alone does not count.
  eachObject(
    caches.pipes,
    ({ serviceId }) => enqueue(serviceId),
    (pipe) => ({ ...pipe, labeledAtMs: 0 }),
  );
  // A Deployment also reports that a pod became ready, so a change of readiness alone does not count.
  eachObject(
    caches.pods,
    (pod) => enqueuePipe(pipeKeysOf(pod, pod.pipeName)),
    (pod) => ({ ...pod, isReady: isOfStatefulSet(pod) && pod.isReady, readyChangedAtMs: 0 }),
  );
  for (const store of caches.autoscalers) {
    eachObject(store, (scaler) => enqueuePipe(pipeKeysOf(scaler, scaler.pipeName)));
  }
  caches.pipes.onChange((change) => {
    const previous = change.type === "added" ? undefined : change.previous;
    const object = change.type === "deleted" ? undefined : change.object;
    if (previous && mayBeRollingOut(previous) && !(object && mayBeRollingOut(object))) rollouts.wakeNext();
    if (previous && isInCommit(previous) && !(object && isInCommit(object))) commits.wakeNext();
    // A read for one service can show, before the watch, that the pipe belongs to another one.
    if (change.isOurs && previous && object && previous.serviceId !== object.serviceId)
      enqueue(object.serviceId);
  });
}

/**
 * Handles both the new and the old object, because a changed label affects two services. Our own writes enqueue
 * nothing, because the reconciliation that made them has seen the responses. A change that no decision can see, such as
 * of the status of an autoscaler, enqueues nothing either.
 */
function eachObject<T extends KubeObject>(
  store: Pick<Store<T>, "onChange">,
  handle: (object: T) => void,
  relevant: (object: T) => T = (object) => object,
): void {
  store.onChange((change: Change<T>) => {
    if (change.isOurs) return;
    if (change.type === "updated" && isSameView(relevant(change.previous), relevant(change.object))) return;
    if (change.type !== "added") handle(change.previous);
    if (change.type !== "deleted") handle(change.object);
  });
}

function isSameView<T extends KubeObject>(
  { metadata: a, ...before }: T,
  { metadata: b, ...after }: T,
): boolean {
  return a.uid === b.uid && a.generation === b.generation && isDeepStrictEqual(before, after);
}
