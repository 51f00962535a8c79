import type { KubeObject } from "../kube/objects.ts";
import { organizationIdOf } from "../records/organization.ts";
import { serviceIdOf } from "../records/service.ts";
import type { Change, Store } from "../runtime/store.ts";
import type { WorkQueue } from "../runtime/work-queue.ts";
import type { RolloutBudget } from "./apply/rollout-budget.ts";
import { BY_ORGANIZATION, BY_ROLLING, type Caches, pipeKeyOf } from "./observe/caches.ts";
import { isRollingOurs } from "./observe/deployment-view.ts";

/** Every change leads to the same kind of key: the id of the service that it is about. */
export function enqueueOnChange(caches: Caches, queue: WorkQueue, slots: RolloutBudget): void {
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
  // That a pod waits for the scheduler is no news; that the scheduler finds no node for it is.
  eachObject(caches.pendingPods, (pod) => {
    if (pod.unschedulable !== undefined) enqueuePipe(pipeKeyOf(pod, pod.pipeName));
  });
  for (const store of caches.autoscalers) {
    eachObject(store, (scaler) => enqueuePipe(pipeKeyOf(scaler, scaler.deployment)));
  }
  caches.pipes.onChange((change) => {
    const wasRolling = change.type !== "added" && isRollingOurs(change.previous);
    const isRolling = change.type !== "deleted" && isRollingOurs(change.object);
    if (wasRolling && !isRolling) slots.takeWaiting().forEach(enqueue);
  });
}

/**
 * Both the object as it is and as it was: a moved label is news for two services. The pass that writes has seen
 * what its writes made.
 */
function eachObject<T extends KubeObject>(store: Store<T>, tell: (object: T) => void): void {
  store.onChange((change: Change<T>) => {
    if (change.isOurs) return;
    if (change.type !== "added") tell(change.previous);
    if (change.type !== "deleted") tell(change.object);
  });
}

/** Rollouts of ours under way over all services; those that began before `sinceMs` have failed by now. */
export function countRolling(caches: Caches, sinceMs: number): number {
  return caches.pipes.by(BY_ROLLING, "yes").filter((pipe) => (pipe.attempt?.startedAtMs ?? 0) > sinceMs)
    .length;
}
