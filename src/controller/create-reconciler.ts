import type { KubeClient } from "../kube/client.ts";
import type { WorkQueue } from "../runtime/work-queue.ts";
import { FailedSteps } from "./apply/failed-steps.ts";
import { BEGIN_BURST, InPlacePace } from "./apply/in-place-pace.ts";
import { RolloutBudget } from "./apply/rollout-budget.ts";
import { Validations } from "./apply/validations.ts";
import { WriteHistory } from "./apply/write-history.ts";
import { Nodes } from "./capacity/nodes.ts";
import { countRolling } from "./decide/rolling.ts";
import { enqueueOnChange } from "./event-handlers.ts";
import { InPlaceResizes } from "./in-place/resizes.ts";
import { DeletedScalings } from "./observe/deleted-scalings.ts";
import { Reconciler, type ReconcilerOptions } from "./reconciler.ts";
import type { ControllerMetrics } from "./report/metrics.ts";

type Given =
  | "caches"
  | "clock"
  | "log"
  | "namespace"
  | "tiers"
  | "policy"
  | "timeouts"
  | "events"
  | "assertMayWrite"
  | "recordSpan";

export interface ReconcilerSetup extends Pick<ReconcilerOptions, Given> {
  readonly client: Pick<KubeClient, "json" | "stream">;
  readonly queue: WorkQueue;
  readonly metrics: Pick<ControllerMetrics, "passed" | "reported" | "podEnded" | "wasDeferred" | "fellBack">;
}

/** Creates the reconciler with its memory and its bounds, and enqueues the services whose objects change. */
export function createReconciler(setup: ReconcilerSetup) {
  const { client, clock, caches, queue, policy, timeouts, metrics, log } = setup;
  const enqueue = (serviceId: string) => queue.add(serviceId);
  const writes = new WriteHistory(caches.pipes);
  const failedSteps = new FailedSteps(caches.pipes, clock, timeouts);
  const begins = new InPlacePace({ clock, wake: enqueue, burst: BEGIN_BURST });
  const resizes = new InPlaceResizes({
    ...{ client, clock, timeouts, pipes: caches.pipes, enqueue },
    onProblem: (err) => log.warn({ err }, "the pods of a pipe cannot be watched; trying again"),
    onPod: (outcome) => metrics.podEnded(outcome),
    onDeferred: (durationMs) => metrics.wasDeferred(durationMs),
    takeTurn: () => begins.take(),
    giveBackTurn: () => begins.giveBack(),
    onEnd: () => budget.wakeNext(),
    onFallback: ({ serviceId, metadata }, { reason, message }) => {
      metrics.fellBack(reason);
      log.info({ serviceId, pipe: metadata.name, reason }, `the pipe is not resized in place: ${message}`);
    },
  });
  const budget: RolloutBudget = new RolloutBudget({
    clock,
    limit: policy.maxConcurrentRollouts,
    rolling: () =>
      countRolling(caches, { nowMs: clock.now(), policy }) +
      writes.unresolvedRollouts(clock.now()) +
      resizes.countActive((uid) => failedSteps.failsTooLong(uid)),
    wake: enqueue,
  });
  enqueueOnChange(caches, queue, budget);
  const deletedScalings = new DeletedScalings(caches.scalings, clock, timeouts.recreateMs);
  const reconciler = new Reconciler({
    ...setup,
    writes,
    failedSteps,
    begins,
    resizes,
    budget,
    deletedScalings,
    enqueue,
    validations: new Validations(caches.pipes),
    nodes: new Nodes({ client, clock, log }),
    commits: new InPlacePace({ clock, wake: enqueue }),
    retry: (serviceId, leastMs) => queue.retry(serviceId, leastMs),
  });
  return { reconciler, resizes, deletedScalings };
}
