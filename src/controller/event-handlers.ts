import type { KubeObject } from "../kube/objects.ts";
import { organizationIdOf } from "../records/organization.ts";
import { serviceIdOf } from "../records/service.ts";
import type { Change, Store } from "../runtime/store.ts";
import type { WorkQueue } from "../runtime/work-queue.ts";
import type { RolloutBudget } from "./apply/rollout-budget.ts";
import { BY_ORGANIZATION, type Caches, pipeKeyOf } from "./observe/caches.ts";
import { mayBeRollingOut } from "./observe/deployment-view.ts";

/** Every change enqueues the same kind of key: the ID of the affected service. */
export function enqueueOnChange(caches: Caches, queue: WorkQueue, budget: RolloutBudget): void {
  const enqueue = (serviceId: string | undefined) => {
    if (serviceId !== undefined) queue.add(serviceId);
  };
  const enqueuePipe = (keys: readonly string[]) => {
    for (const key of keys) enqueue(caches.pipes.get(key)?.serviceId);
  };
  eachObject(caches.services, ({ metadata }) => enqueue(serviceIdOf(metadata.name)));
  eachObject(caches.organizations, ({ metadata }) => {
    const organizationId = organizationIdOf(metadata.name) ?? "";
    for (const service of caches.services.by(BY_ORGANIZATION, organizationId)) {
      enqueue(serviceIdOf(service.metadata.name));
    }
  });
  eachObject(caches.scalings, ({ metadata }) => enqueue(metadata.name));
  eachObject(caches.pipes, ({ serviceId }) => enqueue(serviceId));
  // A pod that waits for the scheduler affects nothing; a pod that the scheduler found unschedulable does.
  eachObject(caches.pendingPods, (pod) => {
    if (pod.unschedulable !== undefined) enqueuePipe(pipeKeyOf(pod, pod.pipeName));
  });
  for (const store of caches.autoscalers) {
    eachObject(store, (scaler) => enqueuePipe(pipeKeyOf(scaler, scaler.deployment)));
  }
  caches.pipes.onChange((change) => {
    const wasRolling = change.type !== "added" && mayBeRollingOut(change.previous);
    const isRolling = change.type !== "deleted" && mayBeRollingOut(change.object);
    if (wasRolling && !isRolling) budget.wakeNext();
  });
}

/**
 * Handles both the new and the old object, because a changed label affects two services. Our own writes enqueue
 * nothing, because the reconciliation that made them has seen the responses.
 */
function eachObject<T extends KubeObject>(store: Store<T>, handle: (object: T) => void): void {
  store.onChange((change: Change<T>) => {
    if (change.isOurs) return;
    if (change.type !== "added") handle(change.previous);
    if (change.type !== "deleted") handle(change.object);
  });
}
